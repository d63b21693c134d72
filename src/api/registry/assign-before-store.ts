import type { Kind, KubeObject } from '../../core/index.ts'
import type { RegistryContext } from './registry-context.ts'

/** What has been set aside for an object that is about to be stored. */
export interface Assignment {
  /** The object is stored: what it gave up is free for others. */
  keep(): void
  /** The object is not stored after all. */
  undo(): void
}

/** Completes a draft with what the server allocates, such as addresses; `stored` is the object it replaces. */
export function assignBeforeStore(
  context: RegistryContext,
  kind: Kind,
  draft: KubeObject,
  stored: KubeObject | undefined,
): Assignment {
  const hooks = context.hooks.filter((hook) => hook.kind === kind)
  const reverts: ((() => void) | undefined)[] = []
  const undo = (): void => {
    for (const revert of reverts) revert?.()
  }
  try {
    for (const hook of hooks) reverts.push(hook.beforeStore?.(draft, stored))
  } catch (cause) {
    undo()
    throw cause
  }
  const keep = (): void => {
    for (const hook of hooks) hook.afterStore?.(draft, stored)
  }
  return { keep, undo }
}
