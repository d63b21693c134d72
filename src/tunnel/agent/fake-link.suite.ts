import type {
  ByteStreamEvents,
  Capability,
  Channel,
  IncomingDial,
  Link,
  LinkEnd,
  LinkEvents,
} from '../link/index.ts'
import { DialFailed } from '../link/index.ts'

/** One end of a channel in memory; what is written to one end comes out of the other. */
class MemoryChannel implements Channel {
  readonly address: string
  readonly backlog = 0
  peer: MemoryChannel | undefined
  #events: ByteStreamEvents | undefined
  #early: (() => void)[] = []
  #isClosed = false

  constructor(address: string) {
    this.address = address
  }

  start(events: ByteStreamEvents): void {
    this.#events = events
    for (const tell of this.#early.splice(0)) tell()
  }

  write(chunk: Buffer): void {
    this.peer?.tell((events) => events.data(Buffer.from(chunk)))
  }

  consumed(): void {}

  finish(): void {
    this.peer?.tell((events) => events.finished())
  }

  close(error?: Error): void {
    for (const end of [this, this.peer]) end?.closed(error)
  }

  closed(error?: Error): void {
    if (this.#isClosed) return
    this.tell((events) => events.closed(error))
    this.#isClosed = true
  }

  tell(what: (events: ByteStreamEvents) => void): void {
    if (this.#isClosed) return
    const tell = (): void => queueMicrotask(() => this.#events && what(this.#events))
    if (this.#events) tell()
    else this.#early.push(tell)
  }
}

/** Two ends of one channel. */
function memoryChannel(address: string): [Channel, Channel] {
  const [a, b] = [new MemoryChannel(address), new MemoryChannel(address)]
  a.peer = b
  b.peer = a
  return [a, b]
}

/** A dial that the agent asked this link for. */
export interface AskedDial {
  readonly address: string
  readonly deadlineMs: number
  readonly signal: AbortSignal
  /** Says yes; gives the other end of the channel. */
  accept(): Channel
  fail(error: DialFailed): void
}

/** How a link for tests differs from one to a Sallyport server. */
export interface FakeLinkOptions {
  readonly capabilities?: readonly Capability[]
  readonly serverIds?: readonly string[]
  readonly serverCounts?: readonly string[]
}

type Answer = { readonly accepted: Channel } | { readonly refused: string }

/** A link whose other end is the test. */
export class FakeLink implements Link {
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
  readonly ended: Promise<LinkEnd>
  readonly pendingDialCount = 0
  readonly channelCount = 0
  readonly backlog = 0
  isDraining = false
  drainsSent = 0
  isClosed = false
  /** Called for every dial of the agent. */
  onDial: (dial: AskedDial) => void = () => {}
  readonly #channels = new Set<Channel>()
  #events: LinkEvents | undefined
  #end: (end: LinkEnd) => void = () => {}

  constructor(options: FakeLinkOptions = {}) {
    this.capabilities = new Set(options.capabilities ?? ['rdial', 'credit', 'halfclose'])
    this.metadata = {
      serverid: options.serverIds ?? ['server-1'],
      servercount: options.serverCounts ?? ['1'],
    }
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  get isStarted(): boolean {
    return this.#events !== undefined
  }

  start(events: LinkEvents): void {
    this.#events = events
  }

  dial(
    address: string,
    options: { readonly signal: AbortSignal; readonly deadlineMs: number },
  ): Promise<Channel> {
    return new Promise((resolve, reject) => {
      void this.ended.then(() => reject(new DialFailed('link-lost', address)))
      options.signal.addEventListener('abort', () => reject(new DialFailed('cancelled', address)))
      this.onDial({
        address,
        ...options,
        accept: () => {
          const [ours, theirs] = memoryChannel(address)
          this.#channels.add(ours)
          resolve(ours)
          return theirs
        },
        fail: reject,
      })
    })
  }

  sendDrain(): void {
    this.drainsSent++
  }

  /** The server says that it goes. */
  receiveDrain(): void {
    this.isDraining = true
    this.#events?.drain()
  }

  close(error?: Error): void {
    this.isClosed = true
    for (const channel of this.#channels) channel.close(error)
    this.#end(error ? { error } : {})
  }

  /** The server asks the agent to connect; resolves with the agent's answer. */
  ask(
    address: string,
    options: { readonly protocol?: string; readonly signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const signal = options.signal ?? new AbortController().signal
    return new Promise((resolve) => {
      const dial: IncomingDial = {
        protocol: options.protocol ?? 'tcp',
        address,
        signal,
        accept: () => {
          if (signal.aborted) return undefined
          const [ours, theirs] = memoryChannel(address)
          this.#channels.add(ours)
          resolve({ accepted: theirs })
          return ours
        },
        refuse: (refused) => resolve({ refused }),
      }
      this.#events?.dial(dial)
    })
  }
}
