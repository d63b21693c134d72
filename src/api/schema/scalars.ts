import { canonicalQuantity } from './quantity.ts'
import type { FieldSchema, FieldType } from './schema-types.ts'
import { canonicalMicroTime, canonicalTime, type TimeResult } from './timestamp.ts'

const alphabet = /^[A-Za-z0-9+/]*={0,2}$/
const lineBreaks = /[\r\n]/g

/**
 * Where standard base64 goes wrong, as the index that Go names, or -1. Line breaks are allowed.
 */
function base64Fault(text: string): number {
  if (text.length % 4 === 0 && alphabet.test(text)) return -1
  let inQuantum = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i)
    if (char === '\r' || char === '\n') continue
    if (inQuantum === 0) start = i
    if (char === '=') return paddingFault(text, i, inQuantum)
    if (!/[A-Za-z0-9+/]/.test(char)) return i
    inQuantum = (inQuantum + 1) % 4
  }
  return inQuantum === 0 ? -1 : start
}

function paddingFault(text: string, at: number, inQuantum: number): number {
  if (inQuantum < 2) return at
  let next = at + 1
  const skipBreaks = () => {
    while (text[next] === '\r' || text[next] === '\n') next++
  }
  skipBreaks()
  if (inQuantum === 2) {
    if (next === text.length) return text.length
    if (text[next] !== '=') return next - 1
    next++
    skipBreaks()
  }
  return next === text.length ? -1 : next
}

/** Valid base64 in the one spelling that Go writes: no line breaks, unused bits zero. */
function canonicalBase64(text: string): string {
  const plain = text.replace(lineBreaks, '')
  const last = plain.indexOf('=')
  if (last < 0) return plain
  const head = last - (last % 4)
  return plain.slice(0, head) + Buffer.from(plain.slice(head), 'base64').toString('base64')
}

/** A value of the wrong type (`shown` names it), or one whose content is wrong (`shown` says how). */
interface ScalarProblem {
  readonly problem: 'type' | 'content'
  readonly shown: string
  /** The Go type to name when it is not the field's. */
  readonly goType?: string
}

/** A value in canonical form (null for a zero time), or what is wrong with it. */
export type ScalarResult = { readonly value: unknown } | ScalarProblem

/** What Go calls the type of a JSON value. */
export function shownType(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return typeof value === 'boolean' ? 'bool' : typeof value
}

const wrongType = (value: unknown, goType?: string): ScalarProblem => ({
  problem: 'type',
  shown: shownType(value),
  ...(goType !== undefined && { goType }),
})
const wrongContent = (shown: string): ScalarProblem => ({ problem: 'content', shown })

const bounds = { 32: 2 ** 31, 64: 2 ** 63 } as const

function readInteger(value: unknown, bits: 32 | 64, goType?: string): ScalarResult {
  if (typeof value !== 'number') return wrongType(value, goType)
  const limit = bounds[bits]
  if (!Number.isInteger(value)) return { ...wrongType(value, goType), shown: `number ${value}` }
  if (value < -limit || value >= limit)
    return { ...wrongType(value, goType), shown: `number ${BigInt(value)}` }
  if (!Number.isSafeInteger(value))
    return wrongContent(`number ${value} has more than 53 bits, which this server cannot keep`)
  return { value: value === 0 ? 0 : value }
}

function readBytes(value: unknown): ScalarResult {
  if (typeof value !== 'string') return wrongType(value)
  const fault = base64Fault(value)
  return fault >= 0
    ? wrongContent(`illegal base64 data at input byte ${fault}`)
    : { value: canonicalBase64(value) }
}

function readTime(value: unknown, canonical: (text: string) => TimeResult): ScalarResult {
  if (typeof value !== 'string') return wrongType(value, 'string')
  const result = canonical(value)
  return 'problem' in result ? wrongContent(result.problem) : { value: result.text }
}

function readQuantity(value: unknown): ScalarResult {
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return wrongContent(`quantity ${value} has too many digits for a number: write it as a string`)
  const result = canonicalQuantity(
    typeof value === 'string' || typeof value === 'number' ? String(value) : '',
  )
  return 'problem' in result ? wrongContent(result.problem) : { value: result.text }
}

type Reader = (value: unknown, field: FieldSchema) => ScalarResult

const readPlain =
  (type: 'string' | 'number' | 'boolean'): Reader =>
  (value) =>
    typeof value === type ? { value } : wrongType(value)

const readers: Readonly<Record<FieldType, Reader>> = {
  string: readPlain('string'),
  number: readPlain('number'),
  boolean: readPlain('boolean'),
  integer: (value, field) => readInteger(value, field.bits ?? 64),
  bytes: readBytes,
  time: (value) => readTime(value, canonicalTime),
  microtime: (value) => readTime(value, canonicalMicroTime),
  quantity: readQuantity,
  intOrString: (value) => (typeof value === 'string' ? { value } : readInteger(value, 32, 'int32')),
  object: (value) => ({ value }),
  any: (value) => ({ value }),
}

const zeros: Readonly<Record<FieldType, unknown>> = {
  string: '',
  number: 0,
  boolean: false,
  integer: 0,
  bytes: '',
  time: null,
  microtime: null,
  quantity: '0',
  intOrString: 0,
  object: null,
  any: null,
}

/** Types that are structs in Go, which `omitempty` does not leave out. */
const structLike = new Set<FieldType>(['time', 'microtime', 'quantity', 'intOrString', 'any'])

/** Reads one value of a field that is no struct; null is the zero value, as in a list. */
export function readScalar(field: FieldSchema, sent: unknown): ScalarResult {
  return sent === null ? { value: zeros[field.type] } : readers[field.type](sent, field)
}

/** What Go writes for a field without a value; undefined when it writes nothing. */
export function zeroScalar(field: FieldSchema): unknown {
  if (structLike.has(field.type)) return field.omitZero ? undefined : zeros[field.type]
  if (field.omitEmpty) return undefined
  return field.type === 'bytes' ? null : zeros[field.type]
}

/** True when Go leaves a zero value of that type out of a field marked `omitempty`. */
export const isOmittable = (type: FieldType): boolean => !structLike.has(type)
