import { SallyportError } from '../core/index.ts'

/** Bytes that should be DER and are not. */
export class DerInvalid extends SallyportError {
  readonly code = 'DER_INVALID'
}

/** One value of a DER text: its identifier octet, its content, and both with the length between them. */
export interface DerValue {
  readonly tag: number
  readonly content: Buffer
  readonly raw: Buffer
}

/** The identifier octets that certificates and requests are made of. */
export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const

/** Reads the one value that the bytes consist of. */
export function readDer(bytes: Buffer): DerValue {
  const value = readValue(bytes, 0)
  if (value.raw.length !== bytes.length) throw new DerInvalid('there are bytes after the end')
  return value
}

/** The values inside a value. */
export function derChildren(parent: DerValue): DerValue[] {
  const children: DerValue[] = []
  for (let at = 0; at < parent.content.length; ) {
    const child = readValue(parent.content, at)
    children.push(child)
    at += child.raw.length
  }
  return children
}

/** The content of a value that must have a certain tag. */
export function derContent(value: DerValue | undefined, tag: number): Buffer {
  return expectTag(value, tag).content
}

/** The value itself, if it has a certain tag. */
export function expectTag(value: DerValue | undefined, tag: number): DerValue {
  if (value?.tag === tag) return value
  const found = value ? `tag ${value.tag}` : 'nothing'
  throw new DerInvalid(`tag ${tag} is expected, but there is ${found}`)
}

/** An object identifier in its dotted form. */
export function derOid(value: DerValue | undefined): string {
  const arcs: number[] = []
  let arc = 0
  let open = false
  for (const byte of derContent(value, derTag.oid)) {
    if (!open && byte === 0x80) throw new DerInvalid('an object identifier has a padded part')
    if (arc > 0x3f_ffff) throw new DerInvalid('an object identifier has a part beyond reason')
    arc = arc * 128 + (byte & 0x7f)
    open = byte >= 0x80
    if (open) continue
    if (arcs.length === 0) {
      const first = Math.min(Math.floor(arc / 40), 2)
      arcs.push(first, arc - first * 40)
    } else {
      arcs.push(arc)
    }
    arc = 0
  }
  if (open || arcs.length === 0) throw new DerInvalid('an object identifier is cut off')
  return arcs.join('.')
}

function readValue(bytes: Buffer, start: number): DerValue {
  const tag = bytes[start]
  if (tag === undefined) throw new DerInvalid('the text is cut off')
  if ((tag & 0x1f) === 0x1f) throw new DerInvalid('tags of several bytes are not used here')
  const { length, size } = readLength(bytes, start + 1)
  const begin = start + 1 + size
  const end = begin + length
  if (end > bytes.length) throw new DerInvalid('the text is cut off')
  return { tag, content: bytes.subarray(begin, end), raw: bytes.subarray(start, end) }
}

function readLength(bytes: Buffer, at: number): { length: number; size: number } {
  const first = bytes[at]
  if (first === undefined) throw new DerInvalid('the text is cut off')
  if (first < 0x80) return { length: first, size: 1 }
  const count = first & 0x7f
  if (count === 0 || count > 4 || at + count >= bytes.length) {
    throw new DerInvalid('a length is not in DER form')
  }
  const length = bytes.readUIntBE(at + 1, count)
  // The shortest form only: bytes that can be written in two ways can be understood in two ways.
  if (length < 0x80 || length < 256 ** (count - 1)) {
    throw new DerInvalid('a length is not in DER form')
  }
  return { length, size: 1 + count }
}
