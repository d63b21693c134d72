import { HeldChunks } from '../../core/index.ts'
import { SendQueue } from '../../grpc/http2/index.ts'
import { encodeDataHead, encodePacket, type PacketTypeName, packetType } from '../protocol/index.ts'
import type { LegEvents } from './byte-stream.ts'
import { initialWindowBytes, ReceiveWindow, type WindowSurroundings } from './credit.ts'
import { ChannelBroken, publicMessage } from './errors.ts'
import type { Channel } from './link.ts'
import type { Outgoing, PayloadSource } from './outbox.ts'
import { Standstill } from './stall-detector.ts'

/** What a channel needs of its link. */
export interface ChannelHost {
  readonly hasCredit: boolean
  readonly hasHalfClose: boolean
  readonly window: WindowSurroundings
  readonly maxUnreadBytes: number
  /** Unread bytes at which a channel begins to press; it stops at half of that. */
  readonly pressureBytes: number
  readonly closeAnswerMs: number
  readonly lastBytesMs: number
  send(type: PacketTypeName, bytes: Buffer): void
  enter(source: PayloadSource): void
  leave(source: PayloadSource): void
  /** Bytes that nobody has read yet became more, or fewer. */
  unread(change: number): void
  /** Bytes that wait to be sent became more, or fewer. */
  queued(change: number): void
  /** The channel's reader has fallen behind, or has caught up. */
  press(channel: LinkChannel, isPressing: boolean): void
  /** The channel is over; its id is unknown from now on. */
  forget(channel: LinkChannel): void
}

/** Which connection of the link a channel is. */
export interface ChannelName {
  readonly connectId: number
  readonly dest: number
  readonly address: string
  readonly isDialledByUs: boolean
}

/** Queued bytes at which the writer is told to go on. */
const lowWaterBytes = 64 * 1024

/** One tunnelled connection of a link. */
export class LinkChannel implements Channel, PayloadSource {
  readonly connectId: number
  readonly address: string
  readonly isDialledByUs: boolean
  readonly #dest: number
  readonly #host: ChannelHost
  readonly #queue = new SendQueue()
  readonly #window: ReceiveWindow | undefined
  readonly #standstill: Standstill
  #sendWindow: number
  #events: LegEvents | undefined
  /** What came before `start`: data, then the end of it, then the channel's own. */
  readonly #earlyData = new HeldChunks()
  #early: ((events: LegEvents) => void)[] = []
  #unread = 0
  #isPressing = false
  /** Bytes that the reader was done with so far. */
  consumedBytes = 0
  #wantsDrained = false
  /** What goes out once the queue is empty. */
  #finIsDue = false
  #closeIsDue = false
  #takesWrites = true
  #finIsSent = false
  #finIsReceived = false
  #closeIsSent = false
  /** We have closed; whatever still comes is dropped. */
  #isDeaf = false
  #isOver = false
  #answerTimer: NodeJS.Timeout | undefined

