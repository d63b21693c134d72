import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'

/** A client certificate that was issued to a person. */
export interface UserRecord {
  readonly name: string
  readonly groups: readonly string[]
  /** Upper-case hexadecimal. */
  readonly serial: string
  /** RFC 3339. */
  readonly issued: string
  readonly expires: string
}

const key = { namespace: 'kube-system', name: 'sallyport-users' } as const

function recordOf(serial: string, text: unknown): UserRecord | undefined {
  if (typeof text !== 'string') return undefined
  const value: unknown = JSON.parse(text)
  if (!isRecord(value)) return undefined
  const { name, groups, issued, expires } = value
  if (typeof name !== 'string' || typeof issued !== 'string' || typeof expires !== 'string')
    return undefined
  const named = Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : []
  return { name, groups: named, serial, issued, expires }
}

const dataOf = (list: KubeObject | undefined): Record<string, unknown> =>
  isRecord(list?.['data']) ? list['data'] : {}

/** Every certificate that was issued to a person, the newest last. */
export async function listUserRecords(
  view: ClusterView,
  signal: AbortSignal,
): Promise<UserRecord[]> {
  const list = await view.get(wellKnownKinds.configMap, key, signal)
  return Object.entries(dataOf(list))
    .flatMap(([serial, text]) => recordOf(serial, text) ?? [])
    .sort((a, b) => a.issued.localeCompare(b.issued))
}

/** Notes that a certificate was issued, whoever else is writing the list. */
export async function addUserRecord(
  view: ClusterView,
  { serial, ...facts }: UserRecord,
  signal: AbortSignal,
): Promise<void> {
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key },
    (present = emptyList()) => ({
      ...present,
      data: { ...dataOf(present), [serial]: JSON.stringify(facts) },
    }),
    signal,
  )
}

const emptyList = (): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...key },
})
