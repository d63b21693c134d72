import { type KubeObject, kubeTime } from '../../core/index.ts'
import { type Fields, fieldsAt, recordsAt, textAt } from '../kinds/fields.ts'

/** What is left of a namespace that is being deleted. */
export interface Remains {
  /** By resource, such as `pods.` or `leases.coordination.k8s.io`. */
  readonly resources: ReadonlyMap<string, number>
  readonly finalizers: ReadonlyMap<string, number>
  /** What went wrong while deleting, in words. */
  readonly failures: readonly string[]
}

interface Condition {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

const listed = (counts: ReadonlyMap<string, number>, words: (name: string) => string): string =>
  [...counts]
    .map(([name, count]) => `${words(name)} ${count} resource instances`)
    .toSorted()
    .join(', ')

function contentCondition({ resources }: Remains): Condition {
  const type = 'NamespaceContentRemaining'
  if (resources.size === 0) {
    const message = 'All content successfully removed'
    return { type, status: 'False', reason: 'ContentRemoved', message }
  }
  const message = `Some resources are remaining: ${listed(resources, (name) => `${name} has`)}`
  return { type, status: 'True', reason: 'SomeResourcesRemain', message }
}

function finalizerCondition({ finalizers }: Remains): Condition {
  const type = 'NamespaceFinalizersRemaining'
  if (finalizers.size === 0) {
    const message = 'All content-preserving finalizers finished'
    return { type, status: 'False', reason: 'ContentHasNoFinalizers', message }
  }
  const names = listed(finalizers, (name) => `${name} in`)
  const message = `Some content in the namespace has finalizers remaining: ${names}`
  return { type, status: 'True', reason: 'SomeFinalizersRemain', message }
}

function failureCondition({ failures }: Remains): Condition {
  const type = 'NamespaceDeletionContentFailure'
  if (failures.length === 0) {
    const message = 'All content successfully deleted, may be waiting on finalization'
    return { type, status: 'False', reason: 'ContentDeleted', message }
  }
  const message = `Failed to delete all resource types, ${failures.length} remaining: ${failures.toSorted().join(', ')}`
  return { type, status: 'True', reason: 'ContentDeletionFailed', message }
}

const conditionsOf = (remains: Remains): Condition[] => [
  {
    type: 'NamespaceDeletionDiscoveryFailure',
    status: 'False',
    reason: 'ResourcesDiscovered',
    message: 'All resources successfully discovered',
  },
  {
    type: 'NamespaceDeletionGroupVersionParsingFailure',
    status: 'False',
    reason: 'ParsedGroupVersions',
    message: 'All legacy kube types successfully parsed',
  },
  failureCondition(remains),
  contentCondition(remains),
  finalizerCondition(remains),
]

const isSame = (old: Fields, next: Condition): boolean =>
  (['status', 'reason', 'message'] as const).every((field) => textAt(old, field) === next[field])

/** The namespace with the conditions that tell what its deletion waits for; the very same when they say so already. */
export function withDeletionConditions(
  namespace: KubeObject,
  remains: Remains,
  now: number,
): KubeObject {
  const status = fieldsAt(namespace, 'status')
  const old = recordsAt(status, 'conditions')
  const wanted = conditionsOf(remains)
  const before = (type: string): Fields | undefined =>
    old.find((condition) => textAt(condition, 'type') === type)
  if (wanted.every((next) => isSame(before(next.type) ?? {}, next))) return namespace
  const others = old.filter((condition) => wanted.every(({ type }) => type !== condition['type']))
  const conditions = wanted.map((next) => {
    const known = before(next.type)
    const kept = known && textAt(known, 'status') === next.status
    return { ...next, lastTransitionTime: kept ? known['lastTransitionTime'] : kubeTime(now) }
  })
  return {
    ...namespace,
    status: { ...status, phase: 'Terminating', conditions: [...others, ...conditions] },
  }
}
