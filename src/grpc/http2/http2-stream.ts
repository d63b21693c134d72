import { HeldChunks } from '../../core/index.ts'
import { FlightWindow, SendQueue } from './flow-control.ts'
import {
  defaultWindowBytes,
  errorCode,
  frameFlag,
  frameHeader,
  frameType,
  Http2Error,
  numberFrame,
} from './frames.ts'
import type { HeaderField } from './hpack.ts'

/** How a stream came to its end, as far as the other end is concerned. */
export interface StreamEnding {
  /** The other end reset it with this code. */
  readonly resetCode?: number
  /** The connection under it is gone. */
  readonly isLost?: boolean
  readonly error?: Error
}

/** What a stream tells its owner at once, read or not. */
export interface StreamObserver {
  /** The answer's headers, or the trailers. */
  headers(fields: readonly HeaderField[]): void
  closed(ending: StreamEnding): void
}

/** What a stream tells its reader. */
export interface StreamEvents {
  data(chunk: Buffer): void
  /** The other end has said all. */
  finished(): void
  /** Something that was written has left. */
  progress(): void
  /** The stream is gone; comes exactly once and last. */
  closed(ending: StreamEnding): void
}

/** What a stream needs of its connection. */
export interface StreamHost {
  readonly maxFrameBytes: number
  /** Bytes that the other end takes on the whole connection. */
  sendWindow: number
  readonly socketBacklog: number
  /** So much waits for the socket that DATA has to wait in its stream. */
  readonly isCongested: boolean
  /** The shortest round trip seen, 0 before the first. */
  readonly roundTripMs: number
  nowMs(): number
  /** Sends frames with so many bytes of payload; the stream is told when they have left. */
  write(parts: readonly Buffer[], bytes: number, stream: Http2Stream): void
  /** Sends a small frame, together with others. */
  sendSoon(bytes: Buffer): void
  sendHeaders(stream: Http2Stream, fields: readonly HeaderField[], isLast: boolean): void
  /** Counts a request that was refused or a stream that this end reset. */
  refused(): void
  /** The connection's window follows the streams that are read. */
  openWindow(): void
  /** The stream waits for the connection: for its window, or for the socket. */
  blocked(stream: Http2Stream): void
  remove(stream: Http2Stream): void
}

/** One stream of an HTTP/2 connection. */
export class Http2Stream {
  readonly id: number
  readonly #host: StreamHost
  readonly #queue = new SendQueue()
  /** Payload that was handed to the socket and has not left it. */
  #socketBytes = 0
  #observer: StreamObserver | undefined
  #events: StreamEvents | undefined
  /** What came before somebody read: data, then the end of it, then the stream's own. */
  readonly #earlyData = new HeldChunks()
  #early: ((events: StreamEvents) => void)[] = []
  readonly #flight = new FlightWindow()
  #receiveWindow = defaultWindowBytes
  #isThrottled = false
  /** May become negative when the other end lowers its setting. */
  #sendWindow: number
  /** Trailers, if any, go out when everything written has gone. */
  #ending: { readonly trailers?: readonly HeaderField[] } | undefined
  #isEndSent = false
  #isEndReceived = false
  #isClosed = false

