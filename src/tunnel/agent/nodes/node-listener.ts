import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { Backoff, type Clock, type Logger, systemErrorCode } from '../../../core/index.ts'
import { join, type Link, socketStream } from '../../link/index.ts'
import { ConnectionLimit } from '../../ports/connection-limit.ts'
import { SparseLog } from '../../sampled-log.ts'
import type { Activity } from '../activity.ts'
import type { Check } from '../endpoints.ts'
import type { Target } from '../options/index.ts'
import { dialControlPlane, whyNoLink } from './dial-control-plane.ts'
import { type InterfaceMaker, provideAddress } from './dummy-interface.ts'

/** How long a server may take to connect for us. */
const dialDeadlineMs = 30_000
const tcpKeepAliveMs = 30_000
const defaultMaxConnections = 5_000
const firstRetryMs = 100
const maxRetryMs = 5_000

/** What a listener works with. */
export interface NodeListenerParts {
  readonly bindAddress: string
  readonly links: () => readonly Link[]
  readonly activity: Activity
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  /** At a time; beyond, the address with most of them gives way. */
  readonly maxConnections?: number
}

/** One local port that stands for an address in the control plane. */
export class NodeListener {
  readonly target: Target
  readonly #parts: NodeListenerParts
  readonly #log: Logger
  /** Clients try again and again. */
  readonly #sparseLog: SparseLog
  readonly #sockets = new Set<Socket>()
  readonly #limit: ConnectionLimit
  readonly #stop = new AbortController()
  #server: Server | undefined
  #problem: string | undefined = 'is being opened'
  #binding: Promise<void> | undefined

  constructor(target: Target, parts: NodeListenerParts) {
    this.target = target
    this.#parts = parts
    this.#log = parts.log.child({ target: target.address })
    this.#sparseLog = new SparseLog(this.#log, parts.clock)
    const dropped = (): void =>
      this.#sparseLog.warn('crowd', { port: target.localPort }, 'too many local connections')
    const { maxConnections = defaultMaxConnections } = parts
    // The Pods of a node have one IPv6 network, but an address each.
    this.#limit = new ConnectionLimit(maxConnections, { dropped }, (address) => address)
  }

  /** Why nobody can connect yet, or nothing. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The port that is listened on, once it is. */
  get port(): number | undefined {
    const address = this.#server?.address()
    return typeof address === 'object' ? address?.port : undefined
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  /** Begins to listen; tries again for as long as the address is not there or the port is taken. */
  start(): void {
    this.#binding ??= this.#bind()
  }

  /** Closes the port, and cuts the connections that came by it. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the agent is going away'))
    await this.#binding
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #bind(): Promise<void> {
    const { signal } = this.#stop
    const backoff = new Backoff({ initialMs: firstRetryMs, maxMs: maxRetryMs })
    while (!signal.aborted) {
      try {
        await this.#listen()
        return
      } catch (error) {
        this.#unbound(error)
      }
      await backoff.wait(signal)
    }
  }

  async #listen(): Promise<void> {
    const { bindAddress: host } = this.#parts
    const port = this.target.localPort
    const server = createServer(
      {
        allowHalfOpen: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: tcpKeepAliveMs,
      },
      (socket) => this.#accept(socket),
    )
    server.listen({ host, port, ipv6Only: true })
    await once(server, 'listening')
    server.on('error', (err) => this.#log.error({ err }, 'a local port failed'))
    this.#server = server
    this.#problem = undefined
    const address = server.address() as AddressInfo
    this.#log.info({ address: address.address, port: address.port }, 'local port opened')
  }

  #unbound(error: unknown): void {
    const code = systemErrorCode(error) ?? 'unknown error'
    const { bindAddress } = this.#parts
    const where = `${bindAddress} port ${this.target.localPort}`
    const said = whyUnbound[code] ?? code
    const problem = `cannot listen on ${where}: ${said}`
    // One line is enough for as long as nothing changes.
    if (problem !== this.#problem) this.#log.warn({ bindAddress, code }, `${problem}, trying again`)
    this.#problem = problem
  }

  #accept(socket: Socket): void {
    const { activity } = this.#parts
    if (!this.#limit.enter(socket)) return
    activity.begin()
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      activity.end()
    })
    void this.#carry(socket)
  }

  /** Never throws: whatever fails ends this one connection. */
  async #carry(socket: Socket): Promise<void> {
    const stream = socketStream(socket)
    const gone = new AbortController()
    socket.once('close', () => gone.abort())
    try {
      const channel = await dialControlPlane(this.target.address, {
        ...this.#parts,
        deadlineMs: dialDeadlineMs,
        signal: gone.signal,
      })
      await join(stream, channel)
    } catch (err) {
      const why = err instanceof Error ? err.message : String(err)
      if (!gone.signal.aborted)
        this.#sparseLog.warn(why, { why }, 'a local connection cannot be carried')
      socket.destroy()
    }
  }
}

const whyUnbound: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'no interface has this address yet',
  EADDRINUSE: 'the port is in use',
  EACCES: 'this user may not use the port',
}

/** What the local ports need. */
export interface NodeListenersParts extends NodeListenerParts {
  readonly targets: readonly Target[]
  /** Makes the bind address if nobody has it; absent when it is only waited for. */
  readonly interfaceMaker?: InterfaceMaker
}

/** The local ports of a node, one for each target. */
export class NodeListeners {
  readonly #parts: NodeListenersParts
  readonly #listeners: readonly NodeListener[]
  #opening: Promise<void> | undefined
  #isStopped = false

  constructor(parts: NodeListenersParts) {
    this.#parts = parts
    this.#listeners = parts.targets.map((target) => new NodeListener(target, parts))
  }

  /** The ports that are open, and what they stand for. */
  get open(): { readonly port: number; readonly address: string }[] {
    return this.#listeners.flatMap(({ port, target }) =>
      port === undefined ? [] : [{ port, address: target.address }],
    )
  }

  /** The conditions under which a node can reach the control plane. */
  get checks(): readonly Check[] {
    const firstProblem = (): string | undefined =>
      this.#listeners.map(({ problem }) => problem).find((problem) => problem !== undefined)
    return [
      { name: 'node-listeners', problem: firstProblem },
      { name: 'node-to-control-plane', problem: () => whyNoLink(this.#parts.links()) },
    ]
  }

  /** Begins to open the ports; those that cannot be opened yet are tried again. */
  start(): void {
    this.#opening ??= this.#open()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#opening
    await Promise.all(this.#listeners.map((listener) => listener.stop()))
  }

  async #open(): Promise<void> {
    const { bindAddress, interfaceMaker } = this.#parts
    if (interfaceMaker) await provideAddress(bindAddress, interfaceMaker)
    if (this.#isStopped) return
    for (const listener of this.#listeners) listener.start()
  }
}