  constructor(host: ChannelHost, name: ChannelName) {
    this.#host = host
    this.connectId = name.connectId
    this.address = name.address
    this.isDialledByUs = name.isDialledByUs
    this.#dest = name.dest
    this.#standstill = new Standstill(
      () => this.#queue.bytes,
      () => this.#abort(new ChannelBroken('nobody took the last bytes')),
    )
    this.#window = host.hasCredit ? new ReceiveWindow(host.window) : undefined
    this.#sendWindow = host.hasCredit ? initialWindowBytes : Number.POSITIVE_INFINITY
  }

  get backlog(): number {
    return this.#queue.bytes
  }

  /** Bytes that wait in either direction: handed over and not consumed, or not sent yet. */
  get heldBytes(): number {
    return this.#unread + this.#queue.bytes
  }

  start(events: LegEvents): void {
    this.#events = events
    const early = this.#early
    this.#early = []
    for (const chunk of this.#earlyData.take()) events.data(chunk)
    for (const report of early) report(events)
  }

  #report(report: (events: LegEvents) => void): void {
    if (this.#events) report(this.#events)
    else this.#early.push(report)
  }

  write(chunk: Buffer): void {
    if (!this.#takesWrites || chunk.length === 0) return
    this.#queue.push(chunk)
    if (this.#queue.bytes > lowWaterBytes) this.#wantsDrained = true
    if (this.#sendWindow > 0) this.#host.enter(this)
    this.#host.queued(chunk.length)
  }

  consumed(bytes: number): void {
    if (this.#isOver) return
    this.#unread -= bytes
    this.consumedBytes += bytes
    this.#host.unread(-bytes)
    if (this.#isPressing && this.#unread < this.#host.pressureBytes / 2) this.#press(false)
    this.#grant(bytes)
  }

  #press(isPressing: boolean): void {
    this.#isPressing = isPressing
    this.#host.press(this, isPressing)
  }

  #grant(bytes: number): void {
    const grant = this.#finIsReceived ? 0 : (this.#window?.consumed(bytes) ?? 0)
    if (grant > 0) this.#send('CREDIT', { type: packetType.CREDIT, bytes: grant, ...this.#name() })
  }

  finish(): void {
    if (!this.#takesWrites) return
    this.#takesWrites = false
    if (this.#host.hasHalfClose) this.#finIsDue = true
    else this.#closeIsDue = true
    this.#host.enter(this)
  }

  close(error?: Error): void {
    if (this.#isOver || this.#isDeaf) return
    this.#isDeaf = true
    if (error) {
      this.#abort(error)
      return
    }
    if (this.#takesWrites) this.finish()
    this.#closeIsDue = !this.#closeIsSent
    if (this.#queue.bytes > 0) this.#standstill.watch(this.#host.lastBytesMs)
    this.#host.enter(this)
  }

  #abort(error: Error): void {
    this.#dropQueue()
    if (!this.#closeIsSent) this.#sendClose(publicMessage(error))
    this.over(error)
  }

  #dropQueue(): void {
    this.#host.queued(-this.#queue.bytes)
    this.#queue.clear()
  }

  takeTurn(maxPayloadBytes: number, outgoing: Outgoing): boolean {
    const bytes = Math.min(maxPayloadBytes, this.#sendWindow, this.#queue.bytes)
    if (bytes > 0) {
      outgoing.addPacket('DATA', encodeDataHead(this.connectId, this.#dest, bytes))
      this.#queue.take(bytes, (part) => outgoing.add(part))
      this.#sendWindow -= bytes
      this.#host.queued(-bytes)
    }
    if (this.#queue.bytes > 0) return this.#sendWindow > 0
    if (this.#finIsDue) {
      this.#finIsDue = false
      this.#finIsSent = true
      outgoing.addPacket('FIN', encodePacket({ type: packetType.FIN, ...this.#name() }))
    }
    if (this.#closeIsDue) {
      this.#closeIsDue = false
      this.#closeIsSent = true
      outgoing.addPacket(...this.#closePacket(''))
    }
    return false
  }

  turnIsOver(): void {
    if (this.#isOver) return
    if (this.#wantsDrained && this.#queue.bytes <= lowWaterBytes) {
      this.#wantsDrained = false
      this.#report((events) => events.drained())
    }
    if (this.#finIsSent && this.#finIsReceived) this.over()
    else if (this.#closeIsSent && !this.isDialledByUs) this.over()
    else if (this.#closeIsSent) this.#awaitAnswer()
  }

  #awaitAnswer(): void {
    this.#answerTimer ??= setTimeout(() => this.over(), this.#host.closeAnswerMs).unref()
  }

  /** Bytes came from the other end. */
  receive(chunk: Buffer): void {
    this.#answerTimer?.refresh()
    if (this.#window?.received(chunk.length) === false) {
      this.close(new ChannelBroken('the other end sent more than it was granted'))
      return
    }
    if (this.#isDeaf) {
      this.#grant(chunk.length)
      return
    }
    // Readers have been told that nothing more comes, and streams fail on what comes all the same.
    if (this.#finIsReceived) return
    this.#unread += chunk.length
    this.#host.unread(chunk.length)
    if (this.#isOver) return
    if (this.#events) this.#events.data(chunk)
    else this.#earlyData.push(chunk)
    if (this.#unread > this.#host.maxUnreadBytes) this.overflow()
    else if (this.#unread > this.#host.pressureBytes && !this.#isPressing) this.#press(true)
  }

  /** Nobody reads: gives this channel up at once, so that the others are not held up. */
  overflow(): void {
    if (this.#isOver) return
    this.#isDeaf = true
    this.#abort(
      new ChannelBroken(`the reader is too slow: ${this.heldBytes} bytes are waiting for it`),
    )
  }

  receiveCredit(bytes: number): void {
    this.#sendWindow += bytes
    if (this.#queue.bytes > 0) this.#host.enter(this)
  }

  receiveFin(): void {
    this.#finishReading()
    if (this.#finIsSent) this.over()
  }

  #finishReading(): void {
    if (this.#finIsReceived) return
    this.#finIsReceived = true
    if (!this.#isDeaf) this.#report((events) => events.finished())
  }

  /** The other end wants to close; without half-close it still takes what is queued for it. */
  receiveCloseRequest(): void {
    if (this.#host.hasHalfClose) {
      this.#dropQueue()
      if (!this.#closeIsSent) this.#send('CLOSE_RSP', this.#closeResponse(''))
      this.over(this.#errorUnlessFinished(''))
      return
    }
    this.#finishReading()
    this.#takesWrites = false
    if (this.#closeIsSent) {
      this.over()
      return
    }
    this.#closeIsDue = true
    this.#host.enter(this)
  }

  receiveCloseResponse(error: string): void {
    if (this.#closeIsSent || this.#isDeaf) this.#finishReading()
    const problem = this.#errorUnlessFinished(error)
    if (!problem) this.#finishReading()
    this.over(problem)
  }

  #errorUnlessFinished(text: string): Error | undefined {
    if (this.#finIsReceived) return undefined
    if (text !== '') return new ChannelBroken(text)
    return this.#host.hasHalfClose
      ? new ChannelBroken('the other end reset the connection')
      : undefined
  }

  /** Ends the channel without a word to the other end. */
  over(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#takesWrites = false
    clearTimeout(this.#answerTimer)
    this.#standstill.stop()
    this.#dropQueue()
    this.#host.leave(this)
    this.#host.unread(-this.#unread)
    this.#unread = 0
    if (this.#isPressing) this.#press(false)
    this.#host.forget(this)
    // Whoever closes from within one of our reports must not be called before it has returned.
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

  #sendClose(error: string): void {
    this.#closeIsSent = true
    this.#host.send(...this.#closePacket(error))
  }

  #send(name: PacketTypeName, packet: Parameters<typeof encodePacket>[0]): void {
    this.#host.send(name, encodePacket(packet))
  }
}
