import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'

const recordKey = { namespace: 'kube-system', name: 'sallyport-issuer' } as const

/** Where the keys of a cluster's issuer are: in files of its servers, or in the cluster itself. */
export type KeySource = 'files' | 'cluster'

/** What a cluster keeps about its issuer. */
export interface IssuerRecord {
  readonly issuer: string
  readonly keys: KeySource
}

/** How a server sees its issuer when it starts. */
export interface IssuerStart {
  /** The issuer of a cluster that has none yet. */
  readonly firstIssuer: string
  readonly keys: KeySource
}

/**
 * The issuer of a cluster that was given none: the one of its first start. It must not change with
 * addresses later, since every token and every relying party names it.
 */
export async function keptIssuer(
  view: ClusterView,
  start: IssuerStart,
  signal: AbortSignal,
): Promise<string> {
  let record: IssuerRecord = { issuer: start.firstIssuer, keys: start.keys }
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key: recordKey },
    (present) => {
      const known = present && recordIn(present)
      record = { issuer: known?.issuer || start.firstIssuer, keys: start.keys }
      if (known?.issuer === record.issuer && known.keys === record.keys) return undefined
      return {
        apiVersion: 'v1',
        kind: wellKnownKinds.configMap.kind,
        metadata: present?.metadata ?? { ...recordKey },
        data: { ...dataOf(present), ...record },
      }
    },
    signal,
  )
  return record.issuer
}

/** What a cluster keeps about its issuer; undefined where there is none. */
export async function readIssuerRecord(
  view: ClusterView,
  signal: AbortSignal,
): Promise<IssuerRecord | undefined> {
  const found = await view.get(wellKnownKinds.configMap, recordKey, signal)
  return found && recordIn(found)
}

function dataOf(object: KubeObject | undefined): Readonly<Record<string, unknown>> {
  const data = object?.['data']
  return isRecord(data) ? data : {}
}

function recordIn(object: KubeObject): IssuerRecord {
  const { issuer, keys } = dataOf(object)
  return {
    issuer: typeof issuer === 'string' ? issuer : '',
    keys: keys === 'files' ? 'files' : 'cluster',
  }
}

/** What is wrong with an issuer for tokens at all, as in `must be ...`. */
export function problemOfIssuer(issuer: string): string | undefined {
  if (issuer === '') return 'must not be empty'
  if (issuer.includes(':') && !URL.canParse(issuer)) return 'must be a URL if it has a colon'
  return undefined
}

/** Why outsiders could not discover an issuer; tokens can be issued all the same. */
export function problemOfDiscovery(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  if (url?.protocol !== 'https:') return 'it is no https URL'
  if (issuer.includes('?') || issuer.includes('#')) return 'it has a query or a fragment'
  return undefined
}
