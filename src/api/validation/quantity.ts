const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const notation = /^([+-]?)(\d*)(?:\.(\d*))?(|[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,3})$/
const nanosPerUnit = 10n ** 9n

/** What the digits are multiplied with, as a fraction. */
function factorOf(suffix: string): { readonly times: bigint; readonly by: bigint } {
  if (suffix.endsWith('i')) {
    return { times: 1024n ** BigInt(binarySuffixes.indexOf(suffix)), by: 1n }
  }
  const decimal = decimalSuffixes.indexOf(suffix)
  const exponent = decimal >= 0 ? 3 * (decimal - 3) : Number(suffix.slice(1))
  const power = 10n ** BigInt(Math.abs(exponent))
  return exponent < 0 ? { times: 1n, by: power } : { times: power, by: 1n }
}

/**
 * The amount that a text such as `500m` or `1.5Gi` stands for, in billionths, so that amounts can be
 * compared; `undefined` when it is none. Whatever is not nothing counts at least one billionth.
 */
export function quantityNanos(value: unknown): bigint | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value).trim()
  const match = text.length > 128 ? null : notation.exec(text)
  if (!match || !/\d/.test(text)) return undefined
  const [, sign, whole = '', fraction = '', suffix = ''] = match
  const { times, by } = factorOf(suffix)
  const divisor = by * 10n ** BigInt(fraction.length)
  const amount = (BigInt(whole + fraction) * times * nanosPerUnit + divisor - 1n) / divisor
  return sign === '-' ? -amount : amount
}

/** True for an amount without a fraction. */
export const isWhole = (nanos: bigint): boolean => nanos % nanosPerUnit === 0n
