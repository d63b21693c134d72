import {
  badRequest,
  type Clock,
  type ClusterView,
  conflict,
  isRecord,
  type Kind,
  type KubeObject,
  notFound,
  wellKnownKinds,
} from '../../core/index.ts'
import { TokenRefused } from '../../jose/index.ts'
import type { BoundKind, NamedObject, ServiceAccountClaims } from './claims.ts'

const kinds: Readonly<Record<BoundKind, Kind>> = {
  Pod: wellKnownKinds.pod,
  Secret: wellKnownKinds.secret,
  Node: wellKnownKinds.node,
}

/** The object that a token will be bound to, as in its TokenRequest. */
export interface BoundObjectRef {
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  readonly uid: string
}

const isBoundKind = (kind: string): kind is BoundKind => Object.hasOwn(kinds, kind)

/** Looks up the object of a token by kind and name. */
function findBound(
  view: ClusterView,
  bound: { readonly kind: BoundKind; readonly name: string },
  namespace: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const kind = kinds[bound.kind]
  return view.get(kind, { name: bound.name, ...(kind.namespaced && { namespace }) }, signal)
}

/** The claims of a new token about the object that it is bound to; throws ApiError. */
export async function bindTo(
  view: ClusterView,
  ref: BoundObjectRef,
  account: KubeObject,
  signal: AbortSignal,
): Promise<Pick<ServiceAccountClaims, 'bound' | 'node'>> {
  const { kind, apiVersion, name, uid } = ref
  const [group, version] = groupAndVersion(apiVersion)
  if (!isBoundKind(kind) || group !== '')
    throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`)
  if (name === '') throw badRequest('Name parameter required.')
  const { namespace = '', name: accountName } = account.metadata
  const object = await findBound(view, { kind, name }, namespace, signal)
  if (!object) throw notFound(kinds[kind], name)
  if (uid !== '' && uid !== object.metadata.uid)
    throw conflict(
      { group: '', resource: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  if (kind === 'Pod' && accountOf(object) !== accountName)
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(accountName)} to pod running with different serviceaccount name.`,
    )
  const bound = { kind, name, uid: object.metadata.uid ?? '' }
  return kind === 'Pod' ? { bound, ...(await nodeOf(view, object, signal)) } : { bound }
}

/** As Kubernetes parses it: an invalid value is empty. */
function groupAndVersion(apiVersion: string): readonly [group: string, version: string] {
  const [first = '', second, ...more] = apiVersion.split('/')
  if (more.length > 0) return ['', '']
  return second === undefined ? ['', first] : [first, second]
}

function specText(pod: KubeObject, field: string): string {
  const spec = pod['spec']
  const value = isRecord(spec) ? spec[field] : undefined
  return typeof value === 'string' ? value : ''
}

const accountOf = (pod: KubeObject): string => specText(pod, 'serviceAccountName')

async function nodeOf(
  view: ClusterView,
  pod: KubeObject,
  signal: AbortSignal,
): Promise<Pick<ServiceAccountClaims, 'node'>> {
  const name = specText(pod, 'nodeName')
  if (name === '') return {}
  const node = await findBound(view, { kind: 'Node', name }, '', signal)
  const uid = node?.metadata.uid
  return { node: uid === undefined ? { name } : { name, uid } }
}

/** Tokens of a deleted object stay valid for this long, so that its processes can shut down. */
const graceMs = 60_000

/** Where the objects of a token are looked up. */
export interface ObjectLookup {
  readonly view: ClusterView
  readonly clock: Clock
}

/** Rejects a token whose service account or bound object was deleted or replaced, with the messages of Kubernetes. */
export async function requireExisting(
  { namespace, serviceAccount, bound }: ServiceAccountClaims,
  objects: ObjectLookup,
  signal: AbortSignal,
): Promise<void> {
  const [account, object] = await Promise.all([
    findAccount(objects.view, namespace, serviceAccount, signal),
    bound && findBound(objects.view, bound, namespace, signal),
  ])
  if (isDeleted(account, objects.clock))
    throw rejected(`service account ${namespace}/${serviceAccount.name} has been deleted`)
  if (!bound) return
  if (!object || (object.metadata.uid === bound.uid && isDeleted(object, objects.clock)))
    throw rejected('service account token has been invalidated')
  if (object.metadata.uid !== bound.uid) {
    const kind = bound.kind.toLowerCase()
    throw rejected(
      `${kind} UID (${object.metadata.uid ?? ''}) does not match service account ${kind} ref claim (${bound.uid})`,
    )
  }
}

/** The service account of a token; rejects another one of that name. */
async function findAccount(
  view: ClusterView,
  namespace: string,
  { name, uid }: NamedObject,
  signal: AbortSignal,
): Promise<KubeObject> {
  const account = await view.get(wellKnownKinds.serviceAccount, { namespace, name }, signal)
  if (!account) throw rejected(`serviceaccounts ${JSON.stringify(name)} not found`)
  if (account.metadata.uid !== uid)
    throw rejected(
      `service account UID (${account.metadata.uid ?? ''}) does not match claim (${uid})`,
    )
  return account
}

const rejected = (why: string): TokenRefused => new TokenRefused('bad-claims', why)

function isDeleted({ metadata }: KubeObject, clock: Clock): boolean {
  const since = metadata.deletionTimestamp
  return since !== undefined && clock.now() > Date.parse(since) + graceMs
}
