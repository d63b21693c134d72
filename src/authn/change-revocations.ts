import { ApiError, type ClusterView, isRecord, type KubeObject } from '../core/index.ts'
import {
  configMapKind,
  dataKeys,
  formatRevocation,
  normalSerial,
  type ParsedRevocations,
  parseRevocationLine,
  parseRevocations,
  type Revocation,
  revocationListKey,
} from './revocation-list.ts'

const maxAttempts = 10

/** What is on the list now. */
export async function listRevocations(
  view: ClusterView,
  signal: AbortSignal,
): Promise<ParsedRevocations> {
  return parseRevocations(await view.get(configMapKind, revocationListKey, signal))
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
  for (let attempt = 1; ; attempt += 1) {
    const stored = await view.get(configMapKind, revocationListKey, signal)
    const data = isRecord(stored?.['data']) ? stored['data'] : {}
    const text = data[dataKeys[type]]
    const lines = typeof text === 'string' ? text.split('\n').filter((line) => line !== '') : []
    const changed = change(lines)
    if (!changed) return false
    const next = { ...data, [dataKeys[type]]: changed.map((line) => `${line}\n`).join('') }
    try {
      await writeList(view, stored, next, signal)
      return true
    } catch (error) {
      if (!lostRace(error) || attempt === maxAttempts) throw error
    }
  }
}

const lostRace = (error: unknown): boolean =>
  error instanceof ApiError && ['AlreadyExists', 'Conflict', 'NotFound'].includes(error.reason)

async function writeList(
  view: ClusterView,
  stored: KubeObject | undefined,
  data: Record<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  if (!stored) {
    const list = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...revocationListKey }, data }
    await view.write('create', list, {}, signal)
    return
  }
  const { resourceVersion } = stored.metadata
  const options = resourceVersion ? { resourceVersion } : {}
  await view.write('update', { ...stored, data }, options, signal)
}
