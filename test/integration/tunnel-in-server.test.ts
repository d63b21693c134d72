import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { directDialer } from '../../src/apiserver/feature.ts'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import type { Feature } from '../../src/apiserver/index.ts'
import { addRevocation } from '../../src/authn/index.ts'
import { runCommand } from '../../src/cli/run-command.ts'
import { tunnelServerCommand } from '../../src/cli/tunnel/commands.ts'
import { ApiError, type Dialer, silentLogger, systemClock } from '../../src/core/index.ts'
import { parsePem } from '../../src/pki/index.ts'
import {
  createTunnelAgent,
  type Resolve,
  type TunnelAgent,
  type TunnelAgentOptions,
  tunnelAgentOptionValues,
} from '../../src/tunnel/index.ts'
import { openBlackhole } from '../support/blackhole.ts'
import { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { echoTarget, type TcpTarget } from '../support/tcp-target.ts'

let scratch: string
const undo: (() => Promise<unknown> | void)[] = []
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-tunnel-in-server-'))
  undo.push(() => rm(scratch, { recursive: true, force: true }))
})
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

const tunnelFlags = ['--tunnel', '--tunnel-agent-port', '0']
const soon = (): AbortSignal => AbortSignal.timeout(10_000)

/** A server, and the dialer that its features get. */
async function start(flags: readonly string[], dataDirectory = join(scratch, 'data')) {
  const handed: { dialer?: Dialer } = {}
  const dials: Feature = {
    name: 'dials',
    open: async ({ dialer }) => {
      handed.dialer = dialer
      return {}
    },
  }
  const features = [...allFeatures, dials]
  const server = await startInProcess({ flags, features, dataDirectory })
  undo.push(() => server.close())
  if (!handed.dialer) throw new Error('no dialer')
  return { server, dialer: handed.dialer }
}

async function target(): Promise<TcpTarget> {
  const echo = await echoTarget()
  undo.push(() => echo.close())
  return echo
}

/** An agent as another machine would run it. */
async function startAgent(
  server: InProcessServer,
  given: {
    readonly organizations?: readonly string[]
    readonly options?: Partial<TunnelAgentOptions>
    readonly resolve?: Resolve
    readonly node?: string
  } = {},
): Promise<TunnelAgent> {
  const { organizations = ['system:nodes'], options = {}, resolve, node = 'edge' } = given
  const { cert = '', key = '' } = await server.issue(`system:node:${node}`, organizations)
  const at = (name: string) => join(scratch, `${node}-${name}`)
  await writeFile(at('agent.crt'), cert)
  await writeFile(at('agent.key'), key)
  const port = Number(server.serving.listeners['tunnel']?.split(':').at(-1))
  const agent = createTunnelAgent({
    options: tunnelAgentOptionValues({
      proxyServerPort: port,
      caCert: join(server.dataDirectory, 'pki', 'ca.crt'),
      agentCert: at('agent.crt'),
      agentKey: at('agent.key'),
      healthServerHost: '127.0.0.1',
      healthServerPort: 0,
      adminServerPort: 0,
      ...options,
    }),
    clock: systemClock,
    log: silentLogger,
    isRoot: false,
    env: {},
    ...(resolve && { resolve }),
  })
  await agent.start()
  undo.push(() => agent.stop(AbortSignal.abort()))
  return agent
}

const nodeWith = (name = '', address = '') => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  status: { addresses: [{ type: 'InternalIP', address }] },
})

async function echoed(dialer: Dialer, host: string, port: number): Promise<string> {
  const connection = await dialer.dial({ host, port }, soon())
  connection.write('hello')
  const [bytes] = await once(connection, 'data')
  connection.destroy()
  return String(bytes)
}

