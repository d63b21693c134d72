import { isDeepStrictEqual } from 'node:util'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'

const recordKey = { namespace: 'kube-system', name: 'sallyport-issuer' } as const

/** What a cluster stores about its issuer. */
export interface IssuerRecord {
  readonly issuer: string
  /** The issuer that signs since the last start. */
  readonly signing: string
}

/** The issuers at the start of a server. */
export interface IssuerStart {
  /** The issuer of a new cluster. */
  readonly firstIssuer: string
  /** The configured issuers, of which the first signs; if empty, the stored one is used. */
  readonly given: readonly string[]
}

/** The stored issuer of a cluster. */
export interface KeptIssuer {
  readonly issuer: string
  /** The previous issuer, if its tokens are no longer accepted. */
  readonly dropped?: string
}

/**
 * The stored issuer of a cluster, which is that of its first start. It must not change with addresses later: all
 * tokens and relying parties have it.
 */
export async function keptIssuer(
  view: ClusterView,
  start: IssuerStart,
  signal: AbortSignal,
): Promise<KeptIssuer> {
  let kept: KeptIssuer = { issuer: start.firstIssuer }
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key: recordKey },
    (present) => {
      const known = present && recordIn(present)
      const record = recordAt(start, known)
      kept = { issuer: record.issuer, ...droppedSince(known, start.given, record) }
      if (isDeepStrictEqual(known, record)) return undefined
      return {
        apiVersion: 'v1',
        kind: wellKnownKinds.configMap.kind,
        metadata: present?.metadata ?? { ...recordKey },
        data: { ...dataOf(present), ...record },
      }
    },
    signal,
  )
  return kept
}

/** The record from this start on. */
function recordAt(
  { firstIssuer, given }: IssuerStart,
  known: IssuerRecord | undefined,
): IssuerRecord {
  const issuer = known?.issuer || firstIssuer
  const [signing = issuer] = given
  return { issuer, signing }
}

function droppedSince(
  known: IssuerRecord | undefined,
  given: readonly string[],
  { signing }: IssuerRecord,
): Pick<KeptIssuer, 'dropped'> {
  const before = known?.signing || signing
  return before === signing || given.includes(before) ? {} : { dropped: before }
}

/** The stored issuer of a cluster; undefined if there is none. */
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
  const { issuer, signing } = dataOf(object)
  return {
    issuer: typeof issuer === 'string' ? issuer : '',
    signing: typeof signing === 'string' ? signing : '',
  }
}

/** Why an issuer is invalid, as in `must be ...`. */
export function problemOfIssuer(issuer: string): string | undefined {
  if (issuer === '') return 'must not be empty'
  if (issuer.includes(':') && !URL.canParse(issuer)) return 'must be a URL if it has a colon'
  return undefined
}

/** Why relying parties cannot discover an issuer; tokens can be issued anyway. */
export function problemOfDiscovery(issuer: string): string | undefined {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  if (url?.protocol !== 'https:') return 'it is not an https URL'
  if (issuer.includes('?') || issuer.includes('#')) return 'it has a query or a fragment'
  return undefined
}

/** The names of an issuer and its default audiences. */
export interface IssuerNames {
  /** Accepted issuers; the first one signs. */
  readonly issuers: readonly [string, ...string[]]
  /** The default audiences of tokens, which are those of the API server. */
  readonly apiAudiences: readonly string[]
}
