import { isIP } from 'node:net'
import { type OptionDeclaration, parseDuration } from '../../core/index.ts'

/** A value that was read, or what is wrong with its text as in `must be ...`. */
export type Reading<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly why: string }

const good = <Value>(value: Value): Reading<Value> => ({ ok: true, value })
const bad = (why: string): Reading<never> => ({ ok: false, why })

/** Reads one value of an option from its text. */
export function readValue(
  declaration: OptionDeclaration,
  text: string,
): Reading<string | number | boolean> {
  const reading = readType(declaration, text)
  if (!reading.ok) return reading
  const why = declaration.check?.(text)
  return why === undefined ? reading : bad(why)
}

function readType(
  declaration: OptionDeclaration,
  text: string,
): Reading<string | number | boolean> {
  switch (declaration.type) {
    case 'boolean':
      return readBoolean(text)
    case 'integer':
    case 'duration':
    case 'bytes':
      return readNumber(declaration, text)
    case 'choice':
      if (declaration.choices.includes(text)) return good(text)
      return bad(`must be one of ${declaration.choices.join(', ')}`)
    case 'address':
    case 'cidr':
    case 'path':
    case 'string':
      return isText[declaration.type](text)
        ? good(text)
        : bad(`must be ${expected[declaration.type]}`)
  }
}

const isText = {
  address: (text: string) => isIP(text) !== 0,
  cidr: isCidr,
  path: (text: string) => text !== '' && !text.includes('\0'),
  string: () => true,
} as const

function readBoolean(text: string): Reading<boolean> {
  const lower = text.toLowerCase()
  if (lower === 'true' || lower === '1') return good(true)
  if (lower === 'false' || lower === '0') return good(false)
  return bad('must be true or false')
}

type NumberDeclaration = Extract<OptionDeclaration, { type: 'integer' | 'duration' | 'bytes' }>

function readNumber(declaration: NumberDeclaration, text: string): Reading<number> {
  const { type, min = 0, max = Number.MAX_SAFE_INTEGER } = declaration
  const value = parserOf[type](text)
  if (value === undefined) return bad(`must be ${expected[type]}`)
  if (value >= min && value <= max) return good(value)
  const shown = (bound: number): string => showNumber(type, bound)
  if (max === Number.MAX_SAFE_INTEGER) return bad(`must be at least ${shown(min)}`)
  return bad(`must be from ${shown(min)} to ${shown(max)}`)
}

const parserOf = {
  integer: (text: string) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined),
  duration: parseDuration,
  bytes: parseBytes,
} as const

const expected = {
  integer: 'a whole number',
  duration: 'a duration such as 90s or 1h30m',
  bytes: 'a size such as 1048576 or 3Mi',
  address: 'an IP address',
  cidr: 'an address range such as 10.96.0.0/12',
  path: 'a path',
  string: 'a text',
} as const

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
}

function parseBytes(text: string): number | undefined {
  const match = /^(\d{1,12})(k|M|G|Ki|Mi|Gi)?$/.exec(text)
  if (match === null) return undefined
  return Number(match[1]) * (unitBytes[match[2] ?? ''] ?? Number.NaN)
}

/** A number as a user would write it. */
export function showNumber(type: NumberDeclaration['type'], value: number): string {
  if (type === 'duration') return showDuration(value)
  if (type !== 'bytes' || value === 0) return String(value)
  const unit = ['Gi', 'Mi', 'Ki'].find((name) => value % (unitBytes[name] ?? 1) === 0)
  return unit === undefined ? String(value) : `${value / (unitBytes[unit] ?? 1)}${unit}`
}

function showDuration(ms: number): string {
  if (ms === 0) return '0s'
  if (ms % 1_000 !== 0) return `${ms}ms`
  const hours = Math.floor(ms / 3_600_000)
  const minutes = Math.floor((ms % 3_600_000) / 60_000)
  const seconds = (ms % 60_000) / 1_000
  return `${hours ? `${hours}h` : ''}${minutes ? `${minutes}m` : ''}${seconds ? `${seconds}s` : ''}`
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0 || !/^\d{1,3}$/.test(bits)) return false
  return Number(bits) <= (version === 4 ? 32 : 128)
}

/** How many letters must be added, dropped or changed to make `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_none, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The property of an option in the parsed values: `secure-port` is `securePort`. */
export const propertyOf = (name: string): string =>
  name.replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase())

/** The environment variable of an option. */
export const environmentOf = (name: string, declaration: OptionDeclaration): string =>
  declaration.env ?? `SALLYPORT_${name.replaceAll('-', '_').toUpperCase()}`

/** The name among `known` that was probably meant, if one is close enough. */
export function suggestion(wrong: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(wrong.length / 4)) + 1
  for (const name of known) {
    const distance = name.startsWith(wrong) && wrong.length > 2 ? 1 : editDistance(wrong, name)
    if (distance >= bestDistance) continue
    best = name
    bestDistance = distance
  }
  return best
}
