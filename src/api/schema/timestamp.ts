/** A time in the form in which Kubernetes shows it, null for Go's zero time, or what is wrong. */
export type TimeResult = { readonly text: string | null } | Problem

/** The layout of a time in Go's notation, and the same piece by piece. */
interface Layout {
  readonly shown: string
  readonly pieces: readonly (readonly [name: string, pattern: RegExp])[]
}

const date: Layout['pieces'] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d\d/],
  ['-', /^-/],
  ['02', /^\d\d/],
  ['T', /^T/],
  ['15', /^\d\d/],
  [':', /^:/],
  ['04', /^\d\d/],
  [':', /^:/],
]
const zone: Layout['pieces'][number] = ['Z07:00', /^(Z|[+-]\d\d:\d\d)/]

const secondsLayout: Layout = {
  shown: '2006-01-02T15:04:05Z07:00',
  pieces: [...date, ['05', /^\d\d([.,]\d+)?/], zone],
}
const microsLayout: Layout = {
  shown: '2006-01-02T15:04:05.000000Z07:00',
  pieces: [...date, ['05', /^\d\d/], ['.000000', /^[.,]\d{6}/], zone],
}

const firstYear = Date.parse('0000-01-01T00:00:00Z')
const afterLastYear = Date.parse('9999-12-31T23:59:59Z') + 1000
const zeroTime = '0001-01-01T00:00:00'

interface Problem {
  readonly problem: string
}

const faultOf = (text: string, layout: Layout, rest: string, piece: string): Problem => ({
  problem:
    `parsing time ${JSON.stringify(text)} as ${JSON.stringify(layout.shown)}: ` +
    `cannot parse ${JSON.stringify(rest)} as ${JSON.stringify(piece)}`,
})

const rejected = (text: string, why: string): Problem => ({
  problem: `parsing time ${JSON.stringify(text)}: ${why}`,
})

function split(text: string, layout: Layout): Problem | { readonly pieces: readonly string[] } {
  let rest = text
  const pieces: string[] = []
  for (const [name, pattern] of layout.pieces) {
    const piece = pattern.exec(rest)?.[0]
    if (piece === undefined) return faultOf(text, layout, rest, name)
    pieces.push(piece)
    rest = rest.slice(piece.length)
  }
  return rest === '' ? { pieces } : rejected(text, `extra text: ${JSON.stringify(rest)}`)
}

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
const daysIn = (year: number, month: number): number =>
  month === 2 && isLeap(year) ? 29 : (monthDays[month - 1] ?? 0)

/** Index of a piece, its name, and the smallest value that is too large for it. */
const limits = [
  [6, 'hour', 24],
  [8, 'minute', 60],
  [10, 'second', 60],
] as const

function rangeProblem(pieces: readonly string[]): string | undefined {
  const valueAt = (index: number): number => Number.parseInt(pieces[index] ?? '', 10)
  const month = valueAt(2)
  if (month < 1 || month > 12) return 'month'
  if (valueAt(4) < 1 || valueAt(4) > daysIn(valueAt(0), month)) return 'day'
  return limits.find(([index, , limit]) => valueAt(index) >= limit)?.[1]
}

function offsetMinutes(zoneText: string): number {
  if (zoneText === 'Z') return 0
  const minutes = Number(zoneText.slice(1, 3)) * 60 + Number(zoneText.slice(4, 6))
  return zoneText.startsWith('-') ? -minutes : minutes
}

/** UTC to the second without the letter of the zone; undefined when a year has not four digits. */
function utcText(milliseconds: number): string | undefined {
  const inRange = milliseconds >= firstYear && milliseconds < afterLastYear
  return inRange ? new Date(milliseconds).toISOString().slice(0, 19) : undefined
}

function parse(
  text: string,
  layout: Layout,
): Problem | { readonly utc: string; readonly fraction: string } {
  const found = split(text, layout)
  if ('problem' in found) return found
  const { pieces } = found
  const outOfRange = rangeProblem(pieces)
  if (outOfRange !== undefined) return rejected(text, `${outOfRange} out of range`)
  const offset = offsetMinutes(pieces.at(-1) ?? 'Z')
  if (Math.abs(offset) > 24 * 60) return rejected(text, 'time zone offset hour out of range')
  const local = Date.parse(`${pieces.slice(0, 10).join('')}${pieces[10]?.slice(0, 2)}Z`)
  const utc = utcText(local - offset * 60_000)
  if (utc === undefined) return rejected(text, 'year out of range')
  return { utc, fraction: pieces[11] ?? '' }
}

const usualForm =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/

/** Reads an RFC 3339 time; the result is in UTC and without fractions of a second. */
export function canonicalTime(text: string): TimeResult {
  if (usualForm.test(text) && !text.startsWith(zeroTime)) return { text }
  const parsed = parse(text, secondsLayout)
  if ('problem' in parsed) return parsed
  return { text: parsed.utc === zeroTime ? null : `${parsed.utc}Z` }
}

/** Reads a time with exactly six decimal places, as Leases have it. */
export function canonicalMicroTime(text: string): TimeResult {
  const parsed = parse(text, microsLayout)
  if ('problem' in parsed) return parsed
  const fraction = parsed.fraction.slice(1)
  const isZero = parsed.utc === zeroTime && fraction === '000000'
  return { text: isZero ? null : `${parsed.utc}.${fraction}Z` }
}

/** A time that protobuf carries as seconds and nanoseconds since 1970, in the form that JSON has. */
export function timeFromUnix(seconds: number, nanos: number, micro: boolean): TimeResult {
  const utc = utcText(seconds * 1000)
  if (utc === undefined) return { problem: `time ${seconds}s since 1970: year out of range` }
  if (!micro) return canonicalTime(`${utc}Z`)
  const micros = String(Math.floor(nanos / 1000)).padStart(6, '0')
  return canonicalMicroTime(`${utc}.${micros}Z`)
}
