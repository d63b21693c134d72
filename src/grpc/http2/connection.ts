import type { Socket } from 'node:net'
import type { Clock } from '../../core/index.ts'
import { FrameQueue } from './frame-queue.ts'
import {
  checkedFrameSize,
  defaultFrameBytes,
  defaultWindowBytes,
  errorCode,
  type Frame,
  FrameReader,
  frame,
  frameFlag,
  frameType,
  goAwayFrame,
  Http2Error,
  maxWindowBytes,
  numberFrame,
  preface,
  settingId,
  settingsFrame,
  settingsIn,
} from './frames.ts'
import { HeaderAssembly, type HeaderBlock, type HeaderField, headerFrames } from './hpack.ts'
import { Http2Stream, type StreamHost } from './http2-stream.ts'
import {
  closeGraceMs,
  maxFrameBytes,
  maxIdlePings,
  maxRefusals,
  maxResets,
  maxSettings,
  maxSocketBytes,
  openWindowBytes,
  ratePeriodMs,
} from './limits.ts'
import { RateLimit } from './rate-limit.ts'

/** What a connection tells its owner. */
export interface ConnectionEvents {
  /** A client opened a stream; never at a client. */
  request(stream: Http2Stream, fields: readonly HeaderField[]): void
  /** No stream is left. */
  idle(): void
  /** The connection is gone; comes exactly once and last, after every stream was told. */
  closed(error?: Error): void
}

/** Which end of a connection this is, and what it allows. */
export interface ConnectionOptions {
  readonly side: 'client' | 'server'
  readonly maxStreams: number
  /** Streams that the other end may open within `ratePeriodMs`; as many as it likes without it. */
  readonly maxNewStreams?: number | undefined
  readonly clock: Clock
}

/** An HTTP/2 connection (RFC 9113) with what gRPC needs of it, on a socket that is open already. */
export class Http2Connection implements StreamHost {
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #events: ConnectionEvents
  readonly #reader: FrameReader
  readonly #queue: FrameQueue
  readonly #assembly: HeaderAssembly
  readonly #streams = new Map<number, Http2Stream>()
  /** Streams that wait for the connection's window or for the socket. */
  readonly #blocked = new Set<Http2Stream>()
  #isHeldBack = false
  /** What has arrived and waits until the frames that it would cause have room. */
  #unread: Buffer | undefined
  readonly #pings: (() => void)[] = []
  #lastStreamId = 0
  #receiveWindow = defaultWindowBytes
  #fullWindow = defaultWindowBytes
  #peerStreamWindow = defaultWindowBytes
  readonly #newStreams: RateLimit
  readonly #resets: RateLimit
  readonly #settings: RateLimit
  readonly #refusals: RateLimit
  /** Pings while we have nothing to say; Go pings a lot in answer to data. */
  readonly #idlePings: RateLimit
  #reason: Error | undefined
  #isClosing = false
  sendWindow = defaultWindowBytes
  maxFrameBytes = defaultFrameBytes
  /** The shortest round trip seen, 0 before the first. */
  roundTripMs = 0
  /** When anything last came from the other end. */
  heardAt: number
  /** The other end said that it goes, and that nothing was wrong. */
  wentAway = false