  constructor(id: number, host: StreamHost, sendWindow: number) {
    this.id = id
    this.#host = host
    this.#sendWindow = sendWindow
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get backlog(): number {
    return this.#queue.bytes + this.#host.socketBacklog
  }

  /** Payload of this stream alone that is in memory because it has not left. */
  get heldBytes(): number {
    return this.#queue.bytes + this.#socketBytes
  }

  /** To be called in the tick in which the stream was made. */
  observe(observer: StreamObserver): void {
    this.#observer = observer
  }

  /** Reads the stream; until then the other end can send a little only. */
  start(events: StreamEvents): void {
    this.#events = events
    const early = this.#early
    this.#early = []
    for (const chunk of this.#earlyData.take()) events.data(chunk)
    for (const report of early) report(events)
    if (this.#isClosed || this.#isEndReceived) return
    this.#host.openWindow()
    if (!this.#isThrottled) this.#widenTo(this.#flight.size)
  }

  /** Lets the other end send no more than it was allowed already, until it is switched off. */
  throttle(isOn: boolean): void {
    this.#isThrottled = isOn
    if (!isOn) this.#widen()
  }

  /** Lets a throttled other end send a little, unless it may still send more than that. */
  allow(bytes: number): void {
    if (this.#receiveWindow < bytes) this.#widenTo(bytes)
  }

  #report(report: (events: StreamEvents) => void): void {
    if (this.#events) report(this.#events)
    else this.#early.push(report)
  }

  sendHeaders(fields: readonly HeaderField[], isLast = false): void {
    if (this.#isClosed) return
    this.#host.sendHeaders(this, fields, isLast)
    if (isLast) this.#endSent()
  }

  write(parts: readonly Buffer[]): void {
    if (this.#isClosed || this.#ending) return
    for (const part of parts) this.#queue.push(part)
    this.pump()
  }

  /** Sends what the windows allow. */
  pump(): void {
    if (this.#isClosed) return
    const parts: Buffer[] = []
    let sent = 0
    while (this.#queue.bytes > 0 && !this.#host.isCongested) {
      const window = Math.min(this.#sendWindow, this.#host.sendWindow)
      const bytes = Math.min(this.#queue.bytes, window, this.#host.maxFrameBytes)
      if (bytes <= 0) break
      parts.push(frameHeader(frameType.DATA, 0, this.id, bytes))
      this.#queue.take(bytes, (part) => parts.push(part))
      this.#sendWindow -= bytes
      this.#host.sendWindow -= bytes
      sent += bytes
    }
    this.#socketBytes += sent
    if (sent > 0) this.#host.write(parts, sent, this)
    if (this.#queue.bytes > 0) {
      // Its own window wakes it up by itself.
      if (this.#sendWindow > 0) this.#host.blocked(this)
    } else if (this.#ending && !this.#isEndSent) this.#sendEnd(this.#ending.trailers)
  }

  /** Ends our direction, once everything written has gone. */
  end(trailers?: readonly HeaderField[]): void {
    if (this.#isClosed || this.#ending) return
    this.#ending = trailers ? { trailers } : {}
    this.pump()
  }

  #sendEnd(trailers: readonly HeaderField[] | undefined): void {
    if (trailers) this.#host.sendHeaders(this, trailers, true)
    else this.#host.sendSoon(frameHeader(frameType.DATA, frameFlag.END_STREAM, this.id, 0))
    this.#endSent()
  }

  #endSent(): void {
    this.#isEndSent = true
    this.#ending ??= {}
    if (this.#isEndReceived) this.close({})
  }

  /** Responds with headers only and reads no more of the request (RFC 9113 §8.1). */
  refuse(fields: readonly HeaderField[]): void {
    if (this.#isClosed) return
    this.#host.refused()
    this.sendHeaders(fields, true)
    this.#sendReset(errorCode.NO_ERROR)
  }

  /** Ends both directions at once. */
  reset(code: number): void {
    if (this.#isClosed) return
    this.#host.refused()
    this.#sendReset(code)
  }

  #sendReset(code: number): void {
    if (this.#isClosed) return
    this.#host.sendSoon(numberFrame(frameType.RST_STREAM, this.id, code))
    this.close({})
  }

  progress(bytes: number): void {
    this.#socketBytes -= bytes
    this.#events?.progress()
  }

  /** The other end takes more, or less. */
  changeWindow(bytes: number, maxBytes: number): void {
    this.#sendWindow += bytes
    if (this.#sendWindow > maxBytes) this.reset(errorCode.FLOW_CONTROL_ERROR)
    else if (bytes > 0) this.pump()
  }

  receiveHeaders(fields: readonly HeaderField[], isLast: boolean): void {
    this.#mustBeOpen()
    this.#observer?.headers(fields)
    if (isLast) this.receiveEnd()
  }

  /** A DATA frame begins. */
  receiveBytes(bytes: number): void {
    this.#mustBeOpen()
    this.#receiveWindow -= bytes
    if (this.#receiveWindow < 0)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'it sent more than it was allowed to')
    if (this.#events) this.#widen()
  }

  receiveData(chunk: Buffer): void {
    if (this.#isClosed) return
    if (this.#events) this.#events.data(chunk)
    else this.#earlyData.push(chunk)
  }

  receiveEnd(): void {
    if (this.#isClosed) return
    this.#mustBeOpen()
    this.#isEndReceived = true
    this.#report((events) => events.finished())
    if (this.#isEndSent) this.close({})
  }

  /** Forgets the stream without a word to the other end. */
  close(ending: StreamEnding): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#queue.clear()
    this.#host.remove(this)
    this.#observer?.closed(ending)
    this.#report((events) => events.closed(ending))
  }

  #mustBeOpen(): void {
    if (this.#isEndReceived) throw new Http2Error('STREAM_CLOSED', 'it goes on after its end')
  }

  /** Opens the window again when half of it is used up. */
  #widen(): void {
    if (this.#isThrottled || this.#receiveWindow > this.#flight.size / 2) return
    this.#widenTo(this.#flight.used(this.#host.nowMs(), this.#host.roundTripMs))
  }

  #widenTo(size: number): void {
    if (this.#isClosed || this.#isEndReceived) return
    const bytes = size - this.#receiveWindow
    this.#receiveWindow = size
    this.#host.sendSoon(numberFrame(frameType.WINDOW_UPDATE, this.id, bytes))
  }
}
