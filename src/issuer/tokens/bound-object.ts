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

/** An object that a token shall be bound to, as its asker names it. */
export interface BoundObjectRef {
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  readonly uid: string
}

const isBoundKind = (kind: string): kind is BoundKind => Object.hasOwn(kinds, kind)

/** Finds the object of a token: in the cluster, by kind and name. */
function findBound(
  view: ClusterView,
  bound: { readonly kind: BoundKind; readonly name: string },
  namespace: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const kind = kinds[bound.kind]
  return view.get(kind, { name: bound.name, ...(kind.namespaced && { namespace }) }, signal)
}

/** What a new token says of the object that it is bound to; throws an ApiError when that cannot be. */
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

/** As Kubernetes reads it: what it cannot read counts as nothing. */
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

/** A deleted object counts for this much longer: what it runs shall be able to end in good order. */
const graceMs = 60_000

/** Where the objects behind a token are looked up. */
export interface LivingObjects {
  readonly view: ClusterView
  readonly clock: Clock
}

/** Refuses a token whose service account or bound object is gone or another one, in Kubernetes' words. */
export async function requireAlive(
  { namespace, serviceAccount, bound }: ServiceAccountClaims,
  objects: LivingObjects,
  signal: AbortSignal,
): Promise<void> {
  const [account, object] = await Promise.all([
    findAccount(objects.view, namespace, serviceAccount, signal),
    bound && findBound(objects.view, bound, namespace, signal),
  ])
  if (isEnding(account, objects.clock))
    throw dead(`service account ${namespace}/${serviceAccount.name} has been deleted`)
  if (!bound) return
  if (!object || (object.metadata.uid === bound.uid && isEnding(object, objects.clock)))
    throw dead('service account token has been invalidated')
  if (object.metadata.uid !== bound.uid) {
    const kind = bound.kind.toLowerCase()
    throw dead(
      `${kind} UID (${object.metadata.uid ?? ''}) does not match service account ${kind} ref claim (${bound.uid})`,
    )
  }
}

/** The service account that a token names; refuses another one of that name. */
async function findAccount(
  view: ClusterView,
  namespace: string,
  { name, uid }: NamedObject,
  signal: AbortSignal,
): Promise<KubeObject> {
  const account = await view.get(wellKnownKinds.serviceAccount, { namespace, name }, signal)
  if (!account) throw dead(`serviceaccounts ${JSON.stringify(name)} not found`)
  if (account.metadata.uid !== uid)
    throw dead(`service account UID (${account.metadata.uid ?? ''}) does not match claim (${uid})`)
  return account
}

const dead = (why: string): TokenRefused => new TokenRefused('bad-claims', why)

function isEnding({ metadata }: KubeObject, clock: Clock): boolean {
  const since = metadata.deletionTimestamp
  return since !== undefined && clock.now() > Date.parse(since) + graceMs
}
