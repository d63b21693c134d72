import { expect, test } from 'vitest'
import {
  nodeBackend,
  podBackend,
  serviceBackend,
  type TargetRules,
} from '../../src/addon/service-proxy/target.ts'
import {
  type ClusterView,
  type KubeObject,
  type ProxiedResource,
  type ProxyTarget,
  workloadMark,
} from '../../src/core/index.ts'
import { addressTest, isDialable, rangeTest } from '../../src/http/address-rules.ts'
import { platformAddresses, registeredAddresses } from '../../src/http/special-addresses.ts'
import { fetchProviderDocument } from '../../src/issuer/relying-party/provider-keys.ts'
import { dialTarget } from '../../src/tunnel/agent/targets/dial-target.ts'
import { Slots } from '../../src/tunnel/agent/targets/slots.ts'

const { signal } = new AbortController()
const first = (range: string): string => range.split('/')[0] ?? ''
const rows = [...platformAddresses, ...registeredAddresses].map(({ range }) => first(range))
const hexOf = (address: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}
const embedded = (address: string): string[] =>
  address.includes('.')
    ? [
        `::ffff:${address}`,
        `::ffff:${hexOf(address)}`,
        `::${address}`,
        `64:ff9b::${address}`,
        `64:ff9b:1::${address}`,
        `2002:${hexOf(address)}::`,
        `2606:4700::5efe:${address}`,
      ]
    : [`${address}%eth0`]
const forms = rows.flatMap((address) => [address, ...embedded(address)])
const never = forms.filter((address) => !isDialable(address))

/** What a Pod claims to be: written by its kubelet, or by the machine of `workload run`. */
const podAt = (ip: string, labels: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'n', labels },
  spec: { containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] },
  status: { podIP: ip, podIPs: [{ ip }] },
})
const slice = (ip: string): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 's', namespace: 'n' },
  ports: [{ name: '', port: 80 }],
  endpoints: [{ addresses: [ip], targetRef: { kind: 'Pod', namespace: 'n', name: 'p' } }],
})
const service: KubeObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'p', namespace: 'n' },
  spec: { ports: [{ port: 80 }] },
}
const rulesAt = (ip: string, labels = {}, allowed: readonly string[] = []): TargetRules => ({
  targets: { get: async () => podAt(ip, labels), slices: async () => [slice(ip)] },
  isAllowedTarget: allowed.length > 0 ? rangeTest(allowed) : () => true,
})
const nodeAt = (address: string, type: string): ClusterView =>
  ({
    get: async () => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'p' },
      status: { addresses: [{ type, address }] },
    }),
  }) as unknown as ClusterView
const targetOf = (resource: ProxiedResource): ProxyTarget => ({
  resource,
  namespace: resource === 'nodes' ? '' : 'n',
  name: 'p',
  port: '',
  scheme: '',
})

/** Every way in which the service proxy comes to an address. */
const dialPaths: Readonly<
  Record<string, (ip: string, allowed?: readonly string[]) => Promise<{ host: string }>>
> = {
  'a Pod': (ip, allowed) => podBackend(rulesAt(ip, {}, allowed), targetOf('pods'), signal),
  'a Pod of a machine': (ip, allowed) =>
    podBackend(rulesAt(ip, { [workloadMark]: 'laptop' }, allowed), targetOf('pods'), signal),
  'an endpoint of a Service': (ip, allowed) =>
    serviceBackend(rulesAt(ip, {}, allowed), targetOf('services'), service, signal),
  'an endpoint of a machine': (ip, allowed) =>
    serviceBackend(
      rulesAt(ip, { [workloadMark]: 'laptop' }, allowed),
      targetOf('services'),
      service,
      signal,
    ),
  'a node': (ip, allowed) =>
    nodeBackend(
      {
        view: nodeAt(ip, 'InternalIP'),
        clusterCaPem: () => '',
        isAllowedTarget: rulesAt(ip, {}, allowed).isAllowedTarget,
      },
      targetOf('nodes'),
      signal,
    ),
  'a node by its external address': (ip, allowed) =>
    nodeBackend(
      {
        view: nodeAt(ip, 'ExternalIP'),
        clusterCaPem: () => '',
        isAllowedTarget: rulesAt(ip, {}, allowed).isAllowedTarget,
      },
      targetOf('nodes'),
      signal,
    ),
}

