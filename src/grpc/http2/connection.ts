import type { Socket } from 'node:net'
import type { Clock } from '../../core/index.ts'
import { ConnectionReceiveWindow, ConnectionSendWindow } from './flow-control.ts'
import { FrameQueue } from './frame-queue.ts'
import {
  defaultMaxFrameBytes,
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
  openingFrame,
  preface,
  settingId,
  settingsIn,
  validMaxFrameBytes,
} from './frames.ts'
import { checkDependency, FieldBlockReader, type FieldSection, headerFrames } from './headers.ts'
import type { HeaderField } from './hpack.ts'
import { closeGraceMs, maxIdlePings, maxRefusals, maxResets, maxSettings } from './limits.ts'
import { RateLimit } from './rate-limit.ts'
import { Http2Stream, type StreamHost } from './stream.ts'
import { StreamTable } from './stream-table.ts'

/** Events of a connection. */
export interface ConnectionEvents {
  /** A client has opened a stream; servers only. */
  request(stream: Http2Stream, fields: readonly HeaderField[]): void
  /** The last stream has closed. */
  idle(): void
  /** The connection is closed; called exactly once and last, after all streams were closed. */
  closed(error?: Error): void
}

/** The role of this endpoint, and its limits. */
export interface ConnectionOptions {
  readonly side: 'client' | 'server'
  /** Streams that a client may open. */
  readonly maxStreams: number
  /** Streams that a client may open within `ratePeriodMs`; default: no limit. */
  readonly maxNewStreams?: number | undefined
  readonly clock: Clock
  /** SETTINGS_MAX_FRAME_SIZE; default 16 KiB. */
  readonly maxFrameBytes?: number
}

/** An HTTP/2 connection (RFC 9113) on an open socket, with what gRPC needs: no push and no priorities. */
export class Http2Connection implements StreamHost {
  readonly side: 'client' | 'server'
  readonly #socket: Socket
  readonly #options: ConnectionOptions
  readonly #events: ConnectionEvents
  readonly #reader: FrameReader
  readonly #queue: FrameQueue
  readonly #fieldBlocks: FieldBlockReader
  readonly #streams = new StreamTable()
  readonly #receiveWindow: ConnectionReceiveWindow
  /** Received bytes that wait until the frames they would cause have room. */
  #unread: Buffer | undefined
  readonly #pings: (() => void)[] = []
  #peerStreamWindow = defaultWindowBytes
  readonly #newStreams: RateLimit
  readonly #resets: RateLimit
  readonly #settings: RateLimit
  readonly #refusals: RateLimit
  /** Pings while we send nothing; grpc-go pings often while it receives data. */
  readonly #idlePings: RateLimit
  #closeReason: Error | undefined
  #isClosing = false
  readonly sendWindow: ConnectionSendWindow
  maxFrameBytes = defaultMaxFrameBytes
  /** Streams that the server allows; clients only. */
  maxPeerStreams = Number.POSITIVE_INFINITY
  /** The shortest round trip measured, 0 before the first. */
  roundTripMs = 0
  /** Monotonic time at which the last bytes of the peer arrived. */
  lastReceivedAt: number
  /** The peer has sent GOAWAY: it accepts no new streams. */
  isGoingAway = false
  /** The peer has sent GOAWAY without an error. */
  hasShutDown = false

