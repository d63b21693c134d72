import { type Frame, withoutPadding } from './frame-reader.ts'
import { frameFlag, frameType } from './frames.ts'
import { type HeaderField, HpackDecoder } from './hpack-decoder.ts'
import { Http2Error } from './http2-error.ts'

/** A whole block of headers. */
export interface HeaderBlock {
  readonly streamId: number
  readonly fields: readonly HeaderField[]
  readonly isLast: boolean
}

/** Limits for a block in pieces, so that nobody can go on for ever. */
const maxBlockBytes = 64 * 1024
const maxPieces = 16

/** Puts blocks of headers together from their frames, and unpacks them. */
export class HeaderAssembly {
  readonly #decoder = new HpackDecoder()
  #open: { streamId: number; isLast: boolean; pieces: Buffer[]; bytes: number } | undefined

  /** Takes any frame; a block that has begun allows no other frame in between. */
  accept(frame: Frame): HeaderBlock | undefined {
    if (frame.type === frameType.HEADERS) return this.#begin(frame)
    if (frame.type === frameType.CONTINUATION) return this.#continue(frame)
    this.mustBeWhole()
    return undefined
  }

  mustBeWhole(): void {
    if (this.#open) throw new Http2Error('PROTOCOL_ERROR', 'its headers are interrupted')
  }

  #begin({ flags, streamId, payload }: Frame): HeaderBlock | undefined {
    this.mustBeWhole()
    const content = withoutPadding(payload, flags)
    const skipped = (flags & frameFlag.PRIORITY) === 0 ? 0 : 5
    const isLast = (flags & frameFlag.END_STREAM) !== 0
    this.#open = { streamId, isLast, pieces: [], bytes: 0 }
    return this.#add(content.subarray(skipped), flags)
  }

  #continue({ flags, streamId, payload }: Frame): HeaderBlock | undefined {
    if (this.#open?.streamId !== streamId)
      throw new Http2Error('PROTOCOL_ERROR', 'it continues headers that it did not begin')
    return this.#add(payload, flags)
  }

  #add(piece: Buffer, flags: number): HeaderBlock | undefined {
    const open = this.#open
    if (!open) return undefined
    open.pieces.push(piece)
    open.bytes += piece.length
    if (open.bytes > maxBlockBytes || open.pieces.length > maxPieces)
      throw new Http2Error('ENHANCE_YOUR_CALM', 'its headers are too long')
    if ((flags & frameFlag.END_HEADERS) === 0) return undefined
    this.#open = undefined
    const fields = this.#decoder.decode(Buffer.concat(open.pieces))
    return { streamId: open.streamId, fields, isLast: open.isLast }
  }
}
