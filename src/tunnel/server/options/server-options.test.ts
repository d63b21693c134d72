import { describe, expect, test } from 'vitest'
import { parseOptions } from '../../../cli/options/index.ts'
import { defaultLinkLimits } from '../../link/index.ts'
import { keepaliveOf } from '../agent-port.ts'
import { configOfOptions } from '../config.ts'
import { tunnelServerOptions } from './options.ts'
import { problemsOfTunnelServerOptions } from './validate.ts'
import { minTlsVersion, opensslCiphers } from './values.ts'

const shape = { command: 'x', summary: '', options: tunnelServerOptions, examples: [] }

async function valuesOf(argv: readonly string[], env: Record<string, string> = {}) {
  const readFile = () => Promise.reject(new Error('no file'))
  return (await parseOptions(shape, { argv, env, readFile })).values
}

const tcp = ['--server-ca-cert=ca', '--server-cert=c', '--server-key=k']
const uds = ['--uds-name=/run/s', '--server-port=0']
const mtls = ['--cluster-cert=c', '--cluster-key=k', '--cluster-ca-cert=ca']
const tokens = [
  '--cluster-cert=c',
  '--cluster-key=k',
  '--agent-namespace=kube-system',
  '--agent-service-account=konnectivity-agent',
  '--authentication-audience=aud',
  '--kubeconfig=kc',
]

async function problemsOf(...argv: string[]): Promise<string[]> {
  return problemsOfTunnelServerOptions(await valuesOf(argv), (path) => path !== 'missing')
}

test('[TUN-F1, TUN-U14] upstream’s flags have upstream’s defaults', async () => {
  const values = await valuesOf([])
  expect(values).toMatchObject({
    serverCert: '',
    serverKey: '',
    serverCaCert: '',
    clusterCert: '',
    clusterKey: '',
    clusterCaCert: '',
    mode: 'grpc',
    udsName: '',
    deleteExistingUdsFile: true,
    serverPort: 8090,
    serverBindAddress: '',
    agentPort: 8091,
    agentBindAddress: '',
    adminPort: 8095,
    adminBindAddress: '127.0.0.1',
    healthPort: 8092,
    healthBindAddress: '',
    frontendKeepaliveTime: 3_600_000,
    enableProfiling: false,
    enableContentionProfiling: false,
    serverId: '',
    serverCount: 1,
    agentNamespace: '',
    agentServiceAccount: '',
    authenticationAudience: '',
    kubeconfig: '',
    kubeconfigQps: '0',
    kubeconfigBurst: 0,
    kubeApiContentType: 'application/vnd.kubernetes.protobuf',
    proxyStrategies: ['default'],
    cipherSuites: [],
    tlsMinVersion: 'VersionTLS12',
    xfrChannelSize: 10,
    frontendWriteChannelSize: 10,
    enableLeaseController: false,
    leaseNamespace: 'kube-system',
    leaseLabel: 'k8s-app=konnectivity-server',
    gracefulShutdownTimeout: 0,
    backendDialTimeout: 0,
    warnOnChannelLimit: true,
    v: 4,
  })
  // The one that differs: upstream's hour would leave a dead agent registered for that long.
  expect(values.keepaliveTime).toBe(30_000)
})

test('[TUN-F1] the logging flags of Go programs are taken', async () => {
  const argv = [
    '-v=2',
    '--logtostderr=true',
    '--vmodule=a=1',
    '--stderrthreshold=INFO',
    '--alsologtostderrthreshold=INFO',
    '--legacy-stderr-threshold-behavior=false',
    '--log-file=',
  ]
  expect(await valuesOf(argv)).toMatchObject({ v: 2, logtostderr: true, vmodule: 'a=1' })
  expect(await valuesOf(['--v=5', '--alsologtostderr'])).toMatchObject({ v: 5 })
})

test('[TUN-F1] a rate below nothing, which means no limit to Go programs, is taken', async () => {
  const values = await valuesOf(['--kubeconfig-qps=-1', '--kubeconfig-burst=-1'])
  expect(values).toMatchObject({ kubeconfigQps: '-1', kubeconfigBurst: -1 })
})

test.each([
  ['a TCP front end', [...tcp, ...mtls]],
  ['a unix socket', [...uds, ...mtls]],
  ['agents with tokens', [...uds, ...tokens]],
  ['tokens reviewed by the cluster that it runs in', [...uds, ...tokens, '--kubeconfig=']],
  ['flags that are set to nothing', [...tcp, ...mtls, '--uds-name=', '--kubeconfig=']],
  [
    'traffic from nodes',
    [
      ...uds,
      ...mtls,
      '--feature-gates=NodeToMasterTraffic=true',
      '--allowed-destination=a:1',
      '--sni-route=b=c:1',
    ],
  ],
  ['ports that are taken as they come', [...uds, ...mtls, '--agent-port=0', '--health-port=0']],
])('[TUN-F3] %s is fine', async (_name, argv) => {
  expect(await problemsOf(...argv)).toEqual([])
})