  constructor(socket: Socket, options: ConnectionOptions, events: ConnectionEvents) {
    this.#socket = socket
    this.#options = options
    this.#events = events
    this.heardAt = options.clock.monotonic()
    this.#assembly = new HeaderAssembly(options.clock)
    this.#queue = new FrameQueue(socket, {
      room: () => this.#readOn(),
      left: () => this.#sendHeldBack(),
      stalled: () => this.destroy(new Http2Error('ENHANCE_YOUR_CALM', 'it reads no responses')),
    })
    const { maxNewStreams = Number.POSITIVE_INFINITY } = options
    this.#newStreams = new RateLimit(maxNewStreams, ratePeriodMs, options.clock)
    this.#refusals = new RateLimit(maxRefusals, ratePeriodMs, options.clock)
    this.#resets = new RateLimit(maxResets, ratePeriodMs, options.clock)
    this.#settings = new RateLimit(maxSettings, ratePeriodMs, options.clock)
    this.#idlePings = new RateLimit(maxIdlePings, ratePeriodMs, options.clock)
    const isServer = options.side === 'server'
    this.#reader = new FrameReader(
      {
        dataBegins: (streamId, bytes) => this.#dataBegins(streamId, bytes),
        data: (streamId, chunk) => this.#streams.get(streamId)?.receiveData(chunk),
        dataEnds: (streamId, isLast) => {
          if (isLast) this.#streams.get(streamId)?.receiveEnd()
        },
        frame: (received) => this.#received(received),
        mustWait: () => this.#isClosing || this.#queue.isFull,
      },
      maxFrameBytes,
      isServer ? preface : Buffer.alloc(0),
    )
    const greeting = settingsFrame(
      new Map([
        ...(isServer
          ? ([[settingId.MAX_CONCURRENT_STREAMS, options.maxStreams]] as const)
          : ([[settingId.ENABLE_PUSH, 0]] as const)),
        [settingId.MAX_FRAME_SIZE, maxFrameBytes],
      ]),
    )
    this.#send(isServer ? greeting : Buffer.concat([preface, greeting]))
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#reason ??= error
    })
    socket.on('close', () => this.#closed())
  }

  get socket(): Socket {
    return this.#socket
  }

  get socketBacklog(): number {
    return this.#socket.writableLength
  }

  get isCongested(): boolean {
    return this.socketBacklog > maxSocketBytes
  }

  /** Opens a stream; for clients. */
  open(fields: readonly HeaderField[]): Http2Stream {
    this.#lastStreamId = this.#lastStreamId === 0 ? 1 : this.#lastStreamId + 2
    const stream = new Http2Stream(this.#lastStreamId, this, this.#peerStreamWindow)
    this.#streams.set(stream.id, stream)
    stream.sendHeaders(fields)
    return stream
  }

  /** Asks the other end for a sign of life. */
  ping(answered?: () => void): void {
    const sent = this.#options.clock.monotonic()
    this.#pings.push(() => {
      const durationMs = this.#options.clock.monotonic() - sent
      this.roundTripMs = Math.min(this.roundTripMs || durationMs, durationMs)
      answered?.()
    })
    this.#send(frame(frameType.PING, 0, 0, Buffer.alloc(8)))
  }

  /** Says goodbye and closes once everything written has left. */
  close(code: number = errorCode.NO_ERROR): void {
    if (this.#isClosing) return
    this.#queue.flush()
    this.#isClosing = true
    const last = this.#options.side === 'server' ? this.#lastStreamId : 0
    this.#socket.end(goAwayFrame(last, code))
    const giveUp = setTimeout(() => this.#socket.destroy(), closeGraceMs).unref()
    this.#socket.once('close', () => clearTimeout(giveUp))
  }

  destroy(error?: Error): void {
    this.#reason ??= error
    this.#isClosing = true
    this.#socket.destroy()
  }

  write(parts: readonly Buffer[], bytes: number, stream: Http2Stream): void {
    if (this.#isClosing || this.#socket.destroyed) return
    this.#idlePings.reset()
    this.#queue.write(parts, () => stream.progress(bytes))
  }

  #send(...parts: readonly Buffer[]): void {
    if (!this.#isClosing && !this.#socket.destroyed) this.#queue.add(...parts)
  }

  sendSoon(bytes: Buffer): void {
    this.#send(bytes)
  }

  /** A request was refused or a stream reset by this end: what caused it may not be repeated for ever. */
  refused(): void {
    if (this.#refusals.allows()) return
    this.#fail(new Http2Error('ENHANCE_YOUR_CALM', 'it causes too many refusals'))
  }

  sendHeaders(stream: Http2Stream, fields: readonly HeaderField[], isLast: boolean): void {
    this.#idlePings.reset()
    this.#send(...headerFrames(stream.id, fields, isLast, this.maxFrameBytes))
  }

  nowMs(): number {
    return this.#options.clock.monotonic()
  }

  openWindow(): void {
    this.#fullWindow = openWindowBytes
    this.#widen()
  }

  blocked(stream: Http2Stream): void {
    this.#blocked.add(stream)
    if (this.isCongested) this.#isHeldBack = true
  }

  remove(stream: Http2Stream): void {
    this.#streams.delete(stream.id)
    this.#blocked.delete(stream)
    // What the stream held unread counts as read now.
    this.#widen()
    if (this.#streams.size === 0) this.#events.idle()
  }

  /** Opens the window again when half of it is used up. */
  #widen(): void {
    const bytes = this.#fullWindow - this.#receiveWindow
    if (bytes < this.#fullWindow / 2) return
    this.#receiveWindow = this.#fullWindow
    this.#send(numberFrame(frameType.WINDOW_UPDATE, 0, bytes))
  }

  #read(chunk: Buffer): void {
    if (this.#isClosing) return
    this.heardAt = this.#options.clock.monotonic()
    if (this.#unread) {
      this.#unread = Buffer.concat([this.#unread, chunk])
      return
    }
    try {
      const unread = this.#reader.push(chunk)
      if (this.#isClosing || !this.#queue.isFull) return
      this.#unread = unread
      this.#socket.pause()
      this.#queue.awaitRoom()
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error
      this.#fail(error)
    }
  }

  /** Goes on after the queue was full. */
  #readOn(): void {
    if (this.#isClosing) return
    const unread = this.#unread
    this.#unread = undefined
    this.#socket.resume()
    if (unread) this.#read(unread)
  }

  #fail(error: Http2Error): void {
    this.#reason ??= error
    this.close(error.errorCode)
  }

  #dataBegins(streamId: number, bytes: number): void {
    this.#assembly.mustBeWhole()
    this.#receiveWindow -= bytes
    if (this.#receiveWindow < 0)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'it sent more than it was allowed to')
    const stream = this.#streams.get(streamId)
    if (stream) stream.receiveBytes(bytes)
    else this.#mustHaveBeen(streamId)
    if (this.#fullWindow > defaultWindowBytes) this.#widen()
  }

  /** Streams that are over may still be spoken of, streams that never were may not. */
  #mustHaveBeen(streamId: number): void {
    if (streamId === 0 || streamId > this.#lastStreamId)
      throw new Http2Error('PROTOCOL_ERROR', 'it speaks of a stream that was never opened')
  }

  #received(received: Frame): void {
    const block = this.#assembly.accept(received)
    if (block) this.#receivedHeaders(block)
    const { type, flags, streamId, payload } = received
    switch (type) {
      case frameType.SETTINGS:
        if ((flags & frameFlag.ACK) === 0) this.#receivedSettings(payload)
        return
      case frameType.PING:
        this.#receivedPing(flags, payload)
        return
      case frameType.WINDOW_UPDATE:
        this.#receivedWindow(streamId, payload)
        return
      case frameType.RST_STREAM:
        this.#receivedReset(streamId, payload)
        return
      case frameType.GOAWAY:
        this.wentAway = payload.length >= 8 && payload.readUInt32BE(4) === errorCode.NO_ERROR
        return
      case frameType.PUSH_PROMISE:
        throw new Http2Error('PROTOCOL_ERROR', 'it pushes')
      default:
    }
  }

  #receivedHeaders({ streamId, fields, isLast }: HeaderBlock): void {
    const known = this.#streams.get(streamId)
    if (known) {
      // Only trailers follow the headers of a request (RFC 9113 §8.1).
      if (this.#options.side === 'server' && !isLast)
        throw new Http2Error('PROTOCOL_ERROR', 'it sends the headers of a request twice')
      known.receiveHeaders(fields, isLast)
      return
    }
    if (streamId <= this.#lastStreamId) return
    if (this.#options.side === 'client' || streamId % 2 === 0)
      throw new Http2Error('PROTOCOL_ERROR', 'it opens a stream that it may not open')
    if (!this.#newStreams.allows())
      throw new Http2Error('ENHANCE_YOUR_CALM', 'it opens too many streams')
    this.#lastStreamId = streamId
    const stream = new Http2Stream(streamId, this, this.#peerStreamWindow)
    if (this.#streams.size >= this.#options.maxStreams) {
      this.refused()
      this.#send(numberFrame(frameType.RST_STREAM, streamId, errorCode.REFUSED_STREAM))
      return
    }
    this.#streams.set(streamId, stream)
    this.#events.request(stream, fields)
    if (isLast) stream.receiveEnd()
  }

  #receivedSettings(payload: Buffer): void {
    if (!this.#settings.allows())
      throw new Http2Error('ENHANCE_YOUR_CALM', 'it changes its settings too often')
    if (payload.length % 6 !== 0)
      throw new Http2Error('FRAME_SIZE_ERROR', 'its settings are cut off')
    for (const [id, value] of settingsIn(payload)) {
      if (id === settingId.MAX_FRAME_SIZE) this.maxFrameBytes = checkedFrameSize(value)
      if (id === settingId.INITIAL_WINDOW_SIZE) this.#receivedInitialWindow(value)
    }
    this.#send(frame(frameType.SETTINGS, frameFlag.ACK, 0, Buffer.alloc(0)))
  }

  #receivedInitialWindow(value: number): void {
    if (value > maxWindowBytes)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'its window is too large')
    const change = value - this.#peerStreamWindow
    this.#peerStreamWindow = value
    for (const stream of this.#streams.values()) stream.changeWindow(change, maxWindowBytes)
  }

  #receivedPing(flags: number, payload: Buffer): void {
    if (payload.length !== 8) throw new Http2Error('FRAME_SIZE_ERROR', 'a ping is not 8 bytes long')
    if ((flags & frameFlag.ACK) !== 0) {
      this.#pings.shift()?.()
      return
    }
    if (!this.#idlePings.allows())
      throw new Http2Error('ENHANCE_YOUR_CALM', 'it sends too many pings')
    this.#send(frame(frameType.PING, frameFlag.ACK, 0, payload))
  }

  #receivedWindow(streamId: number, payload: Buffer): void {
    if (payload.length !== 4)
      throw new Http2Error('FRAME_SIZE_ERROR', 'a window update is not 4 bytes long')
    const bytes = payload.readUInt32BE() & maxWindowBytes
    if (bytes === 0) throw new Http2Error('PROTOCOL_ERROR', 'a window grows by nothing')
    if (streamId !== 0) {
      this.#streams.get(streamId)?.changeWindow(bytes, maxWindowBytes)
      return
    }
    this.sendWindow += bytes
    if (this.sendWindow > maxWindowBytes)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'its window is too large')
    this.#sendBlocked()
  }

  /** Goes on after the socket was congested. */
  #sendHeldBack(): void {
    if (!this.#isHeldBack || this.isCongested) return
    this.#isHeldBack = false
    this.#sendBlocked()
  }

  #sendBlocked(): void {
    let count = this.#blocked.size
    for (const stream of this.#blocked) {
      if (count-- === 0 || this.sendWindow <= 0) return
      // It enters again behind the others if it is still blocked.
      this.#blocked.delete(stream)
      stream.pump()
    }
  }

  #receivedReset(streamId: number, payload: Buffer): void {
    if (payload.length !== 4)
      throw new Http2Error('FRAME_SIZE_ERROR', 'a reset is not 4 bytes long')
    this.#mustHaveBeen(streamId)
    // Opening and resetting streams in a loop: CVE-2023-44487.
    if (!this.#resets.allows())
      throw new Http2Error('ENHANCE_YOUR_CALM', 'it resets too many streams')
    this.#streams.get(streamId)?.close({ resetCode: payload.readUInt32BE() })
  }

  #closed(): void {
    this.#isClosing = true
    this.#queue.stop()
    this.#unread = undefined
    const ending = { isLost: true, ...(this.#reason && { error: this.#reason }) }
    for (const stream of this.#streams.values()) stream.close(ending)
    this.#events.closed(this.#reason)
  }
}
