import { invalid, type Kind, type KubeObject } from '../../core/index.ts'
import { fieldsAt, textsAt } from '../kinds/fields.ts'
import { ServiceIps } from '../kinds/service/ips.ts'
import { service } from '../kinds/service/service.ts'
import { causesOf } from '../validation/index.ts'
import type { RegistryContext, WriteHook } from './registry.ts'

/** Gives each Service its addresses from the cluster's ranges, and takes them back in the end. */
export class ServiceAddresses implements WriteHook {
  readonly kind = service.kind
  readonly #ips: ServiceIps
  readonly #freed = new WeakMap<KubeObject, readonly string[]>()

  /** `existing` are the Services that hold addresses already. */
  constructor(cidrs: readonly [string, ...string[]], existing: Iterable<KubeObject>) {
    this.#ips = new ServiceIps(cidrs)
    for (const object of existing) this.#ips.adopt(object)
  }

  beforeStore(draft: KubeObject, stored: KubeObject | undefined): () => void {
    const { problems, taken, freed } = this.#ips.assign(draft, stored)
    if (problems.length > 0) throw invalid(this.kind, draft.metadata.name, causesOf(problems))
    this.#freed.set(draft, freed)
    return () => this.#ips.release(taken)
  }

  /** Only now may others have what this Service gave up. */
  afterStore(draft: KubeObject): void {
    this.#ips.release(this.#freed.get(draft) ?? [])
  }

  afterDelete(last: KubeObject): void {
    this.#ips.release(textsAt(fieldsAt(last, 'spec'), 'clusterIPs'))
  }
}

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
