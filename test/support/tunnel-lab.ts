import { mkdtemp, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type TunnelCertificates,
  writeTunnelCertificates,
} from '../../bench/tunnel/pairs-certificates.ts'
import {
  type AgentPlace,
  agentFlags,
  type FrontMode,
  type ServerPlace,
  serverFlags,
} from '../../bench/tunnel/pairs-flags.ts'
import { freePorts } from '../../bench/tunnel/pairs-ports.ts'
import { buildOnce } from '../build-once.ts'
import { eventually } from './eventually.ts'
import { type Outcome, run } from './kubectl.ts'
import { LoggedProcess } from './logged-process.ts'
import { findPeer } from './peers.ts'
import { type ConnectDoor, dialByConnect } from './tunnel-front.ts'

/** Whose program an end of the tunnel is. */
export type Maker = 'go' | 'ours'

/** How a front end is reached. */
export type Transport = 'uds' | 'tcp'

/** Programs without which nothing of the tunnel can be tested against its real peers. */
export const tunnelPeers = ['konnectivity-server-0.36', 'konnectivity-agent-0.36', 'tunnel-load']

/** A running tunnel server. */
export interface TunnelServer {
  readonly program: LoggedProcess
  readonly maker: Maker
  readonly place: ServerPlace
  /** Flags of `tunnel-load` that lead to its front end. */
  readonly frontFlags: readonly string[]
  readonly metrics: () => Promise<Map<string, number>>
  /** Dials as kube-apiserver would: gRPC with the konnectivity-client library, CONNECT by itself. */
  readonly dial: (target: string, signal?: AbortSignal) => Promise<Socket>
}

/** A running agent. */
export interface TunnelAgent {
  readonly program: LoggedProcess
  readonly maker: Maker
  readonly place: AgentPlace
  readonly metrics: () => Promise<Map<string, number>>
}

/** How to start a server; what is left out is chosen. */
export interface ServerWish {
  readonly maker: Maker
  readonly mode: FrontMode
  readonly transport?: Transport
  readonly place?: ServerPlace
  readonly flags?: readonly string[]
  /** Usual flags that it shall not have, without dashes. */
  readonly without?: readonly string[]
}

/** How to start an agent of a server, or of whatever listens on `port`. */
export interface AgentWish {
  readonly maker: Maker
  readonly port: number
  readonly host?: string
  readonly flags?: readonly string[]
  /** Usual flags that it shall not have, without dashes. */
  readonly without?: readonly string[]
}

const programs = {
  go: { server: 'konnectivity-server-0.36', agent: 'konnectivity-agent-0.36' },
} as const

function peerPath(name: string): string {
  const peer = findPeer(name)
  if ('missing' in peer) throw new Error(peer.missing)
  return peer.path
}

/** Samples of a metrics page by name and labels. */
function parseMetrics(page: string): Map<string, number> {
  const samples = new Map<string, number>()
  for (const line of page.split('\n')) {
    const at = line.lastIndexOf(' ')
    if (at > 0 && !line.startsWith('#')) samples.set(line.slice(0, at), Number(line.slice(at + 1)))
  }
  return samples
}

function flagsOf(
  usual: readonly string[],
  { flags = [], without = [] }: Pick<ServerWish, 'flags' | 'without'>,
): string[] {
  const kept = usual.filter((flag) => !without.some((name) => flag.startsWith(`--${name}=`)))
  return [...kept, ...flags]
}

async function metricsAt(port: number): Promise<Map<string, number>> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  return parseMetrics(await response.text())
}

const isOk = async (port: number, path: string): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).ok

/** A place in which ends of tunnels are started; all of them end with it. */
export class TunnelLab {
  readonly directory: string
  readonly certificates: TunnelCertificates
  readonly #running: LoggedProcess[] = []
  #count = 0

  constructor(directory: string, certificates: TunnelCertificates) {
    this.directory = directory
    this.certificates = certificates
  }

  static async open(names?: readonly string[]): Promise<TunnelLab> {
    const directory = await mkdtemp(join(tmpdir(), 'tunnel-'))
    return new TunnelLab(
      directory,
      await writeTunnelCertificates(join(directory, 'pki'), names ?? ['127.0.0.1', 'localhost']),
    )
  }

  /** A path in the lab that nobody has yet; short enough for a UNIX socket. */
  fresh(suffix: string): string {
    this.#count += 1
    return join(this.directory, `${this.#count}.${suffix}`)
  }

  /** Starts any program that ends with the lab. */
  start(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): LoggedProcess {
    const started = new LoggedProcess(program, args, env)
    this.#running.push(started)
    return started
  }

  /** Starts one end of the tunnel, theirs or ours, with upstream's flags; `before` is a command to run it under. */
  async startEnd(
    maker: Maker,
    end: 'server' | 'agent',
    flags: readonly string[],
    before: readonly string[] = [],
  ): Promise<LoggedProcess> {
    const own =
      maker === 'go'
        ? [peerPath(programs.go[end])]
        : [process.execPath, join(await buildOnce(), 'cli', 'main.js'), 'tunnel', end]
    const [program = '', ...args] = [...before, ...own, ...flags]
    return this.start(program, args)
  }

