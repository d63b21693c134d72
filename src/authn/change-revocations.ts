import { changeObject } from '../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../core/index.ts'
import {
  dataKeys,
  formatRevocation,
  normalSerial,
  type ParsedRevocations,
  parseRevocationLine,
  parseRevocations,
  type Revocation,
  revocationListKey,
} from './revocation-list.ts'

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
