import { SallyportError } from '../../core/index.ts'
import { maxCollectedBytes } from './limits.ts'

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

/** The flags of frames; END_STREAM and ACK share a bit. */
export const frameFlag = {
  END_STREAM: 0x1,
  ACK: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const

/** The settings that matter here (RFC 9113 §6.5.2). */
export const settingId = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const

/** What a client says before its first frame. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** The length of every frame's header. */
const frameHeaderBytes = 9

/** The window of a stream or connection of which nothing else has been said, and the largest one. */
export const defaultWindowBytes = 65_535
export const maxWindowBytes = 2 ** 31 - 1

/** The frame size that every end takes. */
export const defaultFrameBytes = 16_384

const noBytes = Buffer.alloc(0)

/** A frame's header; the payload follows. */
export function frameHeader(type: number, flags: number, streamId: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes)
  header.writeUIntBE(length, 0, 3)
  header[3] = type
  header[4] = flags
  header.writeUInt32BE(streamId, 5)
  return header
}

/** A whole frame with a short payload. */
export const frame = (type: number, flags: number, streamId: number, payload: Buffer): Buffer =>
  Buffer.concat([frameHeader(type, flags, streamId, payload.length), payload])

/** A frame whose payload is one 32-bit number: WINDOW_UPDATE or RST_STREAM. */
export function numberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4)
  payload.writeUInt32BE(value)
  return frame(type, 0, streamId, payload)
}

/** A SETTINGS frame. */
export function settingsFrame(settings: ReadonlyMap<number, number>): Buffer {
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

/** HTTP/2's error codes (RFC 9113 §7) that occur here. */
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

/** The other end broke HTTP/2; the connection cannot go on. */
export class Http2Error extends SallyportError {
  readonly code = 'TUNNEL_HTTP2_ERROR'
  /** What the other end is told. */
  readonly errorCode: number

  constructor(name: keyof typeof errorCode, what: string) {
    super(`the other end broke HTTP/2: ${what}`)
    this.errorCode = errorCode[name]
  }
}

/** The value of SETTINGS_MAX_FRAME_SIZE if it is allowed (RFC 9113 §6.5.2). */
export function checkedFrameSize(value: number): number {
  if (value < defaultFrameBytes || value >= 2 ** 24)
    throw new Http2Error('PROTOCOL_ERROR', 'its frame size is out of range')
  return value
}

/** A frame other than DATA, or a padded one, read as a whole. */
export interface Frame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

/** What a reader of frames reports. */
export interface FrameHandler {
  /** A DATA frame begins, and counts with its whole length. */
  dataBegins(streamId: number, bytes: number): void
  /** A piece of it, as it arrived. */
  data(streamId: number, chunk: Buffer): void
  dataEnds(streamId: number, isLast: boolean): void
  frame(frame: Frame): void
  /** Whether the next frame must not be read yet. */
  mustWait(): boolean
}

/** Cuts a byte stream into frames; payload of DATA is handed on as it comes, in parts of the same memory. */
export class FrameReader {
  readonly #handler: FrameHandler
  readonly #maxFrameBytes: number
  /** What the other end has to say first. */
  #greeting: Buffer
  #held: Buffer | undefined
  #type = 0
  #flags = 0
  #streamId = 0
  #remaining = 0
  /** Memory for a frame that arrives in pieces, however small they are. */
  #collected: Buffer | undefined
  #isCollecting = false
  #isWithinFrame = false

  constructor(handler: FrameHandler, maxFrameBytes: number, greeting: Buffer) {
    this.#handler = handler
    this.#maxFrameBytes = maxFrameBytes
    this.#greeting = greeting
  }

  /** Returns what it left unread because it has to wait; that comes first when it goes on. */
  push(chunk: Buffer): Buffer | undefined {
    let rest = this.#greeting.length > 0 ? this.#greeted(chunk) : chunk
    if (this.#held !== undefined && rest.length > 0) {
      const taken = Math.min(frameHeaderBytes - this.#held.length, rest.length)
      const header = Buffer.concat([this.#held, rest.subarray(0, taken)])
      rest = rest.subarray(taken)
      this.#held = undefined
      const unread = this.#feed(header)
      if (unread) return Buffer.concat([unread, rest])
    }
    return rest.length > 0 ? this.#feed(rest) : undefined
  }

  #greeted(chunk: Buffer): Buffer {
    const length = Math.min(chunk.length, this.#greeting.length)
    if (!chunk.subarray(0, length).equals(this.#greeting.subarray(0, length)))
      throw new Http2Error('PROTOCOL_ERROR', 'it does not speak HTTP/2')
    this.#greeting = this.#greeting.subarray(length)
    return chunk.subarray(length)
  }

  #feed(chunk: Buffer): Buffer | undefined {
    let position = 0
    while (position < chunk.length) {
      if (this.#isWithinFrame) position = this.#continue(chunk, position)
      else if (this.#handler.mustWait()) return chunk.subarray(position)
      else if (chunk.length - position < frameHeaderBytes) {
        this.#held = Buffer.from(chunk.subarray(position))
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
    if (this.#remaining > (isData ? this.#maxFrameBytes : maxCollectedBytes))
      throw new Http2Error('FRAME_SIZE_ERROR', `a frame of ${this.#remaining} bytes is too long`)
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
    if (this.#isCollecting) {
      if (this.#type !== frameType.DATA) {
        this.#handler.frame({
          type: this.#type,
          flags: this.#flags,
          streamId: this.#streamId,
          payload,
        })
        return
      }
      const content = withoutPadding(payload, this.#flags)
      if (content.length > 0) this.#handler.data(this.#streamId, content)
    }
    this.#handler.dataEnds(this.#streamId, (this.#flags & frameFlag.END_STREAM) !== 0)
  }
}

/** What a padded frame really carries. */
export function withoutPadding(payload: Buffer, flags: number): Buffer {
  if ((flags & frameFlag.PADDED) === 0) return payload
  const padding = payload[0] ?? 0
  if (padding >= payload.length) throw new Http2Error('PROTOCOL_ERROR', 'a frame is all padding')
  return payload.subarray(1, payload.length - padding)
}