describe('--egress tunnel', () => {
  const flags = [...tunnelFlags, '--egress', 'tunnel']

  test('what a feature dials is found and reached by an agent', async () => {
    const { server, dialer } = await start(flags)
    const { port } = await target()
    // Only the agent knows the way.
    const agent = await startAgent(server, { resolve: async () => ['127.0.0.1'] })
    await agent.connected(soon())
    expect(await echoed(dialer, 'edge', port)).toBe('hello')
  })

  test('[SEC-R801, SEC-R803, SEC-R807] a node that announces what another one has gets none of its traffic', async () => {
    const { server, dialer } = await start(flags)
    const { port } = await target()
    const asked: string[] = []
    const announces = 'host=victim&ipv4=203.0.113.7&cidr=203.0.113.0/24&default-route=true'
    const hostile = await startAgent(server, {
      node: 'hostile',
      options: { agentId: 'victim', agentIdentifiers: announces },
      resolve: async (host) => {
        asked.push(host)
        return ['127.0.0.1']
      },
    })
    await hostile.connected(soon())
    const refused = await server.logged('identifiers of an agent refused')
    expect(refused).toContain('CN=system:node:hostile')
    expect(refused).toMatch(/"serial":"[0-9A-F]+"/)
    const nodes = await server.admin()
    for (const [name, address] of [
      ['victim', '203.0.113.7'],
      ['hostile', '203.0.113.8'],
    ])
      expect((await nodes.post('/api/v1/nodes', nodeWith(name, address))).status).toBe(201)
    const own = server.as(await server.issue('system:node:hostile', ['system:nodes']))
    const claimed = await own.request('/api/v1/nodes/hostile/status', {
      method: 'PATCH',
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { status: nodeWith('hostile', '203.0.113.7').status },
    })
    expect(claimed.status).toBe(403)
    for (const host of ['victim', '203.0.113.7', '::ffff:203.0.113.7', '203.0.113.9', '10.0.0.1'])
      await expect(dialer.dial({ host, port }, soon())).rejects.toThrow(
        'no connected agent serves it',
      )
    expect([asked, hostile.activeConnections]).toEqual([[], 0])
    const victim = await startAgent(server, { node: 'victim', resolve: async () => ['127.0.0.1'] })
    await victim.connected(soon())
    expect(await echoed(dialer, 'victim', port)).toBe('hello')
    expect(asked).toEqual([])
  })

  test('[SEC-R805] what belongs to no node goes to the local agent, and to others with the permission', async () => {
    const { server, dialer } = await start([...flags, '--tunnel-local-agent'])
    const { port } = await target()
    await server.logged('agent serves the default route')
    expect(await echoed(dialer, '127.0.0.1', port)).toBe('hello')
    const { status, object } = await (await server.admin()).get(
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sallyport:tunnel-default-route',
    )
    expect([status, object]).toMatchObject([
      200,
      { subjects: [{ kind: 'Group', name: 'system:sallyport:default-route-agents' }] },
    ])
  })

  test('without an agent the dial fails at once with a 503, and nothing is dialled directly', async () => {
    const { dialer } = await start(flags)
    const { port, open } = await target()
    const failure = await dialer.dial({ host: '127.0.0.1', port }, soon()).catch((err) => err)
    expect(failure).toBeInstanceOf(ApiError)
    expect([failure.reason, failure.message]).toEqual([
      'ServiceUnavailable',
      `cannot reach 127.0.0.1:${port} through the tunnel: no connected agent serves it`,
    ])
    expect(open.size).toBe(0)
  })

  test('what the agent cannot reach is a 503 with its words', async () => {
    const { server, dialer } = await start([...flags, '--tunnel-local-agent'])
    await server.logged('agent serves the default route')
    const gone = await echoTarget()
    await gone.close()
    const failure = await dialer
      .dial({ host: '127.0.0.1', port: gone.port }, soon())
      .catch((err) => err)
    expect(failure).toMatchObject({ reason: 'ServiceUnavailable' })
    expect(failure.message).toMatch(/through the tunnel: .*connection refused/)
  })

  test('needs the tunnel', async () => {
    await expect(start(['--egress', 'tunnel'])).rejects.toThrow('--egress tunnel needs --tunnel')
  })
})

describe('--egress direct', () => {
  test('dials by TCP, though agents are connected', async () => {
    const { server, dialer } = await start([...tunnelFlags, '--tunnel-local-agent'])
    await server.logged('agent connected')
    const { port } = await target()
    expect(await echoed(dialer, '127.0.0.1', port)).toBe('hello')
    const { text } = await (await server.admin()).get('/metrics')
    expect(text).toMatch(/^konnectivity_network_proxy_server_dial_duration_seconds_count 0$/m)
  })

  test('gives up on what does not answer at its deadline', async () => {
    const blackhole = await openBlackhole()
    undo.push(() => blackhole.close())
    const [host = '', port] = blackhole.address.split(':')
    const dialed = directDialer(100).dial({ host, port: Number(port) }, soon())
    await expect(dialed).rejects.toThrow(`cannot reach ${blackhole.address}: no answer in time`)
  })
})

