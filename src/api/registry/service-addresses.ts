import { invalid, type KubeObject } from '../../core/index.ts'
import { fieldsAt, textsAt } from '../kinds/fields.ts'
import { service } from '../kinds/service.ts'
import { ServiceIps } from '../kinds/service-ips.ts'
import { causesOf } from '../validation/index.ts'
import type { WriteHook } from './registry-context.ts'

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
