import { changeObject } from '../client/index.ts'
import {
  type ClusterView,
  isRecord,
  type KubeObject,
  revocationListKey,
  wellKnownKinds,
} from '../core/index.ts'

/** What can be revoked: everything of a user, one certificate, or one token. */
export type RevocationType = 'user' | 'certificate' | 'token'

/** One line of the list. */
export interface Revocation {
  readonly type: RevocationType
  /** A user name, a certificate's serial number in hexadecimal, or a token id. */
  readonly value: string
  /** When and why, for people. */
  readonly note?: string
}

/** The data key of each type. */
const dataKeys: Readonly<Record<RevocationType, string>> = {
  user: 'users',
  certificate: 'certificate-serials',
  token: 'token-ids',
}

const types: readonly RevocationType[] = ['user', 'certificate', 'token']

/** What a list says, and what in it could not be understood. */
export interface ParsedRevocations {
  readonly revocations: readonly Revocation[]
  readonly problems: readonly string[]
}

/**
 * Reads the list. Each data key (`users`, `certificate-serials`, `token-ids`) holds one entry per
 * line; after ` # ` follows a note; a line that begins with `#` is a comment. A value with a space
 * before `#`, at its ends, or with a leading quote or `#` is written as a JSON string. A line that
 * cannot be read does not spoil the others.
 */
export function parseRevocations(list: KubeObject | undefined): ParsedRevocations {
  const data = isRecord(list?.['data']) ? list['data'] : {}
  const revocations: Revocation[] = []
  const problems = Object.keys(data)
    .filter((key) => !Object.values(dataKeys).includes(key))
    .map((key) => `data key ${JSON.stringify(key)} is unknown`)
  for (const type of types) {
    const text = data[dataKeys[type]]
    const lines = typeof text === 'string' ? text.split('\n') : []
    lines.forEach((line, index) => {
      const parsed = parseRevocationLine(type, line)
      if (typeof parsed === 'string')
        problems.push(`${dataKeys[type]}, line ${index + 1}: ${parsed}`)
      else if (parsed) revocations.push(parsed)
    })
  }
  return { revocations, problems }
}

/** Reads one line; a string says what is wrong with it, `undefined` that it says nothing. */
function parseRevocationLine(type: RevocationType, line: string): Revocation | string | undefined {
  const trimmed = line.trim()
  if (trimmed === '' || trimmed.startsWith('#')) return undefined
  const [value, note] = trimmed.startsWith('"') ? splitQuoted(trimmed) : splitPlain(trimmed)
  if (value === undefined) return 'the quoted value cannot be read'
  const normal = type === 'certificate' ? normalSerial(value) : value
  if (normal === undefined) return 'the serial number is not hexadecimal'
  return { type, value: normal, ...(note && { note }) }
}

type ValueAndNote = readonly [value: string | undefined, note: string]

/** A note begins with the first `#` after a space. Searched for, not matched: lines can be very long. */
function splitPlain(line: string): ValueAndNote {
  const end = line.search(/\s#/)
  return end < 0 ? [line, ''] : [line.slice(0, end).trimEnd(), line.slice(end + 2).trim()]
}

function splitQuoted(line: string): ValueAndNote {
  const [json = ''] = /^"(?:[^"\\]|\\.)*"/.exec(line) ?? []
  const rest = line.slice(json.length)
  if (rest === '') return [unquoted(json), '']
  const note = rest.trimStart()
  return /^\s/.test(rest) && note.startsWith('#')
    ? [unquoted(json), note.slice(1).trim()]
    : [undefined, '']
}

function unquoted(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' && value !== '' ? value : undefined
  } catch {
    return undefined
  }
}

/** A serial number in one spelling: upper-case hexadecimal without leading zeros; `undefined` if it is none. */
export function normalSerial(text: string): string | undefined {
  const digits = text.replace(/^0x/i, '').replaceAll(':', '').toUpperCase()
  if (!/^[0-9A-F]+$/.test(digits)) return undefined
  return digits.replace(/^0+(?=.)/, '')
}

/** One entry as a line of the list. */
export function formatRevocation({ value, note }: Revocation): string {
  const plain = value.trim() === value && !/^["#]|\s#|[\p{Cc}\u2028\u2029]/u.test(value)
  const shown = plain ? value : JSON.stringify(value)
  const comment = note?.replaceAll(/\s+/g, ' ').trim()
  return comment ? `${shown} # ${comment}` : shown
}

/** What is on the list now. */
export async function listRevocations(
  view: ClusterView,
  signal: AbortSignal,
): Promise<ParsedRevocations> {
  return parseRevocations(await view.get(wellKnownKinds.configMap, revocationListKey, signal))
}

/** Puts an entry on the list, whoever else is writing it; false when it was there already. */
export async function addRevocation(
  view: ClusterView,
  revocation: Revocation,
  signal: AbortSignal,
): Promise<boolean> {
  const entry = normalized(revocation)
  return changeLines(view, entry, signal, (lines) => {
    if (lines.some((line) => names(line, entry))) return undefined
    return [...lines, formatRevocation(entry)]
  })
}

/** Takes an entry off the list; false when it was not there. */
export async function removeRevocation(
  view: ClusterView,
  revocation: Revocation,
  signal: AbortSignal,
): Promise<boolean> {
  const entry = normalized(revocation)
  return changeLines(view, entry, signal, (lines) => {
    const kept = lines.filter((line) => !names(line, entry))
    return kept.length === lines.length ? undefined : kept
  })
}

function normalized(revocation: Revocation): Revocation {
  if (revocation.value === '') throw new TypeError('there is nothing to revoke')
  if (revocation.type !== 'certificate') return revocation
  const value = normalSerial(revocation.value)
  if (value === undefined) throw new TypeError('a serial number is hexadecimal')
  return { ...revocation, value }
}

function names(line: string, entry: Revocation): boolean {
  const parsed = parseRevocationLine(entry.type, line)
  return typeof parsed === 'object' && parsed.value === entry.value
}

type LineChange = (lines: readonly string[]) => readonly string[] | undefined

async function changeLines(
  view: ClusterView,
  { type }: Revocation,
  signal: AbortSignal,
  change: LineChange,
): Promise<boolean> {
  const list = { view, kind: wellKnownKinds.configMap, key: revocationListKey }
  return changeObject(
    list,
    (present = emptyList()) => {
      const data = isRecord(present['data']) ? present['data'] : {}
      const text = data[dataKeys[type]]
      const lines = typeof text === 'string' ? text.split('\n').filter((line) => line !== '') : []
      const changed = change(lines)?.map((line) => `${line}\n`)
      return changed && { ...present, data: { ...data, [dataKeys[type]]: changed.join('') } }
    },
    signal,
  )
}

const emptyList = (): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...revocationListKey },
})
