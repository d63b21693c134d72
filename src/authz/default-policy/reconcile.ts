import { isDeepStrictEqual } from 'node:util'
import {
  type ClusterView,
  hasReason,
  isRecord,
  type Kind,
  type KubeObject,
  type Logger,
} from '../../core/index.ts'
import { rbacKinds, readRoleRef, readRoleSelectors, readRules, writeRule } from '../rbac-objects.ts'
import { compactRules, missingRules } from '../rule-set.ts'
import { autoUpdate } from './rbac-builders.ts'
import { defaultPolicy } from './roles.ts'

/** What must be done so that a stored object holds what the default policy says. */
type Reconciliation =
  | { readonly action: 'none' }
  | { readonly action: 'update' | 'recreate'; readonly object: KubeObject }

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/**
 * Compares a stored object with its default: what is missing is added, what an administrator added
 * stays, and an object that opted out is left alone.
 */
function reconciled(stored: KubeObject, expected: KubeObject): Reconciliation {
  if (stored.metadata.annotations?.[autoUpdate] === 'false') return { action: 'none' }
  const isBinding = expected.kind.endsWith('Binding')
  // A role reference cannot be changed, only be made anew.
  if (isBinding && !isDeepStrictEqual(readRoleRef(stored), readRoleRef(expected))) {
    return { action: 'recreate', object: expected }
  }
  const object: KubeObject = {
    ...stored,
    metadata: {
      ...stored.metadata,
      labels: { ...expected.metadata.labels, ...stored.metadata.labels },
      annotations: { ...expected.metadata.annotations, ...stored.metadata.annotations },
    },
    ...(isBinding ? mergedSubjects(stored, expected) : mergedRules(stored, expected)),
  }
  if (!isBinding) mergeAggregation(object, stored, expected)
  return isDeepStrictEqual(object, stored) ? { action: 'none' } : { action: 'update', object }
}

function mergedSubjects(stored: KubeObject, expected: KubeObject) {
  const present = items(stored['subjects'])
  const missing = items(expected['subjects']).filter(
    (subject) => !present.some((each) => isDeepStrictEqual(each, subject)),
  )
  return missing.length > 0 && { subjects: [...present, ...missing] }
}

function mergedRules(stored: KubeObject, expected: KubeObject) {
  const missing = missingRules(readRules(stored), readRules(expected))
  if (missing.length === 0) return {}
  return { rules: [...items(stored['rules']), ...compactRules(missing).map(writeRule)] }
}

function mergeAggregation(object: KubeObject, stored: KubeObject, expected: KubeObject): void {
  const wanted = readRoleSelectors(expected)
  if (!wanted) {
    delete object['aggregationRule']
    return
  }
  const present = readRoleSelectors(stored) ?? []
  const missing = wanted.filter(
    (selector) => !present.some((each) => isDeepStrictEqual(each, selector)),
  )
  if (missing.length === 0) return
  const rule = isRecord(stored['aggregationRule']) ? stored['aggregationRule'] : {}
  object['aggregationRule'] = { ...rule, clusterRoleSelectors: [...present, ...missing] }
}

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