describe('the port for agents', () => {
  test('takes certificates of the cluster that name system:nodes, and no others', async () => {
    const { server } = await start(tunnelFlags)
    const person = await startAgent(server, { organizations: ['system:masters'] })
    expect(await server.logged('agent refused')).toContain('does not name system:nodes')
    expect(person.servers).toEqual([])
    const node = await startAgent(server)
    await node.connected(soon())
  })

  test('[TUN-F16] cuts an agent whose user is revoked, and lets it in no more', async () => {
    const { server } = await start(tunnelFlags)
    const agent = await startAgent(server)
    await agent.connected(soon())
    const node = { type: 'user', value: 'system:node:edge' } as const
    await addRevocation(server.serving.view, node, soon())
    expect(await server.logged('a connection is cut')).toContain('or its user is revoked')
    expect(await server.logged('agent refused')).toContain('or its user is revoked')
    expect(agent.servers).toEqual([])
  })

  test('is shown in the metrics of the server', async () => {
    const { server } = await start([...tunnelFlags, '--tunnel-local-agent'])
    await server.logged('agent connected')
    const { text } = await (await server.admin()).get('/metrics')
    expect(text).toContain(
      'konnectivity_network_proxy_server_ready_backends{proxy_strategy="destHost"} 1',
    )
  })

  test('shows the own CA to agents even where the API shows a certificate from elsewhere', async () => {
    const first = await start([], join(scratch, 'other'))
    for (const name of ['apiserver.crt', 'apiserver.key'])
      await copyFile(join(first.server.dataDirectory, 'pki', name), join(scratch, name))
    const { server } = await start([
      ...tunnelFlags,
      '--tunnel-local-agent',
      '--tls-cert-file',
      join(scratch, 'apiserver.crt'),
      '--tls-private-key-file',
      join(scratch, 'apiserver.key'),
    ])
    expect(await server.logged('agent connected')).toContain(hostname().toLowerCase())
  })

  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outward = own.find(({ internal, family }) => !internal && family === 'IPv4')?.address
  const ipv6 = own.some(({ address }) => address === '::1') ? ['::', '::1'] : []

  test.skipIf(outward === undefined)('is opened to other machines by its own option', async () => {
    const { server } = await start([...tunnelFlags, '--tunnel-agent-bind-address', '0.0.0.0'])
    const agent = await startAgent(server, { options: { proxyServerHost: [outward ?? ''] } })
    await expect(agent.connected(soon())).resolves.toBeUndefined()
  })

  test.each(['0.0.0.0', ...ipv6])('is reached by the local agent at %s', async (address) => {
    const flags = ['--tunnel-local-agent', '--tunnel-agent-bind-address', address]
    const { server } = await start([...tunnelFlags, ...flags])
    expect(await server.logged('agent connected')).toContain('"agents":1')
  })

  test('is not there unless asked for', async () => {
    const { server } = await start([])
    expect(server.serving.listeners).toEqual({})
    const { text } = await (await server.admin()).get('/metrics')
    expect(text).not.toContain('konnectivity')
  })
})

test('[TUN-F16] a tunnel server alone follows the list of revoked certificates where it is asked to', async () => {
  const { server } = await start([])
  const pki = (name: string) => join(server.dataDirectory, 'pki', name)
  const alone = await runTunnelServer([
    '--follow-revocations',
    `--kubeconfig=${server.serving.adminKubeconfig}`,
    `--cluster-cert=${pki('apiserver.crt')}`,
    `--cluster-key=${pki('apiserver.key')}`,
    `--cluster-ca-cert=${pki('ca.crt')}`,
    `--uds-name=${join(scratch, 'front.sock')}`,
    '--server-port=0',
    '--agent-port=0',
    '--health-port=0',
    '--admin-port=0',
  ])
  const agent = await startAgent(server, { options: { proxyServerPort: alone.port } })
  await agent.connected(soon())
  const node = { type: 'user', value: 'system:node:edge' } as const
  await addRevocation(server.serving.view, node, soon())
  const patient = { timeout: 10_000 }
  await expect.poll(alone.log, patient).toMatch(/a connection is cut.*or its user is revoked/)
  await expect.poll(alone.log, patient).toMatch(/agent refused.*or its user is revoked/)
})

