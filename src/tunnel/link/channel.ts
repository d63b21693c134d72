import { HeldChunks } from '../../core/index.ts'
import { SendQueue } from '../../grpc/http2/index.ts'
import { encodeDataHead, encodePacket, type PacketTypeName, packetType } from '../protocol/index.ts'
import type { ByteStreamEvents } from './byte-stream.ts'
import { initialWindowBytes, ReceiveWindow, type WindowContext } from './credit.ts'
import { ChannelBroken, publicMessage } from './errors.ts'
import type { Channel } from './link.ts'
import type { PacketBatch, PayloadSource } from './send-scheduler.ts'
import { StallTimer } from './stall-detector.ts'

/** What a channel needs of its link. */
export interface ChannelHost {
  readonly hasCredit: boolean
  readonly hasHalfClose: boolean
  readonly window: WindowContext
  readonly maxUnreadBytes: number
  /** Unread bytes at which a channel requests back-pressure; it ends at half of them. */
  readonly pressureBytes: number
  readonly closeTimeoutMs: number
  readonly lastBytesMs: number
  send(type: PacketTypeName, bytes: Buffer): void
  /** Gives the channel a turn to send. */
  schedule(source: PayloadSource): void
  unschedule(source: PayloadSource): void
  /** Unread bytes became more, or fewer. */
  unread(change: number): void
  /** Bytes queued for the peer became more, or fewer. */
  queued(change: number): void
  /** The channel's reader has fallen behind, or has caught up. */
  setPressure(channel: LinkChannel, isOn: boolean): void
  /** The channel is closed; its id is unknown from now on. */
  remove(channel: LinkChannel): void
}

/** Which connection of the link a channel is. */
export interface ChannelName {
  readonly connectId: number
  readonly dest: number
  readonly address: string
  readonly isDialledByUs: boolean
}

/** Queued bytes below which the writer may continue. */
const lowWaterBytes = 64 * 1024

/** Our direction. Writes are accepted while it is open; FIN and CLOSE packets follow the queued bytes. */
type Sending =
  | 'open'
  | 'fin due'
  | 'fin sent'
  | 'fin and close due'
  | 'close due'
  | 'close sent'
  | 'closed'

/** The peer's direction. Bytes that arrive after our `close` are discarded. */
type Receiving = 'reading' | 'ended' | 'discarding' | 'discarded'

type ChannelEvent =
  /** Our writer ends its direction. */
  | 'finish'
  /** Our owner closes the channel. */
  | 'close'
  /** The queue is empty, and the packets that were due have been sent. */
  | 'flushed'
  /** The channel is aborted: queued bytes are dropped, and CLOSE is sent at once. */
  | 'abort'
  /** The peer has ended its direction. */
  | 'peer ended'
  /** Nothing is sent or received any more. */
  | 'closed'

type Transitions<State extends string> = Readonly<
  Record<State, Partial<Record<ChannelEvent, State>>>
>

/** Possible in every state but the last. */
const anyTime = { abort: 'close sent', closed: 'closed' } as const

/** With half-close each direction ends by its own FIN. */
const halfCloseSending: Transitions<Sending> = {
  open: { finish: 'fin due', close: 'fin and close due', ...anyTime },
  'fin due': { close: 'fin and close due', flushed: 'fin sent', ...anyTime },
  'fin sent': { close: 'close due', ...anyTime },
  'fin and close due': { flushed: 'close sent', ...anyTime },
  'close due': { flushed: 'close sent', ...anyTime },
  'close sent': anyTime,
  closed: {},
}

/** Konnectivity's protocol has no half-close: the end of one direction closes the channel. */
const plainSending: Transitions<Sending> = {
  ...halfCloseSending,
  open: { finish: 'close due', close: 'close due', ...anyTime },
}

const receiving: Transitions<Receiving> = {
  reading: { 'peer ended': 'ended', close: 'discarding' },
  ended: { close: 'discarded' },
  discarding: { 'peer ended': 'discarded' },
  discarded: {},
}

/** One tunnelled connection of a link. */
export class LinkChannel implements Channel, PayloadSource {
  readonly connectId: number
  readonly address: string
  readonly isDialledByUs: boolean
  readonly #dest: number
  readonly #host: ChannelHost
  readonly #sendTransitions: Transitions<Sending>
  #sending: Sending = 'open'
  #receiving: Receiving = 'reading'
  readonly #queue = new SendQueue()
  readonly #window: ReceiveWindow | undefined
  readonly #stall: StallTimer
  #sendWindow: number
  #events: ByteStreamEvents | undefined
  /** What arrived before `start`: data, then events. */
  readonly #earlyData = new HeldChunks()
  #earlyEvents: ((events: ByteStreamEvents) => void)[] = []
  #unread = 0
  #hasPressure = false
  /** Bytes that the reader has consumed so far. */
  consumedBytes = 0
  /** The writer waits for `drained`. */
  #isWriterWaiting = false
  #closeTimer: NodeJS.Timeout | undefined

