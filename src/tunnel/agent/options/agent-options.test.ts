import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../core/index.ts'
import { AgentLab, agentOptions } from '../agent-lab.suite.ts'
import { createTunnelAgent } from '../tunnel-agent.ts'
import { tunnelAgentOptions, tunnelAgentOptionValues } from './options.ts'
import { bindAddressWarning, problemsOfTunnelAgentOptions } from './validate.ts'
import { parseServerHost, parseTarget } from './values.ts'

test('[TUN-F2, TUN-U14] every flag of upstream is there with its default', async () => {
  expect(await agentOptions([])).toMatchObject({
    agentCert: '',
    agentKey: '',
    caCert: '',
    proxyServerHost: ['127.0.0.1'],
    proxyServerPort: 8091,
    alpnProto: [],
    healthServerHost: '',
    healthServerPort: 8093,
    adminBindAddress: '127.0.0.1',
    adminServerPort: 8094,
    enableProfiling: false,
    enableContentionProfiling: false,
    agentId: undefined,
    agentIdentifiers: '',
    syncInterval: 1_000,
    syncIntervalCap: 10_000,
    probeInterval: 1_000,
    keepaliveTime: 3_600_000,
    serviceAccountTokenPath: '',
    warnOnChannelLimit: false,
    syncForever: false,
    xfrChannelSize: 150,
    countServerLeases: false,
    leaseNamespace: 'kube-system',
    leaseLabelSelector: 'k8s-app=konnectivity-server',
    serverCountSource: 'default',
    kubeconfig: '',
    kubeApiContentType: 'application/vnd.kubernetes.protobuf',
  })
})

test('[TUN-F2] a command line of upstream is taken as it is', async () => {
  const values = await agentOptions([
    '--logtostderr=true',
    '--v=2',
    '--alsologtostderr',
    '--stderrthreshold=INFO',
    '--ca-cert=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
    '--proxy-server-host=konnectivity.example.com',
    '--proxy-server-port=8132',
    '--admin-server-port=8133',
    '--health-server-port=8134',
    '--service-account-token-path=/var/run/secrets/tokens/konnectivity-agent-token',
    '--agent-identifiers=ipv4=10.0.0.1',
    '--lease-label=k8s-app=other',
    '--warn-on-channel-limit',
    '--keepalive-time=0',
  ])
  expect(values).toMatchObject({ v: 2, proxyServerPort: 8132, leaseLabel: 'k8s-app=other' })
})

test('a program gets the same defaults as the command line', async () => {
  expect(tunnelAgentOptionValues({})).toEqual(await agentOptions([]))
  expect(tunnelAgentOptionValues({ agentId: 'me' }).agentId).toBe('me')
})

test('[TUN-F5] PROXY_AGENT_ID names the agent; otherwise it is a UUID', async () => {
  const lab = await AgentLab.open()
  expect((await agentOptions([], { PROXY_AGENT_ID: 'me' })).agentId).toBe('me')
  for (const argv of [[], ['--agent-id=']]) {
    expect((await lab.agent(argv)).agentId).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/)
  }
  await lab.close()
})