/** Those of the addresses that are not refused in these words. */
async function notRefused(
  addresses: readonly string[],
  dial: (ip: string) => Promise<unknown>,
  refusal = /address not allowed|no endpoints/,
): Promise<string[]> {
  const others: string[] = []
  for (const ip of addresses) {
    const said = await dial(ip).then(
      () => 'dialed',
      (error: unknown) => String(error),
    )
    if (!refusal.test(said)) others.push(`${ip}: ${said}`)
  }
  return others
}

const isLoopbackForm = (ip: string): boolean => ip === '127.0.0.0' || ip === '::1'

test.each(Object.entries(dialPaths))(
  'the service proxy does not dial %s at any address of the tables [SEC-R1201]',
  async (path, backendOf) => {
    // Processes of `workload run` are on loopback; admission decides who may say so.
    const tried = path.includes('machine') ? never.filter((ip) => !isLoopbackForm(ip)) : never
    expect(await notRefused(tried, (ip) => backendOf(ip))).toEqual([])
    expect((await backendOf('10.1.2.3')).host).toBe('10.1.2.3')
  },
)

test.each(Object.entries(dialPaths))(
  'with allowed ranges the service proxy dials %s in these only [SEC-R1204]',
  async (_path, backendOf) => {
    const pods = ['10.244.0.0/16', 'fd12::/64']
    expect((await backendOf('10.244.1.2', pods)).host).toBe('10.244.1.2')
    expect((await backendOf('fd12::7', pods)).host).toBe('fd12::7')
    const outside = ['10.1.2.3', '8.8.8.8', 'fd13::1', '127.0.0.1', '::1']
    expect(await notRefused(outside, (ip) => backendOf(ip, pods))).toEqual([])
    // A range that holds an address that is never dialed does not open it.
    const tried = never.filter((ip) => !isLoopbackForm(ip))
    expect(await notRefused(tried, (ip) => backendOf(ip, ['0.0.0.0/0', '::/0']))).toEqual([])
  },
)

test.each([
  ['strictly', false],
  ['with private addresses', true],
])(
  'a relying party fetches nothing at a name with such an address, %s [SEC-R1201]',
  async (_how, isOpen) => {
    const isAllowedAddress = addressTest(isOpen)
    const blocked = forms.filter((ip) => !isAllowedAddress(ip))
    expect(blocked.length).toBeGreaterThan(100)
    const fetchAt = (ip: string): Promise<unknown> =>
      fetchProviderDocument(new URL('https://issuer.example/'), {
        isAllowedAddress,
        allowHttp: 'never',
        timeoutMs: 5_000,
        maxBytes: 1_000,
        // One of several addresses is enough, in whichever place.
        resolve: (_name, _options, done) =>
          done(null, [
            { address: '93.184.216.34', family: 4 },
            { address: ip, family: ip.includes(':') ? 6 : 4 },
          ]),
      })
    expect(await notRefused(blocked, fetchAt, /is not allowed; private addresses must be/)).toEqual(
      [],
    )
  },
)

test('an agent of the tunnel dials no platform address, neither by address nor by name [SEC-R1205]', async () => {
  const platform = platformAddresses.map(({ range }) => first(range))
  const options = { signal, timeoutMs: 5_000, slots: new Slots(10) }
  const dial = (host: string, addresses: readonly string[]): Promise<unknown> =>
    dialTarget(`${host}:80`, { ...options, resolve: async () => addresses })
  const ways: readonly ((ip: string) => Promise<unknown>)[] = [
    (ip) => dial(ip.includes(':') ? `[${ip}]` : ip, []),
    (ip) => dial('metadata.example', [ip]),
    (ip) => dial('mixed.example', ['10.1.2.3', ip]),
    // A resolver takes this for an address.
    (ip) => dial('0xa9fea9fe', [ip]),
  ]
  const tried = platform.flatMap((address) => [address, ...embedded(address)])
  for (const way of ways)
    expect(await notRefused(tried, way, /operation not permitted/)).toEqual([])
})