  constructor(host: ChannelHost, name: ChannelName) {
    this.#host = host
    this.#sendTransitions = host.hasHalfClose ? halfCloseSending : plainSending
    this.connectId = name.connectId
    this.address = name.address
    this.isDialledByUs = name.isDialledByUs
    this.#dest = name.dest
    this.#stall = new StallTimer(
      () => this.#queue.bytes,
      () => this.#abort(new ChannelBroken('peer does not read the last bytes')),
    )
    this.#window = host.hasCredit ? new ReceiveWindow(host.window) : undefined
    this.#sendWindow = host.hasCredit ? initialWindowBytes : Number.POSITIVE_INFINITY
  }

  #apply(event: ChannelEvent): void {
    this.#sending = this.#sendTransitions[this.#sending][event] ?? this.#sending
    this.#receiving = receiving[this.#receiving][event] ?? this.#receiving
  }

  get #isClosed(): boolean {
    return this.#sending === 'closed'
  }

  get #hasPeerEnded(): boolean {
    return this.#receiving === 'ended' || this.#receiving === 'discarded'
  }

  get #isDiscarding(): boolean {
    return this.#receiving === 'discarding' || this.#receiving === 'discarded'
  }

  /** With half-close, CLOSE is never due before FIN has been sent. */
  get #isFinSent(): boolean {
    if (!this.#host.hasHalfClose) return false
    return (
      this.#sending === 'fin sent' ||
      this.#sending === 'close due' ||
      this.#sending === 'close sent'
    )
  }

  get backlog(): number {
    return this.#queue.bytes
  }

  /** Bytes in either direction: delivered and not consumed, or not sent yet. */
  get heldBytes(): number {
    return this.#unread + this.#queue.bytes
  }

  start(events: ByteStreamEvents): void {
    this.#events = events
    const early = this.#earlyEvents
    this.#earlyEvents = []
    for (const chunk of this.#earlyData.take()) events.data(chunk)
    for (const report of early) report(events)
  }

  #report(report: (events: ByteStreamEvents) => void): void {
    if (this.#events) report(this.#events)
    else this.#earlyEvents.push(report)
  }

  write(chunk: Buffer): void {
    if (this.#sending !== 'open' || chunk.length === 0) return
    this.#queue.push(chunk)
    if (this.#queue.bytes > lowWaterBytes) this.#isWriterWaiting = true
    if (this.#sendWindow > 0) this.#host.schedule(this)
    this.#host.queued(chunk.length)
  }

  consumed(bytes: number): void {
    if (this.#isClosed) return
    this.#unread -= bytes
    this.consumedBytes += bytes
    this.#host.unread(-bytes)
    if (this.#hasPressure && this.#unread < this.#host.pressureBytes / 2) this.#setPressure(false)
    this.#grant(bytes)
  }

  #setPressure(isOn: boolean): void {
    this.#hasPressure = isOn
    this.#host.setPressure(this, isOn)
  }

  #grant(bytes: number): void {
    const grant = this.#hasPeerEnded ? 0 : (this.#window?.consumed(bytes) ?? 0)
    if (grant > 0) this.#send('CREDIT', { type: packetType.CREDIT, bytes: grant, ...this.#name() })
  }

  finish(): void {
    if (this.#sending !== 'open') return
    this.#apply('finish')
    this.#host.schedule(this)
  }

  close(error?: Error): void {
    if (this.#isClosed || this.#isDiscarding) return
    this.#apply('close')
    if (error) {
      this.#abort(error)
      return
    }
    if (this.#queue.bytes > 0) this.#stall.start(this.#host.lastBytesMs)
    this.#host.schedule(this)
  }

  /** Closes at once; queued bytes are dropped. */
  #abort(error: Error): void {
    this.#dropQueue()
    const isCloseSent = this.#sending === 'close sent'
    // Sending may overflow the buffers of the link, which aborts this channel again.
    this.#apply('abort')
    if (!isCloseSent) this.#host.send(...this.#closePacket(publicMessage(error)))
    this.closed(error)
  }

  #dropQueue(): void {
    this.#host.queued(-this.#queue.bytes)
    this.#queue.clear()
  }

  takeTurn(maxPayloadBytes: number, batch: PacketBatch): boolean {
    const bytes = Math.min(maxPayloadBytes, this.#sendWindow, this.#queue.bytes)
    if (bytes > 0) {
      batch.addPacket('DATA', encodeDataHead(this.connectId, this.#dest, bytes))
      this.#queue.take(bytes, (part) => batch.add(part))
      this.#sendWindow -= bytes
      this.#host.queued(-bytes)
    }
    if (this.#queue.bytes > 0) return this.#sendWindow > 0
    if (this.#sending === 'fin due' || this.#sending === 'fin and close due')
      batch.addPacket('FIN', encodePacket({ type: packetType.FIN, ...this.#name() }))
    if (this.#sending === 'close due' || this.#sending === 'fin and close due')
      batch.addPacket(...this.#closePacket(''))
    this.#apply('flushed')
    return false
  }

  turnEnded(): void {
    if (this.#isClosed) return
    if (this.#isWriterWaiting && this.#queue.bytes <= lowWaterBytes) {
      this.#isWriterWaiting = false
      this.#report((events) => events.drained())
    }
    if (this.#isFinSent && this.#hasPeerEnded) this.closed()
    else if (this.#sending === 'close sent') {
      if (this.isDialledByUs) this.#awaitCloseResponse()
      else this.closed()
    }
  }

  #awaitCloseResponse(): void {
    this.#closeTimer ??= setTimeout(() => this.closed(), this.#host.closeTimeoutMs).unref()
  }

  /** Bytes arrived from the peer. */
  receive(chunk: Buffer): void {
    this.#closeTimer?.refresh()
    if (this.#window?.received(chunk.length) === false) {
      this.close(new ChannelBroken('peer sent more than it was granted'))
      return
    }
    if (this.#isDiscarding) {
      this.#grant(chunk.length)
      return
    }
    // After `finished` a Node.js stream fails on more data.
    if (this.#hasPeerEnded) return
    this.#unread += chunk.length
    this.#host.unread(chunk.length)
    if (this.#isClosed) return
    if (this.#events) this.#events.data(chunk)
    else this.#earlyData.push(chunk)
    if (this.#unread > this.#host.maxUnreadBytes) this.overflow()
    else if (this.#unread > this.#host.pressureBytes && !this.#hasPressure) this.#setPressure(true)
  }

  /** Too many bytes wait for a reader: aborts this channel, so that the others can go on. */
  overflow(): void {
    if (this.#isClosed) return
    this.#apply('close')
    this.#abort(new ChannelBroken(`reader is too slow: ${this.heldBytes} bytes are waiting for it`))
  }

  receiveCredit(bytes: number): void {
    this.#sendWindow += bytes
    if (this.#queue.bytes > 0) this.#host.schedule(this)
  }

  receiveFin(): void {
    this.#peerEnded()
    if (this.#isFinSent) this.closed()
  }

  #peerEnded(): void {
    const wasReading = this.#receiving === 'reading'
    this.#apply('peer ended')
    if (wasReading) this.#report((events) => events.finished())
  }

  /** The peer closes; without half-close it still reads what is queued for it. */
  receiveCloseRequest(): void {
    if (this.#host.hasHalfClose) {
      this.#dropQueue()
      if (this.#sending !== 'close sent') this.#send('CLOSE_RSP', this.#closeResponse(''))
      this.closed(this.#errorUnlessEnded(''))
      return
    }
    this.#peerEnded()
    if (this.#sending === 'close sent') {
      this.closed()
      return
    }
    this.#apply('finish')
    this.#host.schedule(this)
  }

  receiveCloseResponse(error: string): void {
    if (this.#sending === 'close sent' || this.#isDiscarding) this.#peerEnded()
    const problem = this.#errorUnlessEnded(error)
    if (!problem) this.#peerEnded()
    this.closed(problem)
  }

  #errorUnlessEnded(text: string): Error | undefined {
    if (this.#hasPeerEnded) return undefined
    if (text !== '') return new ChannelBroken(text)
    return this.#host.hasHalfClose ? new ChannelBroken('peer reset the connection') : undefined
  }

  /** Ends the channel without sending anything. */
  closed(error?: Error): void {
    if (this.#isClosed) return
    this.#apply('closed')
    clearTimeout(this.#closeTimer)
    this.#stall.stop()
    this.#dropQueue()
    this.#host.unschedule(this)
    this.#host.unread(-this.#unread)
    this.#unread = 0
    if (this.#hasPressure) this.#setPressure(false)
    this.#host.remove(this)
    // A listener that closes the channel must not be called again before it has returned.
    queueMicrotask(() => this.#report((events) => events.closed(error)))
  }

  #name(): { connectId: number; dest: number } {
    return { connectId: this.connectId, dest: this.#dest }
  }

  #closeResponse(error: string) {
    return { type: packetType.CLOSE_RSP, error, ...this.#name() }
  }

  #closePacket(error: string): [PacketTypeName, Buffer] {
    return this.isDialledByUs
      ? ['CLOSE_REQ', encodePacket({ type: packetType.CLOSE_REQ, ...this.#name() })]
      : ['CLOSE_RSP', encodePacket(this.#closeResponse(error))]
  }

  #send(name: PacketTypeName, packet: Parameters<typeof encodePacket>[0]): void {
    this.#host.send(name, encodePacket(packet))
  }
}