/** `sallyport tunnel server` in this process. */
async function runTunnelServer(flags: readonly string[]) {
  const drain = new AbortController()
  let stderr = ''
  let told: (line: string) => void = () => {}
  const said = new Promise<string>((resolve) => {
    told = resolve
  })
  const argv = ['tunnel', 'server', ...flags, '--output=json']
  const ended = runCommand([tunnelServerCommand], argv, {
    env: {},
    interactive: false,
    columns: 100,
    isRoot: false,
    homeDirectory: scratch,
    stdout: (text) => told(text),
    stderr: (text) => {
      stderr += text
    },
    drain: drain.signal,
    kill: new AbortController().signal,
  })
  undo.push(async () => {
    drain.abort()
    await ended
  })
  const { agents } = JSON.parse(await Promise.race([said, ended.then(() => stderr)]))
  return { port: Number(String(agents).split(':').at(-1)), log: () => stderr }
}

describe('from the nodes', () => {
  const nodeOptions = (address: string): Partial<TunnelAgentOptions> => ({
    featureGates: ['NodeToMasterTraffic=true'],
    bindAddress: '127.0.0.1',
    target: [`${address}:0`],
  })

  test.each(['127.0.0.1', 'localhost'])('agents reach this API server as %s', async (host) => {
    const { server } = await start(tunnelFlags)
    const agent = await startAgent(server, { options: nodeOptions(`${host}:${server.port}`) })
    await agent.connected(soon())
    const [{ port } = { port: 0 }] = agent.nodePorts
    // The API server's own certificate is what the client verifies.
    const caller = new HttpsCaller({ port, ca: server.serving.pki.clusterCa.bundlePem })
    undo.push(() => caller.close())
    expect((await caller.get('/version')).status).toBe(200)
  })

  test('and nothing else of this machine', async () => {
    const { server } = await start(tunnelFlags)
    const other = await target()
    const agent = await startAgent(server, { options: nodeOptions(other.address) })
    await agent.connected(soon())
    const [{ port } = { port: 0 }] = agent.nodePorts
    const caller = new HttpsCaller({ port, ca: server.serving.pki.clusterCa.bundlePem })
    undo.push(() => caller.close())
    await expect(caller.get('/')).rejects.toThrow(/socket|ECONNRESET/)
    expect(await server.logged('dial of an agent refused')).toContain('is not allowed')
    expect(other.open.size).toBe(0)
  })
})

describe('the agent inside the server', () => {
  const flags = [...tunnelFlags, '--tunnel-local-agent']
  const file = () => join(scratch, 'data', 'pki', 'tunnel-agent.pem')

  test('has a certificate of its node, which only the owner can read and which is kept', async () => {
    const first = await start(flags)
    await first.server.logged('agent connected')
    expect((await stat(file())).mode & 0o777).toBe(0o600)
    const pem = await readFile(file(), 'utf8')
    expect(parsePem(pem).map(({ label }) => label)).toEqual(['PRIVATE KEY', 'CERTIFICATE'])
    await first.server.halt()
    const second = await start(flags)
    await second.server.logged('agent connected')
    expect(await readFile(file(), 'utf8')).toBe(pem)
    expect(second.server.log).toContain(hostname().toLowerCase())
  })

  test('replaces a certificate that is no good', async () => {
    await mkdir(join(scratch, 'data', 'pki'), { recursive: true, mode: 0o700 })
    await writeFile(file(), 'garbage', { mode: 0o600 })
    const { server } = await start(flags)
    await server.logged('agent connected')
    expect(await readFile(file(), 'utf8')).toContain('BEGIN CERTIFICATE')
  })

  test('never takes the server down with it', async () => {
    await mkdir(file(), { recursive: true, mode: 0o700 })
    const { server } = await start(flags)
    expect(server.log).toContain('cannot start the local agent, continuing without it')
    expect((await (await server.admin()).get('/readyz')).status).toBe(200)
  })
})
