import { type FieldProblem, invalidEach, invalidValue } from './field-problem.ts'
import { qualifiedNameProblems } from './metadata.ts'
import { rangeProblem, type TextRule } from './names.ts'

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

const integerResources = new Set([
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
])

const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/** True for a resource that a device plugin or an operator brings, such as `example.com/gpu`. */
export function isExtendedResource(name: string): boolean {
  if (isNative(name) || name.startsWith('requests.')) return false
  return qualifiedNameProblems(`requests.${name}`).length === 0
}

const comesInWholes = (name: string): boolean =>
  integerResources.has(name) || isExtendedResource(name)

/** Problems of one amount of a named resource. */
export function quantityProblems(name: string, value: unknown, field: string): FieldProblem[] {
  const nanos = quantityNanos(value)
  if (nanos === undefined) return [invalidValue(field, value, 'must be a valid resource quantity')]
  return [
    ...(nanos < 0n ? [invalidValue(field, value, 'must be greater than or equal to 0')] : []),
    ...(comesInWholes(name) && !isWhole(nanos)
      ? [invalidValue(field, value, 'must be an integer')]
      : []),
  ]
}

/** The transport protocols of ports, sorted as messages list them. */
export const protocols: readonly string[] = ['SCTP', 'TCP', 'UDP']

/** A port number of 1 to 65535. */
export const portNumberProblems = (port: number): string[] =>
  port >= 1 && port <= 65535 ? [] : [rangeProblem(1, 65535)]

/** A port name as IANA has them: letters, digits and single dashes, at most 15. */
export const portNameProblems: TextRule = (name) => {
  const checks: [boolean, string][] = [
    [Buffer.byteLength(name) > 15, 'must be no more than 15 characters'],
    [
      !/^[-a-z0-9]+$/.test(name),
      'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ],
    [!/[a-z]/.test(name), 'must contain at least one letter (a-z)'],
    [name.includes('--'), 'must not contain consecutive hyphens'],
    [name.startsWith('-') || name.endsWith('-'), 'must not begin or end with a hyphen'],
  ]
  return checks.filter(([wrong]) => wrong).map(([, words]) => words)
}

/** A port by number or by name. */
export const portOrNameProblems = (port: unknown, field: string): FieldProblem[] =>
  typeof port === 'string'
    ? invalidEach(field, port, portNameProblems(port))
    : invalidEach(field, port ?? 0, portNumberProblems(typeof port === 'number' ? port : 0))