describe('[TUN-F4, TUN-U14] what upstream refuses is refused', () => {
  const present = () => true
  const ca = '--ca-cert=/ca'
  test.each([
    ['--ca-cert is required', []],
    ['--agent-cert and --agent-key only go together', [ca, '--agent-cert=/c']],
    ['--agent-cert and --agent-key only go together', [ca, '--agent-key=/k']],
    ['--sync-interval must not be longer than', [ca, '--sync-interval=11s']],
    ['needs --enable-profiling', [ca, '--enable-contention-profiling']],
  ])('%s', async (said, argv) => {
    const problems = problemsOfTunnelAgentOptions(await agentOptions(argv), present)
    expect(problems).toEqual([expect.stringContaining(said)])
  })

  test.each([
    ['--agent-cert=/gone', '--agent-key=/gone'],
    ['--service-account-token-path=/gone'],
    ['--kubeconfig=/gone'],
  ])('%s: a file that is not there', async (...argv) => {
    const values = await agentOptions([ca, ...argv])
    const problems = problemsOfTunnelAgentOptions(values, (path) => path !== '/gone')
    expect(problems).toEqual(argv.map((flag) => `${flag.split('=')[0]}: there is no file /gone`))
  })

  test.each([
    ['--proxy-server-port=0', 'must be from 1 to 65535'],
    ['--proxy-server-port=-1', 'must be from 1 to 65535'],
    ['--health-server-port=-1', 'must be from 0 to 65535'],
    ['--admin-server-port=65536', 'must be from 0 to 65535'],
    ['--xfr-channel-size=0', 'must be at least 1'],
    ['--server-count-source=min', 'must be one of default, max'],
    ['--proxy-server-host=a b', 'must be a host name or an IP address'],
    ['--proxy-server-name=10.0.0.1', 'must be a name'],
    ['--bind-address=nowhere', 'must be an IP address'],
    ['--feature-gates=Nothing=true', 'must name one of NodeToMasterTraffic'],
    ['--feature-gates=NodeToMasterTraffic', 'must end in =true or =false'],
  ])('%s', async (flag, said) => {
    await expect(agentOptions([flag])).rejects.toThrow(said)
  })

  test('all problems are told at once', async () => {
    const options = await agentOptions(['--agent-cert=/gone', '--sync-interval=1m'])
    const make = () =>
      createTunnelAgent({ options, clock: systemClock, log: silentLogger, isRoot: false, env: {} })
    expect(make).toThrow(/--ca-cert[^]*--agent-key[^]*\/gone[^]*--sync-interval/)
  })
})

describe('[TUN-R2] targets', () => {
  test.each([
    ['apiserver.svc.cluster.local:6443:6444', 6444, 'apiserver.svc.cluster.local:6443'],
    ['10.0.0.1:6443:6444', 6444, '10.0.0.1:6443'],
    ['[2001:db8::1]:6443:6444', 6444, '[2001:db8::1]:6443'],
    ['6444:apiserver:6443', 6444, 'apiserver:6443'],
    ['6444:10.0.0.1:6443', 6444, '10.0.0.1:6443'],
    ['6443:[2001:db8::1]:6443', 6443, '[2001:db8::1]:6443'],
    ['1a:80:81', 81, '1a:80'],
  ])('%s', (text, localPort, address) => {
    expect(parseTarget(text)).toEqual({ target: { localPort, address } })
  })

  test.each([
    ['6443:6443:6443', 'cannot be told'],
    ['127:443:6443', 'cannot be told'],
    ['apiserver:6443', 'must be HOST:PORT:LOCAL_PORT'],
    ['2001:db8::1:6443:6443', 'in brackets'],
    ['a:b:c', 'must be HOST:PORT:LOCAL_PORT'],
    ['', 'must be HOST:PORT:LOCAL_PORT'],
    ['api:0:6443', 'no port from 1'],
    ['api:6443:70000', 'no port from 0'],
    ['300.0.0.1:6443:6443', 'no host name'],
    ['a_b..c:6443:6443', 'no host name'],
    ['[1.2.3.4]:6443:6443', 'no host name'],
    ['x[::1]:6443:6443', 'no host name'],
    ['api:6443:', 'no port from 0'],
  ])('"%s" is refused', (text, said) => {
    expect(parseTarget(text)).toEqual({ problem: expect.stringContaining(said) })
  })

  test('may be several, by flags or commas, but not for one local port', async () => {
    const argv = ['--target=a:1:80,b:2:81', '--target=80:c:3', '--bind-address=10.0.0.1']
    const options = await agentOptions([
      ...argv,
      '--ca-cert=/ca',
      '--feature-gates=NodeToMasterTraffic=true',
    ])
    expect(options.target).toHaveLength(3)
    expect(problemsOfTunnelAgentOptions(options, () => true)).toEqual([
      '--target: local port 80 is used twice',
    ])
  })
})

