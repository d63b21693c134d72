/** Why a text is not a quantity, in the words that clients of Kubernetes know. */
const quantityProblems = {
  format:
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  digits: 'unable to parse numeric part of quantity',
  suffix: "unable to parse quantity's suffix",
} as const

/** A quantity in canonical form, or what is wrong with it. */
export type QuantityResult = { readonly text: string } | { readonly problem: string }

type Format = 'binary' | 'decimal' | 'exponent'

interface Suffix {
  readonly format: Format
  /** Power of two for the binary format, of ten for the others. */
  readonly exponent: number
}

/** `unscaled` times ten to the power of `exponent`. */
interface Decimal {
  unscaled: bigint
  exponent: number
}

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
// Each digit belongs to one part only: a text that could be split in many ways would be, one by one.
const parts = /^([+-]?)(\d*)(?:\.(\d*))?(|[eEinumkKMGTP]+[-+]?\d*|[-+]\d*)$/
/** More digits than any unit could need; arithmetic on them would cost more than it is worth. */
const maxDigits = 100
const maxInt64 = 2n ** 63n - 1n

function suffixOf(text: string): Suffix | undefined {
  const decimal = decimalSuffixes.indexOf(text)
  if (decimal >= 0) return { format: 'decimal', exponent: decimal * 3 - 9 }
  const binary = binarySuffixes.indexOf(text)
  if (binary >= 0) return { format: 'binary', exponent: binary * 10 }
  // Kubernetes takes larger exponents as well, but no quantity of anything needs them.
  if (!/^[eE][-+]?\d{1,3}$/.test(text)) return undefined
  return { format: 'exponent', exponent: Number(text.slice(1)) }
}

/** Nine decimal places are kept; what is smaller is rounded away from zero, never to nothing. */
function roundedToNano({ unscaled, exponent }: Decimal): Decimal {
  if (exponent >= -9) return { unscaled, exponent }
  const divisor = 10n ** BigInt(-9 - exponent)
  const rest = unscaled % divisor
  const away = rest === 0n ? 0n : unscaled < 0n ? -1n : 1n
  return { unscaled: unscaled / divisor + away, exponent: -9 }
}

/** The mantissa without trailing zeros, the exponent a multiple of three. */
function decimalForm(value: Decimal, format: Format): string {
  let { unscaled, exponent } = value
  while (unscaled % 10n === 0n) {
    unscaled /= 10n
    exponent++
  }
  const most = format === 'decimal' ? Math.min(exponent, 18) : exponent
  const target = Math.floor(most / 3) * 3
  const mantissa = unscaled * 10n ** BigInt(exponent - target)
  if (format === 'exponent') return target === 0 ? `${mantissa}` : `${mantissa}e${target}`
  return `${mantissa}${decimalSuffixes[target / 3 + 3] ?? ''}`
}

function binaryForm(value: bigint): string {
  let mantissa = value
  let power = 0
  while (mantissa % 1024n === 0n && power < 6) {
    mantissa /= 1024n
    power++
  }
  return `${mantissa}${binarySuffixes[power]}`
}

function wholeOf({ unscaled, exponent }: Decimal): bigint | undefined {
  if (exponent >= 0) return unscaled * 10n ** BigInt(exponent)
  const divisor = 10n ** BigInt(-exponent)
  return unscaled % divisor === 0n ? unscaled / divisor : undefined
}

function canonicalForm(value: Decimal, format: Format): string {
  if (value.unscaled === 0n) return '0'
  if (format !== 'binary') return decimalForm(value, format)
  const whole = wholeOf(value)
  // Small or broken binary values would lose digits, so they are shown with decimal suffixes.
  if (whole === undefined || (whole > -1024n && whole < 1024n)) return decimalForm(value, 'decimal')
  if (whole > maxInt64) return binaryForm(maxInt64)
  return binaryForm(whole)
}

/**
 * True when Kubernetes keeps the text as it was sent: few enough digits, and nothing that could be
 * written with a larger suffix. This keeps a spelling such as `1.500`.
 */
function isKept(digits: string, decimals: number, { format, exponent }: Suffix): boolean {
  if (format === 'binary') {
    const precision = 14 - digits.length - Math.trunc((exponent * 3) / 10)
    return decimals === 0 && precision >= 0 && (BigInt(digits) & 7n) !== 0n
  }
  const scale = exponent - decimals
  return (
    digits.length <= 18 &&
    scale >= -9 &&
    scale % 3 === 0 &&
    !digits.startsWith('0') &&
    !digits.endsWith('000')
  )
}

/** Brings a quantity such as `1.5Gi` into the form in which Kubernetes stores and shows it. */
export function canonicalQuantity(sent: string): QuantityResult {
  const text = sent.trim()
  const match = text === '' ? null : parts.exec(text)
  if (match === null) return { problem: quantityProblems.format }
  const [, sign, whole = '', fraction = '', suffixText = ''] = match
  const suffix = suffixOf(suffixText)
  if (suffix === undefined) return { problem: quantityProblems.suffix }
  const digits = (whole.replace(/^0+/, '') || '0') + fraction
  if (digits.length > maxDigits) return { problem: quantityProblems.digits }
  if (isKept(digits, fraction.length, suffix)) return { text }
  const unsigned = BigInt(digits)
  const unscaled = sign === '-' ? -unsigned : unsigned
  const value =
    suffix.format === 'binary'
      ? { unscaled: unscaled * 2n ** BigInt(suffix.exponent), exponent: -fraction.length }
      : { unscaled, exponent: suffix.exponent - fraction.length }
  return { text: canonicalForm(roundedToNano(value), suffix.format) }
}
