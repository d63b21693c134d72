import { HeldChunks } from '../../core/index.ts'
import { AdaptiveReceiveWindow, type ConnectionSendWindow, SendQueue } from './flow-control.ts'
import {
  defaultWindowBytes,
  errorCode,
  frameFlag,
  frameHeader,
  frameType,
  Http2Error,
  maxWindowBytes,
  numberFrame,
} from './frames.ts'
import { contentLength, isMalformed, type MessagePart } from './headers.ts'
import type { HeaderField } from './hpack.ts'

/** How a stream was closed. Empty if both directions have ended, or we reset it. */
export interface StreamClosure {
  /** The peer reset it with this code. */
  readonly resetCode?: number
  /** The peer violated the protocol, or the connection was lost. */
  readonly error?: Error
}

/** Notified at once, whether the stream is read or not. */
export interface StreamObserver {
  /** Response headers, or trailers. */
  headers(fields: readonly HeaderField[], isEndStream: boolean): void
  closed(closure: StreamClosure): void
}

/** Reads a stream. */
export interface StreamEvents {
  data(chunk: Buffer): void
  /** The peer has ended its direction. */
  finished(): void
  /** Some written bytes have left. */
  progress(): void
  /** The stream is closed; called exactly once and last. */
  closed(closure: StreamClosure): void
}

/** What a stream needs of its connection. */
export interface StreamHost {
  readonly side: 'client' | 'server'
  readonly maxFrameBytes: number
  readonly sendWindow: ConnectionSendWindow
  readonly socketBacklog: number
  /** The shortest round trip measured, 0 before the first. */
  readonly roundTripMs: number
  nowMs(): number
  /** Writes frames with `bytes` of payload at once; `stream.progress` is called when they have left. */
  write(parts: readonly Buffer[], bytes: number, stream: Http2Stream): void
  /** Sends a small frame, together with others. */
  send(frame: Buffer): void
  sendHeaders(stream: Http2Stream, fields: readonly HeaderField[], isEndStream: boolean): void
  sendReset(streamId: number, code: number): void
  /** Counts a refused request, or a stream that we reset because of the peer. */
  countRefusal(): void
  /** Opens the connection's window: one of its streams is read now. */
  openWindow(): void
  remove(stream: Http2Stream): void
}

const isInformational = (fields: readonly HeaderField[]): boolean =>
  fields.some(([name, value]) => name === ':status' && value.startsWith('1'))

/** One stream of an HTTP/2 connection (RFC 9113 §5). */
export class Http2Stream {
  readonly id: number
  readonly #host: StreamHost
  readonly #queue = new SendQueue()
  /** Payload that was written to the socket and has not left it. */
  #socketBytes = 0
  #observer: StreamObserver | undefined
  #events: StreamEvents | undefined
  /** What arrived before `start`: data, then events. */
  readonly #earlyData = new HeldChunks()
  #earlyEvents: ((events: StreamEvents) => void)[] = []
  readonly #adaptiveWindow = new AdaptiveReceiveWindow()
  #receiveWindow = defaultWindowBytes
  #isThrottled = false
  /** Negative after the peer has lowered SETTINGS_INITIAL_WINDOW_SIZE. */
  #sendWindow: number
  /** Our direction: `ending` until everything written, and the trailers, have been sent. */
  #local: 'open' | 'ending' | 'ended' = 'open'
  #trailers: readonly HeaderField[] | undefined
  /** The peer's direction, and which field section comes next in it. */
  #remote: 'open' | 'ended' = 'open'
  #nextPart: MessagePart
  /** Bytes of content that are still to come; negative if there was no content-length. */
  #contentLeft = -1
  #isClosed = false