describe('[TUN-F3, TUN-U14] what upstream refuses is refused', () => {
  test.each<[string, string[], string]>([
    ['a key without its certificate', [...uds, ...mtls, '--server-key=k'], 'only go together'],
    [
      'a certificate alone',
      [...uds, '--cluster-cert=c', '--cluster-ca-cert=ca'],
      'only go together',
    ],
    [
      'a missing server key',
      [...tcp, ...mtls, '--server-key=missing'],
      '--server-key: there is no',
    ],
    [
      'a missing server cert',
      [...tcp, ...mtls, '--server-cert=missing'],
      '--server-cert: there is',
    ],
    [
      'a missing server CA',
      [...tcp, ...mtls, '--server-ca-cert=missing'],
      '--server-ca-cert: there',
    ],
    ['a missing cluster key', [...uds, ...mtls, '--cluster-key=missing'], '--cluster-key: there'],
    ['a missing cluster CA', [...uds, ...mtls, '--cluster-ca-cert=missing'], '--cluster-ca-cert: '],
    ['a missing kubeconfig', [...uds, ...tokens, '--kubeconfig=missing'], '--kubeconfig: there is'],
    ['a port beside a socket', [...mtls, '--uds-name=/s'], '--server-port must be 0'],
    [
      'a CA beside a socket',
      [...uds, ...mtls, '--server-ca-cert=ca'],
      'must not be set with --uds',
    ],
    [
      'TCP without a CA',
      [...mtls, '--server-cert=c', '--server-key=k'],
      '--server-ca-cert is requi',
    ],
    ['TCP without a certificate', [...mtls, '--server-ca-cert=ca'], '--server-key are required'],
    ['a server port below 1024', [...tcp, ...mtls, '--server-port=1023'], 'from 1024 to 49151'],
    ['a server port of none', [...tcp, ...mtls, '--server-port=0'], 'from 1024 to 49151'],
    ['an agent port above 49151', [...uds, ...mtls, '--agent-port=49152'], '--agent-port must be'],
    ['an admin port below 1024', [...uds, ...mtls, '--admin-port=80'], '--admin-port must be'],
    [
      'a health port above 49151',
      [...uds, ...mtls, '--health-port=50000'],
      '--health-port must be',
    ],
    ['contention alone', [...uds, ...mtls, '--enable-contention-profiling'], 'needs --enable-prof'],
    [
      'half of the token flags',
      [...uds, '--cluster-cert=c', '--cluster-key=k', '--agent-namespace=x', '--kubeconfig=k'],
      'need --agent-service-account and --auth',
    ],
    ['tokens and a CA', [...uds, ...tokens, '--cluster-ca-cert=ca'], 'must not be set when agents'],
    [
      'agents without credentials',
      [...uds, '--cluster-cert=c', '--cluster-key=k'],
      'prove who they',
    ],
    ['agents without TLS', [...uds, '--cluster-ca-cert=ca'], 'agents connect with TLS only'],
    [
      'a destination without the gate',
      [...uds, ...mtls, '--allowed-destination=a:1'],
      'need --feature-gates NodeToMasterTraffic=true',
    ],
    [
      'a route without the gate',
      [...uds, ...mtls, '--sni-route=a=b:1', '--feature-gates=NodeToMasterTraffic=false'],
      'need --feature-gates NodeToMasterTraffic=true',
    ],
    [
      'a route that nobody may take',
      [...uds, ...mtls, '--sni-route=a=b:1', '--feature-gates=NodeToMasterTraffic=true'],
      '--sni-route needs --allowed-destination',
    ],
    ['a route twice', [...uds, ...mtls, '--sni-route=a=b:1,A=c:2'], '--sni-route names a twice'],
  ])('%s', async (_name, argv, words) => {
    expect((await problemsOf(...argv)).join('\n')).toContain(words)
  })

  test.each([
    ['a mode of its own', '--mode=tcp', 'must be one of grpc, http-connect'],
    ['a strategy of its own', '--proxy-strategies=nearest', 'must be one of default'],
    ['no strategy', '--proxy-strategies=', 'must be one of default'],
    ['an empty queue', '--xfr-channel-size=0', 'must be at least 1'],
    ['a queue below nothing', '--xfr-channel-size=-10', 'must be at least 1'],
    ['a TLS version of its own', '--tls-min-version=TLS1.2', 'must be one of'],
    ['a weak suite', '--cipher-suites=TLS_RSA_WITH_RC4_128_SHA', 'must be a secure cipher suite'],
    ['a negative duration', '--graceful-shutdown-timeout=-1s', 'must be from 0s'],
    ['a negative dial timeout', '--backend-dial-timeout=-5s', 'must be from 0s'],
    ['a gate of its own', '--feature-gates=X=true', 'must name one of NodeToMasterTraffic'],
    ['a gate without a word', '--feature-gates=NodeToMasterTraffic', 'must end in =true or =false'],
    ['a gate of two words', '--feature-gates=NodeToMasterTraffic=true=x', 'must end in =true or'],
    ['a destination without a port', '--allowed-destination=host', 'must be HOST:PORT'],
    ['a bare IPv6 destination', '--allowed-destination=fd00::1:6443', 'brackets'],
    ['a route without a place', '--sni-route=name', 'must be NAME=HOST:PORT'],
    ['a route to no port', '--sni-route=name=host', 'must be HOST:PORT'],
    ['a rate in words', '--kubeconfig-qps=fast', 'must be a number'],
    ['an id that no header can carry', '--server-id=a\nb', 'must be printable ASCII'],
    ['no labels', '--lease-label=', 'must be KEY=VALUE'],
    ['a label without a value', '--lease-label=a', 'must be KEY=VALUE'],
    ['a label with two values', '--lease-label=a=b=c', 'must be KEY=VALUE'],
    ['a label of nothing', '--lease-label=a=b,', 'must be KEY=VALUE'],
    ['a label that no object can have', '--lease-label=a=b c', 'must be KEY=VALUE'],
  ])('%s', async (_name, flag, words) => {
    await expect(valuesOf([flag])).rejects.toThrow(words)
  })

  test('all problems are told at once', async () => {
    expect((await problemsOf('--agent-port=1', '--admin-port=2')).length).toBeGreaterThan(4)
  })
})

