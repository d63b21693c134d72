import {
  type ClusterView,
  hasReason,
  type Kind,
  type KubeObject,
  type Logger,
} from '../../core/index.ts'
import { rbacKinds } from '../rbac-kinds.ts'
import { defaultPolicy } from './policy.ts'
import { reconciled } from './reconciled.ts'

const maxAttempts = 4

const kinds: ReadonlyMap<string, Kind> = new Map(
  Object.values(rbacKinds).map((kind) => [kind.kind, kind]),
)

const keyOf = (object: KubeObject) =>
  `${object.kind}/${object.metadata.namespace ?? ''}/${object.metadata.name}`

/** Where the default policy is kept. */
export interface ReconcileOptions {
  readonly view: ClusterView
  readonly log: Logger
}

/**
 * Creates what is missing of the default policy and adds what is missing in it, as Kubernetes does
 * at every start. The namespaces `kube-system` and `kube-public` must be there.
 */
export async function reconcileDefaultPolicy(
  options: ReconcileOptions,
  signal: AbortSignal,
): Promise<void> {
  const lists = await Promise.all(
    [...kinds.values()].map((kind) => options.view.list(kind, {}, signal)),
  )
  const stored = new Map(
    lists.flatMap((list) => list.items.map((object) => [keyOf(object), object] as const)),
  )
  const outcomes = await Promise.all(
    defaultPolicy.map((expected) =>
      reconcile(options, expected, stored, signal).catch((err: unknown) => {
        // What somebody holds by a finalizer, for example, must not keep a server from starting.
        if (!hasReason(err, 'AlreadyExists', 'Conflict', 'NotFound', 'Invalid', 'Forbidden'))
          throw err
        options.log.error({ err, object: keyOf(expected) }, 'default policy is not in force')
        return false
      }),
    ),
  )
  const changed = outcomes.filter((outcome) => outcome).length
  if (changed > 0) options.log.info({ changed }, 'default roles and bindings brought up to date')
}

/** True when something was written. */
async function reconcile(
  { view }: ReconcileOptions,
  expected: KubeObject,
  known: ReadonlyMap<string, KubeObject>,
  signal: AbortSignal,
): Promise<boolean> {
  let stored = known.get(keyOf(expected))
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await writeMissing(view, stored, expected, signal)
    } catch (error) {
      // Another server may be doing the same at this moment.
      const raced = hasReason(error, 'AlreadyExists', 'Conflict', 'NotFound')
      if (!raced || attempt === maxAttempts) throw error
      stored = await readAgain(view, expected, signal)
    }
  }
}

async function writeMissing(
  view: ClusterView,
  stored: KubeObject | undefined,
  expected: KubeObject,
  signal: AbortSignal,
): Promise<boolean> {
  if (!stored) {
    await view.write('create', expected, {}, signal)
    return true
  }
  const plan = reconciled(stored, expected)
  if (plan.action === 'none') return false
  const { resourceVersion, uid } = stored.metadata
  if (plan.action === 'update') {
    await view.write('update', plan.object, resourceVersion ? { resourceVersion } : {}, signal)
  } else {
    await view.write('delete', stored, uid ? { uid } : {}, signal)
    await view.write('create', plan.object, {}, signal)
  }
  return true
}

async function readAgain(view: ClusterView, expected: KubeObject, signal: AbortSignal) {
  const kind = kinds.get(expected.kind)
  const { namespace, name } = expected.metadata
  if (!kind) throw new TypeError(`${expected.kind} is no kind of the default policy`)
  return view.get(kind, namespace ? { namespace, name } : { name }, signal)
}