  constructor(id: number, host: StreamHost, sendWindow: number) {
    this.id = id
    this.#host = host
    this.#sendWindow = sendWindow
    this.#nextPart = host.side === 'client' ? 'response' : 'request'
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get backlog(): number {
    return this.#queue.bytes + this.#host.socketBacklog
  }

  /** Payload of this stream alone that has not left. */
  get heldBytes(): number {
    return this.#queue.bytes + this.#socketBytes
  }

  /** Call in the tick in which the stream was created. */
  observe(observer: StreamObserver): void {
    this.#observer = observer
  }

  /** Reads the stream. Before that the peer can send 64 KiB only. */
  start(events: StreamEvents): void {
    this.#events = events
    const early = this.#earlyEvents
    this.#earlyEvents = []
    for (const chunk of this.#earlyData.take()) events.data(chunk)
    for (const report of early) report(events)
    if (this.#isClosed || this.#remote === 'ended') return
    this.#host.openWindow()
    if (!this.#isThrottled) this.#widenTo(this.#adaptiveWindow.size)
  }

  /** While on, the peer's window is not opened again. */
  throttle(isOn: boolean): void {
    this.#isThrottled = isOn
    if (!isOn) this.#widen()
  }

  /** Opens the window of a throttled peer to at least `bytes`. */
  allow(bytes: number): void {
    if (this.#receiveWindow < bytes) this.#widenTo(bytes)
  }

  #report(report: (events: StreamEvents) => void): void {
    if (this.#events) report(this.#events)
    else this.#earlyEvents.push(report)
  }

  sendHeaders(fields: readonly HeaderField[], isEndStream = false): void {
    if (this.#isClosed) return
    this.#host.sendHeaders(this, fields, isEndStream)
    if (isEndStream) this.#localEnded()
  }

  write(parts: readonly Buffer[]): void {
    if (this.#isClosed || this.#local !== 'open') return
    for (const part of parts) this.#queue.push(part)
    this.pump()
  }

  /** Sends what the windows allow. */
  pump(): void {
    if (this.#isClosed) return
    const parts: Buffer[] = []
    let sent = 0
    const shared = this.#host.sendWindow
    while (this.#queue.bytes > 0 && !shared.isCongested) {
      const window = Math.min(this.#sendWindow, shared.bytes)
      const bytes = Math.min(this.#queue.bytes, window, this.#host.maxFrameBytes)
      if (bytes <= 0) break
      parts.push(frameHeader(frameType.DATA, 0, this.id, bytes))
      this.#queue.take(bytes, (part) => parts.push(part))
      this.#sendWindow -= bytes
      shared.bytes -= bytes
      sent += bytes
    }
    this.#socketBytes += sent
    if (sent > 0) this.#host.write(parts, sent, this)
    if (this.#queue.bytes > 0) {
      // A WINDOW_UPDATE of the stream itself calls `pump`.
      if (this.#sendWindow > 0) shared.block(this)
    } else if (this.#local === 'ending') this.#sendEnd()
  }

  /** Ends our direction once everything written has been sent. */
  end(trailers?: readonly HeaderField[]): void {
    if (this.#isClosed || this.#local !== 'open') return
    this.#local = 'ending'
    this.#trailers = trailers
    this.pump()
  }

  #sendEnd(): void {
    if (this.#trailers) this.#host.sendHeaders(this, this.#trailers, true)
    else this.#host.send(frameHeader(frameType.DATA, frameFlag.END_STREAM, this.id, 0))
    this.#localEnded()
  }

  #localEnded(): void {
    this.#local = 'ended'
    if (this.#remote === 'ended') this.close({})
  }

  /** Responds with headers only and reads no more of the request (RFC 9113 §8.1). */
  refuse(fields: readonly HeaderField[]): void {
    if (this.#isClosed) return
    this.#host.countRefusal()
    this.sendHeaders(fields, true)
    this.#sendReset(errorCode.NO_ERROR, {})
  }

  /** Closes both directions at once because of the peer. */
  reset(code: number, error?: Error): void {
    if (this.#isClosed) return
    this.#host.countRefusal()
    this.#sendReset(code, error ? { error } : {})
  }

  /** Closes both directions at once because of our caller; a client may do so as often as it likes. */
  cancel(): void {
    this.#sendReset(errorCode.CANCEL, {})
  }

  #sendReset(code: number, closure: StreamClosure): void {
    if (this.#isClosed) return
    const isOpen = this.#local !== 'ended' || this.#remote !== 'ended'
    if (isOpen) this.#host.sendReset(this.id, code)
    this.close(closure)
  }

  progress(bytes: number): void {
    this.#socketBytes -= bytes
    this.#events?.progress()
  }

  /** The peer has changed the window for our DATA; call `pump` afterwards. */
  changeWindow(bytes: number): void {
    this.#sendWindow += bytes
    if (this.#sendWindow > maxWindowBytes)
      this.reset(
        errorCode.FLOW_CONTROL_ERROR,
        new Http2Error('FLOW_CONTROL_ERROR', 'window of a stream is too large'),
      )
  }

  /** Takes a field section; returns false if it was malformed and the stream is closed now. */
  receiveHeaders(fields: readonly HeaderField[], isEndStream: boolean): boolean {
    this.#checkRemoteOpen()
    const part = this.#nextPart
    // Informational responses precede the final one.
    const isInterim = part === 'response' && !isEndStream && isInformational(fields)
    if (!isInterim && part !== 'trailers') {
      this.#nextPart = 'trailers'
      this.#contentLeft = contentLength(fields)
    }
    const isContentMissing = isEndStream ? this.#contentLeft > 0 : part === 'trailers'
    if (isMalformed(fields, part) || Number.isNaN(this.#contentLeft) || isContentMissing)
      return this.#malformed()
    if (part !== 'request') this.#observer?.headers(fields, isEndStream)
    if (isEndStream) this.receiveEnd()
    return true
  }

  #malformed(): false {
    const error = new Http2Error('PROTOCOL_ERROR', 'malformed message')
    this.reset(errorCode.PROTOCOL_ERROR, error)
    return false
  }

  /** A DATA frame of this length begins. */
  receiveBytes(bytes: number): void {
    this.#checkRemoteOpen()
    this.#receiveWindow -= bytes
    if (this.#receiveWindow < 0)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'peer ignores the window of a stream')
    if (this.#events) this.#widen()
  }

  receiveData(chunk: Buffer): void {
    if (this.#isClosed) return
    if (this.#contentLeft >= 0) {
      this.#contentLeft -= chunk.length
      if (this.#contentLeft < 0) {
        this.#malformed()
        return
      }
    }
    if (this.#events) this.#events.data(chunk)
    else this.#earlyData.push(chunk)
  }

  receiveEnd(): void {
    if (this.#isClosed) return
    this.#checkRemoteOpen()
    if (this.#contentLeft > 0) {
      this.#malformed()
      return
    }
    this.#remote = 'ended'
    this.#report((events) => events.finished())
    if (this.#local === 'ended') this.close({})
  }

  /** Removes the stream without sending anything. */
  close(closure: StreamClosure): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#queue.clear()
    this.#host.remove(this)
    this.#observer?.closed(closure)
    this.#report((events) => events.closed(closure))
  }

  #checkRemoteOpen(): void {
    if (this.#remote === 'ended')
      throw new Http2Error('STREAM_CLOSED', 'peer sends on a stream that it has ended')
  }

  /** Opens the window again when half of it is used. */
  #widen(): void {
    if (this.#isThrottled || this.#receiveWindow > this.#adaptiveWindow.size / 2) return
    this.#widenTo(this.#adaptiveWindow.halfUsed(this.#host.nowMs(), this.#host.roundTripMs))
  }

  #widenTo(size: number): void {
    if (this.#isClosed || this.#remote === 'ended') return
    const bytes = size - this.#receiveWindow
    this.#receiveWindow = size
    this.#host.send(numberFrame(frameType.WINDOW_UPDATE, this.id, bytes))
  }
}