describe('options become a configuration', () => {
  test('[TUN-F5] the server ID comes from the flag, the environment, or is a new UUID', async () => {
    const idOf = async (argv: string[], env = {}) =>
      configOfOptions(await valuesOf(argv, env)).serverId
    expect(await idOf(['--server-id=me'], { PROXY_SERVER_ID: 'env' })).toBe('me')
    expect(await idOf([], { PROXY_SERVER_ID: 'env' })).toBe('env')
    expect(await idOf([])).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/)
  })

  test('[TUN-W17] Leases have the labels of the flag, and there are none without the controller', async () => {
    const leasesOf = async (...argv: string[]) => configOfOptions(await valuesOf(argv)).leases
    expect(await leasesOf()).toBeUndefined()
    expect(await leasesOf('--enable-lease-controller', '--lease-label=a=b,c.d/e=')).toEqual({
      namespace: 'kube-system',
      labels: { a: 'b', 'c.d/e': '' },
    })
  })

  test.each([
    [[], 30_000],
    [['--backend-dial-timeout=5s'], 5_000],
    [['--backend-dial-timeout=1h'], 30_000],
    [['--pending-dial-timeout=1m', '--backend-dial-timeout=45s'], 45_000],
  ])('[TUN-F15] with %j a dial may take %d ms', async (argv, ms) => {
    expect(configOfOptions(await valuesOf(argv)).dialTimeoutMs).toBe(ms)
  })

  test.each([
    [[], false],
    [['--feature-gates=NodeToMasterTraffic=true'], true],
    [['--feature-gates=EnableClusterToMasterTraffic=true'], true],
    [['--feature-gates=NodeToMasterTraffic=true,NodeToMasterTraffic=false'], false],
  ])('[TUN-R21] with %j traffic from nodes is on: %s', async (argv, isOn) => {
    expect(configOfOptions(await valuesOf(argv)).nodeTraffic.isOn).toBe(isOn)
  })

  test('[TUN-P11] what may wait is bounded in bytes', async () => {
    const argv = ['--max-connection-buffer=1Mi', '--max-agent-buffer=32Mi']
    expect(configOfOptions(await valuesOf(argv)).limits).toEqual({
      channelUnreadBytes: 2 ** 20,
      peerBufferBytes: 2 ** 25,
    })
    expect(defaultLinkLimits).toMatchObject(configOfOptions(await valuesOf([])).limits ?? {})
  })

  test('[TUN-P11] sizes in packets are taken and change nothing', async () => {
    const configOf = async (size: number) =>
      configOfOptions(
        await valuesOf([
          '--server-id=x',
          `--xfr-channel-size=${size}`,
          `--frontend-write-channel-size=${size}`,
        ]),
      )
    expect(await configOf(1)).toEqual(await configOf(100_000))
  })

  test('[TUN-P8] an agent that has vanished is found within a minute by default', async () => {
    const { agents } = configOfOptions(await valuesOf([]))
    const { timeMs, timeoutMs } = keepaliveOf(agents?.keepaliveMs ?? 0).keepalive
    expect(timeMs + timeoutMs).toBeLessThanOrEqual(60_000)
  })

  test('[TUN-F14] suites by their Go names limit TLS 1.2 only, and 1.2 is the least', () => {
    expect(opensslCiphers([])).toBeUndefined()
    expect(opensslCiphers(['TLS_AES_128_GCM_SHA256'])).toBeUndefined()
    expect(opensslCiphers(['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'])).toBe(
      'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:' +
        'ECDHE-RSA-AES128-GCM-SHA256',
    )
    expect(['', 'VersionTLS10', 'VersionTLS12', 'VersionTLS13'].map(minTlsVersion)).toEqual([
      'TLSv1.2',
      'TLSv1.2',
      'TLSv1.2',
      'TLSv1.3',
    ])
  })
})
