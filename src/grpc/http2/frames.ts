import { SallyportError } from '../../core/index.ts'
import { maxControlFrameBytes } from './limits.ts'

/** HTTP/2's frame types (RFC 9113 §6). */
export const frameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const

/** Frame flags; END_STREAM and ACK share a bit. */
export const frameFlag = {
  END_STREAM: 0x1,
  ACK: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const

/** Identifiers of settings (RFC 9113 §6.5.2). */
export const settingId = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const

/** The client connection preface (RFC 9113 §3.4). */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Length of a frame header. */
const frameHeaderBytes = 9

/** Initial and maximum flow-control window of a stream or connection (RFC 9113 §6.9). */
export const defaultWindowBytes = 65_535
export const maxWindowBytes = 2 ** 31 - 1

/** Initial and maximum value of SETTINGS_MAX_FRAME_SIZE (RFC 9113 §6.5.2). */
export const defaultMaxFrameBytes = 16_384
const maxMaxFrameBytes = 2 ** 24 - 1

const noBytes = Buffer.alloc(0)

/** A frame header; the payload follows. */
export function frameHeader(type: number, flags: number, streamId: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes)
  header.writeUIntBE(length, 0, 3)
  header[3] = type
  header[4] = flags
  header.writeUInt32BE(streamId, 5)
  return header
}

/** A complete frame with a short payload. */
export const frame = (type: number, flags: number, streamId: number, payload: Buffer): Buffer =>
  Buffer.concat([frameHeader(type, flags, streamId, payload.length), payload])

/** A frame whose payload is one 32-bit number: WINDOW_UPDATE or RST_STREAM. */
export function numberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4)
  payload.writeUInt32BE(value)
  return frame(type, 0, streamId, payload)
}

/** What an endpoint sends first (RFC 9113 §3.4): its settings, and before them the preface of a client. */
export function openingFrame(
  side: 'client' | 'server',
  { maxStreams, maxFrameBytes }: { maxStreams: number; maxFrameBytes: number },
): Buffer {
  const isServer = side === 'server'
  const settings = settingsFrame(
    new Map([
      isServer ? [settingId.MAX_CONCURRENT_STREAMS, maxStreams] : [settingId.ENABLE_PUSH, 0],
      [settingId.MAX_FRAME_SIZE, maxFrameBytes],
    ]),
  )
  return isServer ? settings : Buffer.concat([preface, settings])
}

function settingsFrame(settings: ReadonlyMap<number, number>): Buffer {
  const payload = Buffer.allocUnsafe(settings.size * 6)
  let offset = 0
  for (const [id, value] of settings) {
    payload.writeUInt16BE(id, offset)
    payload.writeUInt32BE(value, offset + 2)
    offset += 6
  }
  return frame(frameType.SETTINGS, 0, 0, payload)
}

/** The identifiers and values in a SETTINGS frame, in order. */
export function* settingsIn(payload: Buffer): Generator<readonly [number, number]> {
  for (let offset = 0; offset + 6 <= payload.length; offset += 6)
    yield [payload.readUInt16BE(offset), payload.readUInt32BE(offset + 2)]
}

/** A GOAWAY frame. */
export function goAwayFrame(lastStreamId: number, code: number): Buffer {
  const payload = Buffer.allocUnsafe(8)
  payload.writeUInt32BE(lastStreamId)
  payload.writeUInt32BE(code, 4)
  return frame(frameType.GOAWAY, 0, 0, payload)
}

/** Error codes of HTTP/2 (RFC 9113 §7). */
export const errorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const

/** A connection error (RFC 9113 §5.4.1): the peer violated HTTP/2 or one of our limits. */
export class Http2Error extends SallyportError {
  readonly code = 'HTTP2_ERROR'
  /** The error code for GOAWAY. */
  readonly errorCode: number

  constructor(name: keyof typeof errorCode, problem: string) {
    super(`HTTP/2 connection error: ${problem}`)
    this.errorCode = errorCode[name]
  }
}

