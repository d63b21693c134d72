import { frameFlag, frameHeaderBytes, frameType } from './frames.ts'
import { Http2Error } from './http2-error.ts'

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
}

/** What has to be collected before it can be understood is never longer than this. */
const maxCollectedBytes = 64 * 1024

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
  #collected: Buffer[] | undefined
  #isWithinFrame = false

  constructor(handler: FrameHandler, maxFrameBytes: number, greeting: Buffer) {
    this.#handler = handler
    this.#maxFrameBytes = maxFrameBytes
    this.#greeting = greeting
  }

  push(chunk: Buffer): void {
    let rest = this.#greeting.length > 0 ? this.#greeted(chunk) : chunk
    if (this.#held !== undefined && rest.length > 0) {
      const taken = Math.min(frameHeaderBytes - this.#held.length, rest.length)
      const header = Buffer.concat([this.#held, rest.subarray(0, taken)])
      rest = rest.subarray(taken)
      this.#held = undefined
      this.#feed(header)
    }
    if (rest.length > 0) this.#feed(rest)
  }

  #greeted(chunk: Buffer): Buffer {
    const length = Math.min(chunk.length, this.#greeting.length)
    if (!chunk.subarray(0, length).equals(this.#greeting.subarray(0, length)))
      throw new Http2Error('PROTOCOL_ERROR', 'it does not speak HTTP/2')
    this.#greeting = this.#greeting.subarray(length)
    return chunk.subarray(length)
  }

  #feed(chunk: Buffer): void {
    let position = 0
    while (position < chunk.length) {
      if (this.#isWithinFrame) position = this.#continue(chunk, position)
      else if (chunk.length - position < frameHeaderBytes) {
        this.#held = chunk.subarray(position)
        return
      } else {
        this.#begin(chunk, position)
        position += frameHeaderBytes
      }
    }
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
    this.#collected = isData ? undefined : []
    if (this.#remaining === 0) this.#complete()
  }

  #continue(chunk: Buffer, position: number): number {
    const end = Math.min(chunk.length, position + this.#remaining)
    const part = chunk.subarray(position, end)
    this.#remaining -= part.length
    if (this.#collected) this.#collected.push(part)
    else this.#handler.data(this.#streamId, part)
    if (this.#remaining === 0) this.#complete()
    return end
  }

  #complete(): void {
    this.#isWithinFrame = false
    const collected = this.#collected
    this.#collected = undefined
    if (collected) {
      const payload =
        collected.length === 1 && collected[0] ? collected[0] : Buffer.concat(collected)
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