  constructor(socket: Socket, options: ConnectionOptions, events: ConnectionEvents) {
    const { side, clock, maxFrameBytes = defaultMaxFrameBytes } = options
    this.side = side
    this.#socket = socket
    this.#options = options
    this.#events = events
    this.lastReceivedAt = clock.monotonic()
    this.#fieldBlocks = new FieldBlockReader(clock)
    this.#queue = new FrameQueue(socket, {
      room: () => this.#resumeReading(),
      progress: () => this.sendWindow.socketProgress(),
      stalled: () => this.destroy(new Http2Error('ENHANCE_YOUR_CALM', 'peer does not read')),
    })
    this.sendWindow = new ConnectionSendWindow(socket)
    this.#receiveWindow = new ConnectionReceiveWindow((bytes) =>
      this.send(numberFrame(frameType.WINDOW_UPDATE, 0, bytes)),
    )
    const { maxNewStreams = Number.POSITIVE_INFINITY } = options
    this.#newStreams = new RateLimit(maxNewStreams, 'peer opens too many streams', clock)
    this.#refusals = new RateLimit(maxRefusals, 'peer causes too many refusals', clock)
    this.#resets = new RateLimit(maxResets, 'peer resets too many streams', clock)
    this.#settings = new RateLimit(maxSettings, 'peer changes its settings too often', clock)
    this.#idlePings = new RateLimit(maxIdlePings, 'peer sends too many pings', clock)
    this.#reader = this.#frameReader(maxFrameBytes)
    this.send(openingFrame(side, { maxStreams: options.maxStreams, maxFrameBytes }))
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => {
      this.#closeReason ??= error
    })
    socket.on('close', () => this.#closed())
  }

  #frameReader(maxFrameBytes: number): FrameReader {
    return new FrameReader(
      {
        dataBegins: (streamId, bytes) => this.#dataBegins(streamId, bytes),
        data: (streamId, chunk) => this.#streams.get(streamId)?.receiveData(chunk),
        dataEnds: (streamId, isEndStream) => {
          if (isEndStream) this.#streams.get(streamId)?.receiveEnd()
        },
        frame: (received) => this.#received(received),
        mustPause: () => this.#isClosing || this.#queue.isFull,
      },
      maxFrameBytes,
      this.side === 'server' ? preface : Buffer.alloc(0),
    )
  }

  get socket(): Socket {
    return this.#socket
  }

  get streamCount(): number {
    return this.#streams.size
  }

  get socketBacklog(): number {
    return this.#socket.writableLength
  }

  /** Opens a stream; clients only. */
  open(fields: readonly HeaderField[], isEndStream = false): Http2Stream {
    this.#streams.lastId = this.#streams.lastId === 0 ? 1 : this.#streams.lastId + 2
    const stream = new Http2Stream(this.#streams.lastId, this, this.#peerStreamWindow)
    this.#streams.add(stream)
    stream.sendHeaders(fields, isEndStream)
    return stream
  }

  /** Sends a PING; the acknowledgement measures the round trip. */
  ping(acknowledged?: () => void): void {
    const sentAt = this.#options.clock.monotonic()
    this.#pings.push(() => {
      const durationMs = this.#options.clock.monotonic() - sentAt
      this.roundTripMs = Math.min(this.roundTripMs || durationMs, durationMs)
      acknowledged?.()
    })
    this.send(frame(frameType.PING, 0, 0, Buffer.alloc(8)))
  }

  /** Sends GOAWAY and closes once everything written has left. */
  close(code: number = errorCode.NO_ERROR): void {
    if (this.#isClosing) return
    this.#queue.flush()
    this.#isClosing = true
    this.#socket.end(goAwayFrame(this.side === 'server' ? this.#streams.lastId : 0, code))
    const giveUp = setTimeout(() => this.#socket.destroy(), closeGraceMs).unref()
    this.#socket.once('close', () => clearTimeout(giveUp))
  }

  destroy(error?: Error): void {
    this.#closeReason ??= error
    this.#isClosing = true
    this.#socket.destroy()
  }

  write(parts: readonly Buffer[], bytes: number, stream: Http2Stream): void {
    if (this.#isClosing || this.#socket.destroyed) return
    this.#idlePings.reset()
    this.#queue.write(parts, () => stream.progress(bytes))
  }

  send(...parts: readonly Buffer[]): void {
    if (!this.#isClosing && !this.#socket.destroyed) this.#queue.add(...parts)
  }

  sendHeaders(stream: Http2Stream, fields: readonly HeaderField[], isEndStream: boolean): void {
    this.#idlePings.reset()
    this.send(...headerFrames(stream.id, fields, isEndStream, this.maxFrameBytes))
  }

  sendReset(streamId: number, code: number): void {
    this.#streams.addReset(streamId)
    this.send(numberFrame(frameType.RST_STREAM, streamId, code))
  }

  countRefusal(): void {
    this.#guard(() => this.#refusals.count())
  }

  nowMs(): number {
    return this.#options.clock.monotonic()
  }

  openWindow(): void {
    this.#receiveWindow.openFully()
  }

  remove(stream: Http2Stream): void {
    this.#streams.delete(stream)
    this.sendWindow.remove(stream)
    // Unread bytes of the stream count as read now.
    this.#receiveWindow.widen()
    if (this.#streams.size === 0) this.#events.idle()
  }

  #read(chunk: Buffer): void {
    if (this.#isClosing) return
    this.lastReceivedAt = this.#options.clock.monotonic()
    if (this.#unread) {
      this.#unread = Buffer.concat([this.#unread, chunk])
      return
    }
    this.#guard(() => {
      const unread = this.#reader.push(chunk)
      if (this.#isClosing || !this.#queue.isFull) return
      this.#unread = unread
      this.#socket.pause()
      this.#queue.awaitRoom()
    })
  }

  /** Ends the connection on a connection error. */
  #guard(act: () => void): void {
    try {
      act()
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error
      this.#closeReason ??= error
      this.close(error.errorCode)
    }
  }

  #resumeReading(): void {
    if (this.#isClosing) return
    const unread = this.#unread
    this.#unread = undefined
    this.#socket.resume()
    if (unread) this.#read(unread)
  }

  #dataBegins(streamId: number, bytes: number): void {
    this.#fieldBlocks.checkComplete()
    const stream = this.#streams.get(streamId)
    if (stream) stream.receiveBytes(bytes)
    else this.#streams.checkReset(streamId)
    this.#receiveWindow.received(bytes)
  }

  #received(received: Frame): void {
    const section = this.#fieldBlocks.accept(received)
    if (section) this.#receivedHeaders(section)
    const { type, flags, streamId, payload } = received
    switch (type) {
      case frameType.SETTINGS:
        if ((flags & frameFlag.ACK) === 0) this.#receivedSettings(payload)
        return
      case frameType.PING:
        this.#receivedPing(flags, payload)
        return
      case frameType.WINDOW_UPDATE:
        this.#receivedWindowUpdate(streamId, payload)
        return
      case frameType.RST_STREAM:
        this.#receivedReset(streamId, payload)
        return
      case frameType.GOAWAY:
        this.#receivedGoAway(payload)
        return
      case frameType.PRIORITY:
        checkDependency(streamId, payload)
        return
      case frameType.PUSH_PROMISE:
        throw new Http2Error('PROTOCOL_ERROR', 'unexpected PUSH_PROMISE frame')
      default:
    }
  }

  #receivedHeaders({ streamId, fields, isEndStream }: FieldSection): void {
    const known = this.#streams.get(streamId)
    if (known) known.receiveHeaders(fields, isEndStream)
    else if (streamId > this.#streams.lastId) this.#receivedRequest(streamId, fields, isEndStream)
    else if (this.side === 'client') this.#streams.checkReset(streamId)
    else this.#streams.checkLateTrailers(streamId, fields, isEndStream)
  }

  #receivedRequest(streamId: number, fields: readonly HeaderField[], isEndStream: boolean): void {
    if (this.side === 'client' || streamId % 2 === 0)
      throw new Http2Error('PROTOCOL_ERROR', 'peer opens a stream with an invalid identifier')
    this.#newStreams.count()
    this.#streams.lastId = streamId
    if (this.#streams.size >= this.#options.maxStreams) {
      this.countRefusal()
      this.sendReset(streamId, errorCode.REFUSED_STREAM)
      return
    }
    const stream = new Http2Stream(streamId, this, this.#peerStreamWindow)
    this.#streams.add(stream)
    if (stream.receiveHeaders(fields, isEndStream)) this.#events.request(stream, fields)
  }

  #receivedSettings(payload: Buffer): void {
    this.#settings.count()
    for (const [id, value] of settingsIn(payload)) this.#receivedSetting(id, value)
    this.send(frame(frameType.SETTINGS, frameFlag.ACK, 0, Buffer.alloc(0)))
    // The initial window of the streams may have grown.
    for (const stream of this.#streams.values()) stream.pump()
  }

  #receivedSetting(id: number, value: number): void {
    if (id === settingId.MAX_FRAME_SIZE) this.maxFrameBytes = validMaxFrameBytes(value)
    else if (id === settingId.INITIAL_WINDOW_SIZE) this.#receivedInitialWindow(value)
    else if (id === settingId.MAX_CONCURRENT_STREAMS) this.maxPeerStreams = value
    else if (id === settingId.ENABLE_PUSH && value > 1)
      throw new Http2Error('PROTOCOL_ERROR', 'invalid SETTINGS_ENABLE_PUSH')
  }

  #receivedInitialWindow(value: number): void {
    if (value > maxWindowBytes)
      throw new Http2Error('FLOW_CONTROL_ERROR', 'initial window is too large')
    const change = value - this.#peerStreamWindow
    this.#peerStreamWindow = value
    for (const stream of this.#streams.values()) stream.changeWindow(change)
  }

  #receivedPing(flags: number, payload: Buffer): void {
    if ((flags & frameFlag.ACK) !== 0) {
      this.#pings.shift()?.()
      return
    }
    this.#idlePings.count()
    this.send(frame(frameType.PING, frameFlag.ACK, 0, payload))
  }

  #receivedWindowUpdate(streamId: number, payload: Buffer): void {
    const bytes = payload.readUInt32BE() & maxWindowBytes
    if (bytes === 0) throw new Http2Error('PROTOCOL_ERROR', 'window update of 0 bytes')
    if (streamId === 0) {
      this.sendWindow.widen(bytes)
      return
    }
    this.#streams.checkOpened(streamId)
    const stream = this.#streams.get(streamId)
    stream?.changeWindow(bytes)
    stream?.pump()
  }

  #receivedReset(streamId: number, payload: Buffer): void {
    this.#streams.checkOpened(streamId)
    // Opening and resetting streams in a loop: CVE-2023-44487.
    this.#resets.count()
    this.#streams.deleteReset(streamId)
    this.#streams.get(streamId)?.close({ resetCode: payload.readUInt32BE() })
  }

  #receivedGoAway(payload: Buffer): void {
    this.isGoingAway = true
    this.hasShutDown = payload.readUInt32BE(4) === errorCode.NO_ERROR
    if (this.side === 'server') return
    const lastStreamId = payload.readUInt32BE() & 0x7fff_ffff
    for (const stream of this.#streams.values())
      if (stream.id > lastStreamId) stream.close({ resetCode: errorCode.REFUSED_STREAM })
  }

  #closed(): void {
    this.#isClosing = true
    this.#queue.stop()
    this.#unread = undefined
    const error = this.#closeReason
    for (const stream of this.#streams.values()) stream.close(error ? { error } : {})
    this.#events.closed(error)
  }
}