/** Returns a valid SETTINGS_MAX_FRAME_SIZE (RFC 9113 §6.5.2). */
export function validMaxFrameBytes(value: number): number {
  if (value < defaultMaxFrameBytes || value > maxMaxFrameBytes)
    throw new Http2Error('PROTOCOL_ERROR', 'peer sent an invalid SETTINGS_MAX_FRAME_SIZE')
  return value
}

/** A frame other than DATA, read as a whole. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

/** Receives the frames that a FrameReader reads. */
export interface FrameHandler {
  /** A DATA frame begins; `bytes` counts for flow control. */
  dataBegins(streamId: number, bytes: number): void
  /** Payload of the current DATA frame, as it arrives. */
  data(streamId: number, chunk: Buffer): void
  dataEnds(streamId: number, isEndStream: boolean): void
  frame(frame: Frame): void
  /** Whether reading has to pause before the next frame. */
  mustPause(): boolean
}

interface FrameRule {
  /** Whether the frame belongs to the connection (stream 0) or to a stream; either if absent. */
  readonly scope?: 'connection' | 'stream'
  readonly minBytes?: number
  readonly maxBytes?: number
}

/** Stream identifier and length of each frame type (RFC 9113 §6). */
const frameRules: ReadonlyMap<number, FrameRule> = new Map<number, FrameRule>([
  [frameType.DATA, { scope: 'stream' }],
  [frameType.HEADERS, { scope: 'stream' }],
  [frameType.PRIORITY, { scope: 'stream', minBytes: 5, maxBytes: 5 }],
  [frameType.RST_STREAM, { scope: 'stream', minBytes: 4, maxBytes: 4 }],
  [frameType.SETTINGS, { scope: 'connection' }],
  [frameType.PING, { scope: 'connection', minBytes: 8, maxBytes: 8 }],
  [frameType.GOAWAY, { scope: 'connection', minBytes: 8 }],
  [frameType.WINDOW_UPDATE, { minBytes: 4, maxBytes: 4 }],
  [frameType.CONTINUATION, { scope: 'stream' }],
])

/** @throws Http2Error if a frame has a wrong length or stream identifier; an endpoint may treat all of these as connection errors */
function checkFrameHeader(type: number, flags: number, streamId: number, bytes: number): void {
  const rule = frameRules.get(type)
  if (!rule) return
  const { scope, minBytes = 0, maxBytes = Number.POSITIVE_INFINITY } = rule
  if (scope !== undefined && (streamId === 0) !== (scope === 'connection'))
    throw new Http2Error('PROTOCOL_ERROR', `frame of type ${type} on stream ${streamId}`)
  const isInvalidSettings =
    type === frameType.SETTINGS && ((flags & frameFlag.ACK) === 0 ? bytes % 6 !== 0 : bytes > 0)
  if (bytes < minBytes || bytes > maxBytes || isInvalidSettings)
    throw new Http2Error('FRAME_SIZE_ERROR', `frame of type ${type} has ${bytes} bytes`)
}

/** Splits a byte stream into frames. DATA payload is passed on as it arrives, without copying. */
export class FrameReader {
  readonly #handler: FrameHandler
  readonly #maxFrameBytes: number
  /** The rest of the preface that the peer has to send first. */
  #preface: Buffer
  /** The beginning of a frame header. */
  #partialHeader: Buffer | undefined
  #type = 0
  #flags = 0
  #streamId = 0
  #remaining = 0
  /** Memory for a frame that arrives in pieces, however small they are. */
  #collected: Buffer | undefined
  #isCollecting = false
  #isWithinFrame = false

  constructor(handler: FrameHandler, maxFrameBytes: number, expectedPreface: Buffer) {
    this.#handler = handler
    this.#maxFrameBytes = maxFrameBytes
    this.#preface = expectedPreface
  }