describe('[TUN-R21] the gate', () => {
  const both = ['--target=api:6443:6443', '--bind-address=10.0.0.1', '--ca-cert=/ca']
  test.each([
    ['off by default', [], 1],
    ['switched off', ['--feature-gates=NodeToMasterTraffic=false'], 1],
    ['switched on', ['--feature-gates=NodeToMasterTraffic=true'], 0],
    ["by the proposal's name", ['--feature-gates=EnableClusterToMasterTraffic=true'], 0],
    [
      'the last word counts',
      ['--feature-gates=NodeToMasterTraffic=true,EnableClusterToMasterTraffic=false'],
      1,
    ],
  ])('%s', async (_name, argv, count) => {
    const options = await agentOptions([...both, ...argv])
    expect(problemsOfTunnelAgentOptions(options, () => true)).toHaveLength(count)
  })
})

describe('[TUN-R13] bind addresses', () => {
  test.each([
    ['127.0.0.1', 'a loopback address'],
    ['127.8.8.8', 'a loopback address'],
    ['::1', 'a loopback address'],
    ['169.254.1.1', 'a link-local address'],
    ['fe80::1', 'a link-local address'],
    ['0.0.0.0', 'no single address'],
    ['::', 'no single address'],
  ])('%s is %s', (address, kind) => {
    expect(bindAddressWarning(address)).toContain(`${address} is ${kind}`)
  })

  test.each(['10.64.0.1', '192.168.1.1', 'fd00::1', '2001:db8::1'])('%s is fine', (address) => {
    expect(bindAddressWarning(address)).toBeUndefined()
  })

  test('what Endpoints cannot have is refused when asked', async () => {
    const argv = ['--target=api:6443:6443', '--bind-address=127.0.0.1', '--ca-cert=/ca']
    const gate = '--feature-gates=NodeToMasterTraffic=true'
    const mild = await agentOptions([...argv, gate])
    const strict = await agentOptions([...argv, gate, '--refuse-unusable-bind-address'])
    const problems = [mild, strict].map((options) =>
      problemsOfTunnelAgentOptions(options, () => true),
    )
    expect(problems).toEqual([[], [expect.stringContaining('loopback')]])
  })
})

test.each([
  ['host', { host: 'host' }],
  ['10.0.0.1:81', { host: '10.0.0.1', port: 81 }],
  ['2001:db8::1', { host: '2001:db8::1' }],
  ['[2001:db8::1]:81', { host: '2001:db8::1', port: 81 }],
  ['host:0', undefined],
  ['host:', undefined],
  ['[host]:1', undefined],
  ['https://host', undefined],
])('[TUN-W18] the server %s', (text, expected) => {
  expect(parseServerHost(text)).toEqual(expected)
})

describe('[TUN-W20, TUN-U14] identifiers', () => {
  test.each([
    '',
    'host=localhost&host=node1.mydomain.com&cidr=127.0.0.1/16&ipv4=1.2.3.4&ipv4=5.6.7.8&ipv6=::1&default-route=true',
    'uid=x',
  ])('"%s" is fine', async (text) => {
    expect((await agentOptions([`--agent-identifiers=${text}`])).agentIdentifiers).toBe(text)
  })

  test.each([
    'subnet=10.0.0.0/8',
    'ipv4=::1',
    'ipv6=1.2.3.4',
    'cidr=10.0.0.1',
    'default-route=yes',
  ])('%s is refused', async (text) => {
    await expect(agentOptions([`--agent-identifiers=${text}`])).rejects.toThrow('must')
  })
})

test.each(Object.entries(tunnelAgentOptions))(
  '--%s is described without a full stop',
  (_, option) => {
    expect(option.describe).toMatch(/[^.]$/)
  },
)
