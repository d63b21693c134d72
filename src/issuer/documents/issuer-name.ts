import { isDeepStrictEqual } from 'node:util'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'

const recordKey = { namespace: 'kube-system', name: 'sallyport-issuer' } as const

/** What a cluster keeps about its issuer. */
export interface IssuerRecord {
  readonly issuer: string
  /** The issuer that has signed since the last start. */
  readonly signing: string
}

/** How a server sees its issuer when it starts. */
export interface IssuerStart {
  /** The issuer of a cluster that has none yet. */
  readonly firstIssuer: string
  /** Those that the server was given, the one that signs first; none to take the one that is kept. */
  readonly given: readonly string[]
}

/** The issuer that a cluster keeps. */
export interface KeptIssuer {
  readonly issuer: string
  /** One that has signed until now and is not accepted any more. */
  readonly dropped?: string
}

/**
 * The issuer of a cluster that was given none: the one of its first start. It must not change with
 * addresses later, since every token and every relying party names it.
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

/** What is kept from this start on. */
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
  const { issuer, signing } = dataOf(object)
  return {
    issuer: typeof issuer === 'string' ? issuer : '',
    signing: typeof signing === 'string' ? signing : '',
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

/** How an issuer is called, and for whom its tokens are. */
export interface IssuerNames {
  /** All that are believed; the first one signs. */
  readonly issuers: readonly [string, ...string[]]
  /** Of tokens that name no audience, and of tokens for the API server. */
  readonly apiAudiences: readonly string[]
}