  /** Returns the bytes that were left unread because of `mustPause`; push them again before any others. */
  push(chunk: Buffer): Buffer | undefined {
    let rest = this.#preface.length > 0 ? this.#readPreface(chunk) : chunk
    if (this.#partialHeader !== undefined && rest.length > 0) {
      const taken = Math.min(frameHeaderBytes - this.#partialHeader.length, rest.length)
      const header = Buffer.concat([this.#partialHeader, rest.subarray(0, taken)])
      rest = rest.subarray(taken)
      this.#partialHeader = undefined
      const unread = this.#feed(header)
      if (unread) return Buffer.concat([unread, rest])
    }
    return rest.length > 0 ? this.#feed(rest) : undefined
  }

  #readPreface(chunk: Buffer): Buffer {
    const length = Math.min(chunk.length, this.#preface.length)
    if (!chunk.subarray(0, length).equals(this.#preface.subarray(0, length)))
      throw new Http2Error('PROTOCOL_ERROR', 'peer does not speak HTTP/2')
    this.#preface = this.#preface.subarray(length)
    return chunk.subarray(length)
  }

  #feed(chunk: Buffer): Buffer | undefined {
    let position = 0
    while (position < chunk.length) {
      if (this.#isWithinFrame) position = this.#continue(chunk, position)
      else if (this.#handler.mustPause()) return chunk.subarray(position)
      else if (chunk.length - position < frameHeaderBytes) {
        this.#partialHeader = Buffer.from(chunk.subarray(position))
        return undefined
      } else {
        this.#begin(chunk, position)
        position += frameHeaderBytes
      }
    }
    return undefined
  }

  #begin(chunk: Buffer, position: number): void {
    this.#remaining = chunk.readUIntBE(position, 3)
    this.#type = chunk[position + 3] ?? 0
    this.#flags = chunk[position + 4] ?? 0
    this.#streamId = chunk.readUInt32BE(position + 5) & 0x7fff_ffff
    this.#isWithinFrame = true
    const isData = this.#type === frameType.DATA && (this.#flags & frameFlag.PADDED) === 0
    const limit = isData ? this.#maxFrameBytes : Math.min(this.#maxFrameBytes, maxControlFrameBytes)
    if (this.#remaining > limit)
      throw new Http2Error('FRAME_SIZE_ERROR', `frame of ${this.#remaining} bytes is too long`)
    checkFrameHeader(this.#type, this.#flags, this.#streamId, this.#remaining)
    if (this.#type === frameType.DATA) this.#handler.dataBegins(this.#streamId, this.#remaining)
    this.#isCollecting = !isData
    if (this.#remaining === 0) this.#complete(noBytes)
  }

  #continue(chunk: Buffer, position: number): number {
    const end = Math.min(chunk.length, position + this.#remaining)
    const part = chunk.subarray(position, end)
    if (!this.#isCollecting) this.#handler.data(this.#streamId, part)
    else if (this.#collected || part.length < this.#remaining) this.#collect(part)
    this.#remaining -= part.length
    if (this.#remaining === 0) this.#complete(this.#collected ?? part)
    return end
  }

  #collect(part: Buffer): void {
    this.#collected ??= Buffer.allocUnsafe(this.#remaining)
    part.copy(this.#collected, this.#collected.length - this.#remaining)
  }

  #complete(payload: Buffer): void {
    this.#isWithinFrame = false
    this.#collected = undefined
    const [type, flags, streamId] = [this.#type, this.#flags, this.#streamId]
    if (type !== frameType.DATA) {
      this.#handler.frame({ type, flags, streamId, payload })
      return
    }
    if (this.#isCollecting) {
      const content = withoutPadding(payload, flags)
      if (content.length > 0) this.#handler.data(streamId, content)
    }
    this.#handler.dataEnds(streamId, (flags & frameFlag.END_STREAM) !== 0)
  }
}

/** The content of a frame that may be padded. */
export function withoutPadding(payload: Buffer, flags: number): Buffer {
  if ((flags & frameFlag.PADDED) === 0) return payload
  const padding = payload[0] ?? 0
  if (padding >= payload.length)
    throw new Http2Error('PROTOCOL_ERROR', 'padding is longer than its frame')
  return payload.subarray(1, payload.length - padding)
}
