import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { parseOptions } from '../../cli/options/index.ts'
import { type Logger, silentLogger, systemClock } from '../../core/index.ts'
import type { Channel } from '../link/index.ts'
import { type TunnelAgentOptions, tunnelAgentOptions } from './options/index.ts'
import type { TunnelAgent, TunnelAgentParts } from './tunnel-agent.ts'
import { createTunnelAgent } from './tunnel-agent.ts'

const shape = {
  command: 'sallyport tunnel agent',
  summary: '',
  options: tunnelAgentOptions,
  examples: [],
}

/** The values of a command line. */
export async function agentOptions(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<TunnelAgentOptions> {
  const readFile = (): Promise<string> => Promise.reject(new Error('no file'))
  return (await parseOptions(shape, { argv, env, readFile })).values
}

/** A log whose lines a test can wait for. */
export class LogLines {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: object }[] =
    []
  readonly #waiting = new Set<() => void>()

  get log(): Logger {
    const at = (level: string) => (fields: object, message: string) => {
      this.lines.push({ level, message, fields })
      for (const look of this.#waiting) look()
    }
    const log: Logger = {
      error: at('error'),
      warn: at('warn'),
      info: at('info'),
      debug: at('debug'),
      trace: at('trace'),
      child: () => log,
    }
    return log
  }

  /** Resolves when a line with this text has been written, `times` times. */
  async seen(text: string, times = 1): Promise<void> {
    const isThere = (): boolean =>
      this.lines.filter(({ message }) => message.includes(text)).length >= times
    if (isThere()) return
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!isThere()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
    })
  }
}

/** What stands in `--ca-cert`, for servers that need not prove anything. */
export const labCa = '-----BEGIN CERTIFICATE-----'

/** Agents, servers and files of one test, ended together. */
export class AgentLab {
  readonly directory: string
  readonly #agents: TunnelAgent[] = []
  readonly #servers: Server[] = []
  readonly #sockets = new Set<Socket>()

  private constructor(directory: string) {
    this.directory = directory
  }

  static async open(): Promise<AgentLab> {
    const directory = await mkdtemp(join(tmpdir(), 'sallyport-agent-'))
    await writeFile(join(directory, 'ca.crt'), labCa)
    return new AgentLab(directory)
  }

  async write(name: string, content: string): Promise<string> {
    const path = join(this.directory, name)
    await writeFile(path, content)
    return path
  }

  /** An agent on free ports that is not started. */
  async agent(
    argv: readonly string[],
    parts: Partial<Omit<TunnelAgentParts, 'options'>> = {},
  ): Promise<TunnelAgent> {
    const ports = [
      '--health-server-port=0',
      '--admin-server-port=0',
      '--health-server-host=127.0.0.1',
    ]
    const ca = `--ca-cert=${join(this.directory, 'ca.crt')}`
    const options = await agentOptions([...ports, ca, '--sync-interval=10ms', ...argv])
    const agent = createTunnelAgent({
      options,
      clock: systemClock,
      log: silentLogger,
      isRoot: false,
      env: {},
      ...parts,
    })
    this.#agents.push(agent)
    return agent
  }

  /** A TCP server on a free port. */
  async serve(onConnection: (socket: Socket) => void, host = '127.0.0.1'): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      onConnection(socket)
    })
    server.listen(0, host)
    await once(server, 'listening')
    this.#servers.push(server)
    const address = server.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  /** A server that sends back what it gets. */
  echo(): Promise<number> {
    return this.serve((socket) => socket.pipe(socket))
  }

  /** Ends everything; throws when an agent that has stopped left something behind. */
  async close(): Promise<void> {
    for (const agent of this.#agents) await agent.stop(AbortSignal.abort())
    const left = (): number =>
      this.#agents.reduce((sum, agent) => sum + agent.activeConnections + agent.servers.length, 0)
    const lastMoment = performance.now() + 2_000
    while (left() > 0 && performance.now() < lastMoment) await immediate()
    if (left() > 0) throw new Error(`${left()} connections or links were left behind`)
    for (const socket of this.#sockets) socket.destroy()
    for (const server of this.#servers) server.close()
    await rm(this.directory, { recursive: true, force: true })
  }
}

/** Everything that comes out of a channel, as text; it is read at once. */
export class ChannelReader {
  text = ''
  readonly closed: Promise<Error | undefined>
  readonly finished: Promise<void>
  #look: (() => void) | undefined

  constructor(channel: Channel) {
    let end: (error?: Error) => void = () => {}
    let finish: () => void = () => {}
    this.closed = new Promise((resolve) => {
      end = resolve
    })
    this.finished = new Promise((resolve) => {
      finish = resolve
    })
    channel.start({
      data: (chunk) => {
        this.text += chunk.toString()
        channel.consumed(chunk.length)
        this.#look?.()
      },
      finished: finish,
      drained: () => {},
      closed: end,
    })
  }

  /** Resolves when exactly this much has come. */
  async until(text: string): Promise<void> {
    while (this.text.length < text.length) {
      await new Promise<void>((resolve) => {
        this.#look = resolve
      })
    }
    if (this.text !== text) throw new Error(`expected ${text}, got ${this.text}`)
  }
}

/** A port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const closed = once(server, 'close')
  server.close()
  await closed
  return typeof address === 'object' && address ? address.port : 0
}
