type Format = 'decimal' | 'exponent' | 'binary'

/** An amount of something, in billionths, and the notation it was written in. */
export interface Quantity {
  readonly nanos: bigint
  readonly format: Format
  /** The text in the form that Kubernetes stores and shows. */
  readonly canonical: string
}

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const nanosPerUnit = 10n ** 9n
// Far beyond every real amount; keeps a short text from asking for a number of a million digits.
const maxExponent = 36
const maxDigits = 64
const notation = /^([+-]?)(\d*)(?:\.(\d*))?(n|u|m|k|M|G|T|P|E|[KMGTPE]i|[eE][+-]?\d{1,4})?$/

interface Parts {
  readonly negative: boolean
  readonly whole: string
  readonly fraction: string
  readonly format: Format
  /** Of ten, or of two for the binary notation. */
  readonly exponent: number
}

function suffixMeaning(suffix: string): Pick<Parts, 'format' | 'exponent'> {
  if (suffix.endsWith('i'))
    return { format: 'binary', exponent: 10 * binarySuffixes.indexOf(suffix) }
  const decimal = decimalSuffixes.indexOf(suffix)
  if (decimal >= 0) return { format: 'decimal', exponent: 3 * (decimal - 3) }
  return { format: 'exponent', exponent: Number(suffix.slice(1)) }
}

function partsOf(text: string): Parts | undefined {
  const match = notation.exec(text)
  if (!match || text.length > maxDigits || !/\d/.test(text)) return undefined
  const [, sign, whole = '', fraction = '', suffix = ''] = match
  const meaning = suffixMeaning(suffix)
  if (Math.abs(meaning.exponent) > maxExponent && meaning.format !== 'binary') return undefined
  const digits = whole.replace(/^0+/, '') || '0'
  return { negative: sign === '-', whole: digits, fraction, ...meaning }
}

/** Whatever is not nothing counts at least one billionth. */
const divideRoundingUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by

function nanosOf(parts: Parts): bigint {
  const digits = BigInt(parts.whole + parts.fraction)
  const scale = 10n ** BigInt(parts.fraction.length)
  const times = parts.format === 'binary' ? 2n : 10n
  const factor = times ** BigInt(Math.abs(parts.exponent))
  const value =
    parts.exponent < 0
      ? divideRoundingUp(digits * nanosPerUnit, scale * factor)
      : divideRoundingUp(digits * nanosPerUnit * factor, scale)
  return parts.negative ? -value : value
}

function decimalText(nanos: bigint, format: Format): string {
  let [mantissa, step] = [nanos, 0]
  while (mantissa % 1000n === 0n && step < decimalSuffixes.length - 1) {
    mantissa /= 1000n
    step += 1
  }
  const exponent = 3 * (step - 3)
  if (format === 'exponent') return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`
  return `${mantissa}${decimalSuffixes[step]}`
}

function binaryText(units: bigint): string {
  let [mantissa, step] = [units, 0]
  while (mantissa % 1024n === 0n && step < binarySuffixes.length - 1) {
    mantissa /= 1024n
    step += 1
  }
  return `${mantissa}${binarySuffixes[step]}`
}

// Kubernetes keeps a text that a quick look finds canonical already, even where it is not quite.
function looksCanonical(parts: Parts): boolean {
  const digits = parts.whole + parts.fraction
  if (digits.length > 15) return false
  if (parts.format === 'binary') return parts.fraction === '' && (BigInt(digits) & 7n) !== 0n
  const scale = parts.exponent - parts.fraction.length
  return scale >= -9 && scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0')
}

function canonicalText(text: string, parts: Parts, nanos: bigint): string {
  if (nanos === 0n) return '0'
  if (looksCanonical(parts)) return text
  const units = nanos / nanosPerUnit
  const isWhole = nanos % nanosPerUnit === 0n
  const isLarge = units >= 1024n || units <= -1024n
  if (parts.format === 'binary' && isWhole && isLarge) return binaryText(units)
  return decimalText(nanos, parts.format === 'exponent' ? 'exponent' : 'decimal')
}

/** Reads an amount such as `500m`, `1.5Gi` or `2e3`; `undefined` when it is none. */
export function parseQuantity(value: string | number): Quantity | undefined {
  const text = String(value).trim()
  const parts = partsOf(text)
  if (!parts) return undefined
  const nanos = nanosOf(parts)
  return { nanos, format: parts.format, canonical: canonicalText(text, parts, nanos) }
}

/** True for an amount without a fraction. */
export const isWholeQuantity = (quantity: Quantity): boolean => quantity.nanos % nanosPerUnit === 0n
