import type { Clock } from '../../core/index.ts'
import {
  type Frame,
  frameFlag,
  frameHeader,
  frameType,
  Http2Error,
  withoutPadding,
} from './frames.ts'
import { encodeHeaders, type HeaderField, HpackDecoder } from './hpack.ts'
import { maxBlockBytes, maxBlockFrames, maxDecodedHeaderBytes } from './limits.ts'
import { RateLimit } from './rate-limit.ts'

/** The parts of a HEADERS frame and of the CONTINUATION frames behind it. */
export function headerFrames(
  streamId: number,
  fields: readonly HeaderField[],
  isEndStream: boolean,
  maxFrameBytes: number,
): Buffer[] {
  const block = encodeHeaders(fields)
  const parts: Buffer[] = []
  for (let start = 0; start === 0 || start < block.length; start += maxFrameBytes) {
    const fragment = block.subarray(start, start + maxFrameBytes)
    const isLast = start + fragment.length >= block.length
    const flags =
      (isLast ? frameFlag.END_HEADERS : 0) | (isEndStream && start === 0 ? frameFlag.END_STREAM : 0)
    const type = start === 0 ? frameType.HEADERS : frameType.CONTINUATION
    parts.push(frameHeader(type, flags, streamId, fragment.length), fragment)
  }
  return parts
}

/** A complete field section of a stream. */
export interface FieldSection {
  readonly streamId: number
  readonly fields: readonly HeaderField[]
  readonly isEndStream: boolean
}

/** Collects the field blocks of a connection from HEADERS and CONTINUATION frames and decodes them. */
export class FieldBlockReader {
  readonly #decoder = new HpackDecoder()
  /** One byte of a block stands for up to 4 KiB of fields, so the fields are counted as well. */
  readonly #decodedBytes: RateLimit
  #block: { streamId: number; isEndStream: boolean; fragments: Buffer[]; bytes: number } | undefined

  constructor(clock: Clock) {
    this.#decodedBytes = new RateLimit(
      maxDecodedHeaderBytes,
      'peer sends too many header fields',
      clock,
    )
  }

  /** Takes every frame of the connection: no other frame may interrupt a field block (RFC 9113 §4.3). */
  accept(frame: Frame): FieldSection | undefined {
    if (frame.type === frameType.CONTINUATION) return this.#continue(frame)
    this.checkComplete()
    return frame.type === frameType.HEADERS ? this.#begin(frame) : undefined
  }

  checkComplete(): void {
    if (this.#block) throw new Http2Error('PROTOCOL_ERROR', 'interrupted field block')
  }

  #begin({ flags, streamId, payload }: Frame): FieldSection | undefined {
    const content = withoutPadding(payload, flags)
    const isEndStream = (flags & frameFlag.END_STREAM) !== 0
    this.#block = { streamId, isEndStream, fragments: [], bytes: 0 }
    if ((flags & frameFlag.PRIORITY) === 0) return this.#add(content, flags)
    if (content.length < 5)
      throw new Http2Error('FRAME_SIZE_ERROR', 'HEADERS frame is too short for its priority')
    checkDependency(streamId, content)
    return this.#add(content.subarray(5), flags)
  }

  #continue({ flags, streamId, payload }: Frame): FieldSection | undefined {
    if (this.#block?.streamId !== streamId)
      throw new Http2Error('PROTOCOL_ERROR', 'unexpected CONTINUATION frame')
    return this.#add(payload, flags)
  }

  #add(fragment: Buffer, flags: number): FieldSection | undefined {
    const block = this.#block
    if (!block) return undefined
    block.fragments.push(fragment)
    block.bytes += fragment.length
    if (block.bytes > maxBlockBytes || block.fragments.length > maxBlockFrames)
      throw new Http2Error('ENHANCE_YOUR_CALM', 'header fields are too long')
    if ((flags & frameFlag.END_HEADERS) === 0) return undefined
    this.#block = undefined
    const fields = this.#decoder.decode(Buffer.concat(block.fragments))
    this.#decodedBytes.count(this.#decoder.listBytes)
    return { streamId: block.streamId, fields, isEndStream: block.isEndStream }
  }
}

/** Rejects a stream that depends on itself (RFC 7540 §5.3.1); priorities are ignored otherwise. */
export function checkDependency(streamId: number, priority: Buffer): void {
  if ((priority.readUInt32BE() & 0x7fff_ffff) === streamId)
    throw new Http2Error('PROTOCOL_ERROR', 'stream depends on itself')
}

/** What a field section belongs to. */
export type MessagePart = 'request' | 'response' | 'trailers'

/** Pseudo-header fields and whether they are required (RFC 9113 §8.3). */
const pseudoHeaders: Readonly<Record<MessagePart, ReadonlyMap<string, boolean>>> = {
  request: new Map([
    [':method', true],
    [':scheme', true],
    [':path', true],
    [':authority', false],
  ]),
  response: new Map([[':status', true]]),
  trailers: new Map(),
}

/** Header fields of a connection, which HTTP/2 does not allow (RFC 9113 §8.2.2). */
const connectionHeaders: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** Visible ASCII without upper-case letters and colon (RFC 9113 §8.2.1). */
const validName = /^[!-9;-@[-~]+$/
/** Control characters, and white space around the value (RFC 9110 §5.5). */
const invalidValue = /^[ \t]|[ \t]$|[\x00-\x08\x0a-\x1f\x7f]/

function isInvalidField([name, value]: HeaderField): boolean {
  if (!validName.test(name) || connectionHeaders.has(name)) return true
  return name === 'te' && value.toLowerCase() !== 'trailers'
}

/** Whether a message is malformed (RFC 9113 §8.1.1), which is a stream error. */
export function isMalformed(fields: readonly HeaderField[], part: MessagePart): boolean {
  const allowed = pseudoHeaders[part]
  const seen = new Set<string>()
  let hasRegular = false
  for (const field of fields) {
    const [name, value] = field
    if (invalidValue.test(value)) return true
    if (name.startsWith(':')) {
      const isRequired = allowed.get(name)
      if (hasRegular || isRequired === undefined || seen.has(name)) return true
      if (isRequired && value === '') return true
      seen.add(name)
    } else if (isInvalidField(field)) return true
    else hasRegular = true
  }
  return [...allowed].some(([name, isRequired]) => isRequired && !seen.has(name))
}

/** The value of content-length; -1 if absent, NaN if invalid. */
export function contentLength(fields: readonly HeaderField[]): number {
  const values = fields.filter(([name]) => name === 'content-length').map(([, value]) => value)
  const [value] = values
  if (value === undefined) return -1
  const isValid = /^\d{1,15}$/.test(value) && values.every((other) => other === value)
  return isValid ? Number(value) : Number.NaN
}
