import { type Clock, type ClusterView, type KubeObject, wellKnownKinds } from '../../core/index.ts'
import { TokenRefused } from '../../jose/index.ts'
import { findBound } from './bound-object.ts'
import type { NamedObject, ServiceAccountClaims } from './service-account-claims.ts'

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