  async newPlace(mode: FrontMode, transport: Transport = 'uds'): Promise<ServerPlace> {
    const [port = 0, agentPort = 0, healthPort = 0, adminPort = 0] = await freePorts(4)
    const front = transport === 'uds' ? { uds: this.fresh('sock') } : { port }
    return { mode, front, agentPort, healthPort, adminPort }
  }

  /** Starts a server and waits until it is alive; it is ready once an agent has come. */
  async server(wish: ServerWish): Promise<TunnelServer> {
    const place = wish.place ?? (await this.newPlace(wish.mode, wish.transport))
    const flags = flagsOf(serverFlags(this.certificates, place), wish)
    const program = await this.startEnd(wish.maker, 'server', flags)
    await this.#alive(program, place.healthPort, `a server by ${wish.maker}`)
    const frontFlags = this.#frontFlags(place)
    return {
      program,
      maker: wish.maker,
      place,
      frontFlags,
      metrics: () => metricsAt(place.healthPort),
      dial: await this.#dialer(place, frontFlags),
    }
  }

  /** Starts an agent and waits until it is alive. */
  async agent(wish: AgentWish): Promise<TunnelAgent> {
    const [healthPort = 0, adminPort = 0] = await freePorts(2)
    const place = { host: wish.host ?? '127.0.0.1', port: wish.port, healthPort, adminPort }
    const flags = flagsOf(agentFlags(this.certificates, place), wish)
    const program = await this.startEnd(wish.maker, 'agent', flags)
    await this.#alive(program, healthPort, `an agent by ${wish.maker}`)
    return { program, maker: wish.maker, place, metrics: () => metricsAt(healthPort) }
  }

  /** Waits until the server has so many agents, or the agent so many servers. */
  async ready(server: TunnelServer, agents = 1): Promise<void> {
    const name = 'konnectivity_network_proxy_server_ready_backend_connections'
    await eventually(`${agents} agents at the server`, async () => {
      return (await server.metrics()).get(name) === agents
    })
    if (agents > 0) await eventually('readyz', () => isOk(server.place.healthPort, '/readyz'))
  }

  async agentReady(agent: TunnelAgent, servers = 1): Promise<void> {
    const name = 'konnectivity_network_proxy_agent_open_server_connections'
    await eventually(`${servers} servers at the agent`, async () => {
      return (await agent.metrics()).get(name) === servers
    })
  }

  /** Runs `tunnel-load` through a server's front end; fails with what it said on stderr. */
  async load(
    server: TunnelServer,
    mode: string,
    ...flags: readonly string[]
  ): Promise<Record<string, unknown>> {
    const outcome = await this.tryLoad(server, mode, ...flags)
    if (outcome.code !== 0) {
      const said = server.program.lines.slice(-5).join('\n')
      throw new Error(`${outcome.stderr}the server said last:\n${said}`)
    }
    const result: unknown = JSON.parse(outcome.stdout)
    return result as Record<string, unknown>
  }

  tryLoad(server: TunnelServer, mode: string, ...flags: readonly string[]): Promise<Outcome> {
    return run(peerPath('tunnel-load'), [mode, ...server.frontFlags, ...flags])
  }

  /** Starts what `tunnel-load` talks to and returns its address. */
  async loadTarget(): Promise<string> {
    const program = this.start(peerPath('tunnel-load'), ['target'])
    return program.said(/^127/)
  }

  async close(): Promise<void> {
    await Promise.all(this.#running.map((program) => program.stop('SIGKILL')))
    await rm(this.directory, { recursive: true, force: true })
  }

  async #alive(program: LoggedProcess, healthPort: number, what: string): Promise<void> {
    await eventually(`healthz of ${what}`, async () => {
      if (program.isGone) return 'gone'
      return isOk(healthPort, '/healthz')
    })
    if (program.isGone) throw new Error(`${what} ended at once:\n${program.log}`)
  }

  #frontFlags(place: ServerPlace): string[] {
    const { front, mode } = place
    if ('uds' in front) return ['--front', mode, '--uds', front.uds]
    const { frontCa, frontClient } = this.certificates
    const tls = ['--ca', frontCa, '--cert', frontClient.cert, '--key', frontClient.key]
    return ['--front', mode, '--address', `127.0.0.1:${front.port}`, ...tls]
  }

  async #dialer(place: ServerPlace, frontFlags: readonly string[]): Promise<TunnelServer['dial']> {
    const door = await this.#door(place, frontFlags)
    return (target, signal) => dialByConnect(door, target, signal)
  }

  async #door({ mode, front }: ServerPlace, frontFlags: readonly string[]): Promise<ConnectDoor> {
    if (mode === 'grpc') {
      const uds = this.fresh('bridge')
      const flags = [...frontFlags, '--listen', uds]
      await this.start(peerPath('tunnel-load'), ['bridge', ...flags]).said(/bridge$/)
      return { uds }
    }
    if ('uds' in front) return front
    const { frontCa: ca, frontClient: client } = this.certificates
    return { host: '127.0.0.1', port: front.port, ca, client }
  }
}
