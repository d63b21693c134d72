import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { joinCommand } from '../../src/cli/join/join.ts'
import { defaultOf } from '../../src/cli/options/help.ts'
import { upCommand } from '../../src/cli/up/up.ts'
import { userCreateCommand } from '../../src/cli/user/create.ts'
import { userRevokeCommand } from '../../src/cli/user/revoke.ts'
import {
  MetricsRegistry,
  type OptionTable,
  silentLogger,
  systemClock,
} from '../../src/core/index.ts'
import { openPki, privateKeyPem } from '../../src/pki/index.ts'
import { AgentMetrics } from '../../src/tunnel/agent/metrics.ts'
import { allCapabilities, formatCapabilities } from '../../src/tunnel/link/link.ts'
import { tunnelAgentOptions, tunnelServerOptions } from '../../src/tunnel/options/index.ts'
import { ServerMetrics } from '../../src/tunnel/server/metrics.ts'
import { strategyNames } from '../../src/tunnel/server/strategies.ts'
import { buildOnce } from '../build-once.ts'
import { eventually } from '../support/eventually.ts'
import { HttpsCaller } from '../support/https-caller.ts'
import { LoggedProcess } from '../support/logged-process.ts'
import { echoTarget } from '../support/tcp-target.ts'

const root = new URL('../../', import.meta.url)
const page = await readFile(new URL('docs/features/tunnel.md', root), 'utf8')
const codeBlocks = [...page.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(
  ([, language = '', text = '']) => ({ language, text }),
)
const blocksOf = (language: string): string[] =>
  codeBlocks.filter((block) => block.language === language).map(({ text }) => text)
const section = (title: string): string =>
  page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? ''

describe('the page of the tunnel [TUN-I5]', () => {
  test.each([
    '60 seconds',
    'In the place of Konnectivity',
    'Front ends',
    "In Sallyport's API server",
    "From the node's network to the control plane",
    'High availability',
    'Strategies',
    'Drain',
    'Metrics and health',
    'Security model',
    'Risks and mitigations',
    'Test plan',
    'Graduation',
    'Upgrade and downgrade',
    'Version skew',
    'Limits',
    'Non-goals',
  ])('has something to say on: %s', (title) => {
    expect(section(title).length).toBeGreaterThan(200)
    expect(section(title)).not.toMatch(/\b(?:TODO|TBD)\b/)
  })

  test('names flags that exist', () => {
    const tables: OptionTable[] = [
      tunnelServerOptions,
      tunnelAgentOptions,
      upCommand.options,
      userCreateCommand.options,
      userRevokeCommand.options,
      joinCommand.options,
    ]
    // Those of kubectl.
    const known = new Set([
      'server',
      'kubeconfig',
      'raw',
      'clusterrole',
      'user',
      ...tables.flatMap((one) => Object.keys(one)),
    ])
    const named = [...page.matchAll(/--([a-z][a-z-]*[a-z])/g)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(80)
    expect(named.filter((name) => !known.has(name))).toEqual([])
  })

  test.each([
    ['keepalive-time', '30s', tunnelServerOptions],
    ['pending-dial-timeout', '30s', tunnelServerOptions],
    ['max-connection-buffer', '64Mi', tunnelServerOptions],
    ['max-agent-buffer', '256Mi', tunnelServerOptions],
    ['max-concurrent-dials', '1000', tunnelAgentOptions],
    ['drain-timeout', '30s', tunnelAgentOptions],
  ] as const)('is right about a default: %s is %s', (name, value, table: OptionTable) => {
    const option = table[name]
    expect(option && defaultOf(option)).toBe(value)
    const row = page.split('\n').find((line) => line.startsWith('|') && line.includes(`--${name}`))
    expect(row).toContain(value)
  })

  test('names ports that are the defaults', () => {
    const text = section('Metrics and health')
    for (const port of [
      tunnelServerOptions['health-port'].default,
      tunnelServerOptions['admin-port'].default,
      tunnelAgentOptions['health-server-port'].default,
      tunnelAgentOptions['admin-server-port'].default,
    ]) {
      expect(text).toContain(String(port))
    }
  })

  test('names metrics that exist', () => {
    const registry = new MetricsRegistry()
    const zero = (): number => 0
    new ServerMetrics(registry).observe({
      proxyStreams: zero,
      agentStreams: zero,
      httpConnections: zero,
      agents: zero,
      agentsByStrategy: () => [],
      pendingDials: zero,
      establishedConnections: zero,
      fullFromClients: zero,
      fullFromAgents: zero,
    })
    const agent = new AgentMetrics()
    agent.observe({
      openServerConnections: zero,
      knownServerCount: zero,
      openEndpointConnections: zero,
    })
    const shown = registry.expose() + agent.registry.expose()
    const named = [...new Set(page.match(/konnectivity_network_proxy_\w+/g))]
    expect(named.length).toBeGreaterThan(5)
    for (const name of named) expect(shown).toContain(`# TYPE ${name} `)
  })

  test('names every strategy, and the capabilities as they are sent', () => {
    for (const name of strategyNames) expect(section('Strategies')).toContain(`\`${name}\``)
    expect(section('Version skew')).toContain(`\`${formatCapabilities(allCapabilities)}\``)
  })

  test('names files that exist', () => {
    const linked = [...page.matchAll(/\]\(([^)#]+)\)/g)].map(
      ([, path = '']) => new URL(path, new URL('docs/features/', root)),
    )
    const tests = (page.match(/`(?:src|test)\/[\w./-]+`/g) ?? []).map(
      (path) => new URL(path.slice(1, -1), root),
    )
    expect([linked.length > 5, tests.length > 8]).toEqual([true, true])
    expect([...linked, ...tests].filter((path) => !existsSync(path)).map(String)).toEqual([])
  })

  test('shows the configuration of kube-apiserver that deploy/ has', async () => {
    const [shown = ''] = blocksOf('yaml')
    const file = new URL('deploy/egress-selector-configuration.yaml', root)
    expect(parseYaml(shown)).toEqual(parseYaml(await readFile(file, 'utf8')))
  })

  test('names what is not a goal [TUN-R19]', () => {
    const text = section('Non-goals')
    expect(text).toMatch(/distribution of credentials/i)
    expect(text).toMatch(/at least one agent per node/)
  })
})

describe('what the page tells to type works [TUN-I5, TUN-I2]', { timeout: 60_000 }, () => {
  let scratch: string
  let running: LoggedProcess[] = []
  beforeAll(async () => void (await buildOnce()), 120_000)
  beforeEach(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'sallyport-tunnel-page-'))
  })
  afterEach(async () => {
    for (const program of running.toReversed()) await program.stop()
    running = []
    await rm(scratch, { recursive: true, force: true })
  })

  /** Runs a line of the page, with its files in the scratch directory and what else it is told. */
  async function type(line: string, flags: readonly string[] = []) {
    const [name, ...words] = line.trim().split(/\s+/)
    expect(name).toBe('sallyport')
    const args = words.map((word) => {
      if (word.startsWith('./')) return join(scratch, word)
      return /^[\w-]+\.(?:crt|key)$/.test(word) ? join(scratch, word) : word
    })
    const main = join(await buildOnce(), 'cli', 'main.js')
    const all = [main, ...args, ...flags, '--output', 'json']
    const program = new LoggedProcess(process.execPath, all)
    running.push(program)
    const said: unknown = JSON.parse(await program.said(/^\{"(?:server|serverId|agentId)":/))
    return { program, said: said as Record<string, string> }
  }

  const linesWith = (words: string): string[] =>
    blocksOf('sh')
      .find((text) => text.includes(words))
      ?.split('\n') ?? []

  test('the first minute: an API server reached through its own tunnel', async () => {
    const [up = '', agent = '', kubectl = ''] = linesWith('sallyport up --data-dir')
    const first = await type(up.replace(/7443/, '0').replace(/7091/, '0'))
    const { port } = new URL(first.said['server'] ?? '')
    const agentPort = first.said['tunnel']?.split(':').at(-1) ?? ''
    const local = await freePort()
    const second = await type(
      agent.replace('7091', agentPort).replace('7443:9443', `${port}:${local}`),
    )
    expect(second.said['agentId']).toMatch(/^[\da-f-]{36}$/)
    expect(kubectl).toContain('--server https://127.0.0.1:9443')
    const ca = await readFile(join(scratch, 'cluster', 'pki', 'ca.crt'), 'utf8')
    const caller = new HttpsCaller({ port: local, ca })
    const answer = await eventually('an answer through the tunnel', () => caller.get('/version'))
    caller.close()
    expect(answer.status).toBe(200)
  })

  test('the two programs alone, without any API server', async () => {
    const pki = await openPki(scratch, { clock: systemClock, log: silentLogger })
    await pki.ensureServing(['127.0.0.1'])
    const client = await pki.issueClient({ commonName: 'agent', organizations: [] })
    const files = {
      'server.crt': await readFile(pki.serving.certFile, 'utf8'),
      'server.key': await readFile(pki.serving.keyFile, 'utf8'),
      'agent.crt': client.certPem,
      'agent.key': privateKeyPem(client.key).reveal(),
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(scratch, name), text)
    const [server = '', agent = ''] = linesWith('sallyport tunnel server --mode')
    const free = ['--agent-port', '0', '--health-port', '0', '--admin-port', '0']
    const { said } = await type(server, free)
    const port = said['agents']?.split(':').at(-1) ?? ''
    const ports = ['--proxy-server-port', port, '--health-server-port', '0']
    await type(agent, [...ports, '--admin-server-port', '0'])
    const target = await echoTarget()
    const answer = await eventually('a connection', () => connectThrough(target.address))
    await target.close()
    expect(answer).toBe('HTTP/1.1 200 Connection Established')
  })

  async function connectThrough(address: string): Promise<string | false> {
    const socket = connect(join(scratch, 'front.sock'))
    socket.write(`CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
    const [bytes] = await once(socket, 'data')
    socket.destroy()
    const [line = ''] = String(bytes).split('\r\n')
    return line.includes(' 200 ') && line
  }
})

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const target = await echoTarget()
  await target.close()
  return target.port
}
