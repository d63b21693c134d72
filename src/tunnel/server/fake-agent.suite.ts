import { connect, type Socket } from 'node:net'
import { type Logger, MetricsRegistry, silentLogger, systemClock } from '../../core/index.ts'
import {
  type Capability,
  type Channel,
  DialFailed,
  type IncomingDial,
  type Link,
  type LinkEnd,
  type LinkEvents,
  socketStream,
} from '../link/index.ts'
import type { IdentityCheck } from './agent-claims.ts'
import { type AgentDialHandler, TunnelHub } from './hub.ts'
import { ServerMetrics } from './metrics.ts'
import type { NodeRoutes } from './node-routes.ts'

type DialOptions = Parameters<Link['dial']>[1]

/** How a fake agent behaves. */
export interface FakeAgentOptions {
  readonly agentId?: string
  readonly identifiers?: string
  /** Answers no dial at all. */
  readonly isSilent?: boolean
  /** Refuses every dial with these words. */
  readonly refusal?: string
}

/** An agent in this process: it dials targets directly, over real sockets. */
export class FakeAgent implements Link {
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Link['metadata']
  readonly dialled: string[] = []
  readonly ended: Promise<LinkEnd>
  isDraining = false
  backlog = 0
  channelCount = 0
  readonly #options: FakeAgentOptions
  readonly #sockets = new Set<Socket>()
  readonly #pending = new Set<(error: DialFailed) => void>()
  #end: (end: LinkEnd) => void = () => {}
  events: LinkEvents | undefined

  constructor(options: FakeAgentOptions = {}) {
    const { agentId = 'agent-1', identifiers } = options
    this.#options = options
    this.capabilities = new Set()
    this.metadata = {
      agentid: [agentId],
      ...(identifiers !== undefined && { agentidentifiers: [identifiers] }),
    }
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  get pendingDialCount(): number {
    return this.#pending.size
  }

  start(events: LinkEvents): void {
    this.events = events
  }

  dial(address: string, { signal, deadlineMs }: DialOptions): Promise<Channel> {
    this.dialled.push(address)
    const { isSilent, refusal } = this.#options
    if (refusal !== undefined) {
      return Promise.reject(new DialFailed('refused-by-peer', address, refusal))
    }
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        this.#pending.delete(fail)
      }
      const fail = (error: DialFailed): void => {
        settle()
        reject(error)
      }
      const timer = setTimeout(() => fail(new DialFailed('timeout', address)), deadlineMs)
      this.#pending.add(fail)
      signal.addEventListener('abort', () => fail(new DialFailed('cancelled', address)))
      if (isSilent) return
      this.#connect(address).then(
        (channel) => {
          settle()
          resolve(channel)
        },
        (error: Error) => fail(new DialFailed('refused-by-peer', address, error.message)),
      )
    })
  }

  sendDrain(): void {}

  /** The link breaks: nothing that is open or pending survives. */
  lose(): void {
    this.close(new Error('lost'))
  }

  close(error?: Error): void {
    for (const fail of this.#pending) fail(new DialFailed('link-lost', 'somewhere'))
    for (const socket of this.#sockets) socket.destroy()
    this.#end(error ? { error } : {})
  }

  #connect(address: string): Promise<Channel> {
    const colon = address.lastIndexOf(':')
    const port = Number(address.slice(colon + 1))
    const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, allowHalfOpen: true })
      socket.once('error', reject)
      socket.once('connect', () => {
        this.channelCount++
        this.#sockets.add(socket)
        socket.once('close', () => {
          this.channelCount--
          this.#sockets.delete(socket)
        })
        resolve(Object.assign(socketStream(socket), { address }))
      })
    })
  }
}

/** A dial of an agent, and what was answered. */
export class FakeDial implements IncomingDial {
  readonly protocol: string
  readonly address: string
  readonly signal: AbortSignal
  readonly #channel: (() => Channel | undefined) | undefined
  readonly refused: Promise<string>
  readonly #accepted: (() => void)[] = []
  #refuse: (text: string) => void = () => {}

  constructor(
    address: string,
    options: {
      readonly protocol?: string
      readonly signal?: AbortSignal
      readonly channel?: () => Channel | undefined
    } = {},
  ) {
    this.address = address
    this.protocol = options.protocol ?? 'tcp'
    this.signal = options.signal ?? new AbortController().signal
    this.#channel = options.channel
    this.refused = new Promise((resolve) => {
      this.#refuse = resolve
    })
  }

  accept(): Channel | undefined {
    for (const resolve of this.#accepted) resolve()
    return this.#channel?.()
  }

  refuse(text: string): void {
    this.#refuse(text)
  }
}

/** A hub with its metrics page, for tests. */
export function fakeHub(
  options: {
    readonly strategies?: ConstructorParameters<typeof TunnelHub>[0]['strategies']
    readonly dialTimeoutMs?: number
    readonly onAgentDial?: AgentDialHandler
    readonly identityCheck?: IdentityCheck
    readonly routes?: NodeRoutes
    readonly log?: Logger
  } = {},
): {
  readonly hub: TunnelHub
  readonly metrics: ServerMetrics
  readonly registry: MetricsRegistry
} {
  const registry = new MetricsRegistry()
  const metrics = new ServerMetrics(registry)
  const hub = new TunnelHub({
    strategies: options.strategies ?? ['default'],
    dialTimeoutMs: options.dialTimeoutMs ?? 5_000,
    onAgentDial: options.onAgentDial ?? ((dial) => dial.refuse('not in this test')),
    metrics,
    clock: systemClock,
    log: options.log ?? silentLogger,
    ...(options.identityCheck && { identityCheck: options.identityCheck }),
    ...(options.routes && { routes: options.routes }),
  })
  return { hub, metrics, registry }
}
