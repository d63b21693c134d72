import type { Kind, KubeObject } from '../../core/index.ts'
import { fieldsAt, textsAt } from '../kinds/fields.ts'
import { isNamespaceKind } from './namespace-lifecycle.ts'

/** What becomes of an object's dependents. */
export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground'

/** The finalizers by which the garbage collector knows what to do before an object goes. */
const finalizerOf = { Orphan: 'orphan', Foreground: 'foregroundDeletion' } as const
const ofPolicies: ReadonlySet<string> = new Set(Object.values(finalizerOf))

/** The finalizers of an object that is deleted with `policy`: those of other policies give way. */
export function finalizersFor(
  { metadata }: KubeObject,
  policy: PropagationPolicy | undefined,
): string[] {
  const present = metadata.finalizers ?? []
  if (policy === undefined) return present
  const others = present.filter((name) => !ofPolicies.has(name))
  return policy === 'Background' ? others : [...others, finalizerOf[policy]]
}

/** True while something must still happen before the object can go. */
export function isHeld(kind: Kind, object: KubeObject): boolean {
  if (object.metadata.finalizers?.length) return true
  // A Namespace has a list of its own, which is emptied once its content is gone.
  return isNamespaceKind(kind) && textsAt(fieldsAt(object, 'spec'), 'finalizers').length > 0
}
