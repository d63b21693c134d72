import type { KubeObject, WatchEvent } from '../core/index.ts'

/** Who is told of every change of the objects that are followed. May take its time: changes wait. */
export interface Follower {
  /** An object is new or has changed; `previous` is what was last told of it. */
  put(object: KubeObject, previous?: KubeObject): void | Promise<void>
  /** An object is gone; it is shown as it was last known. */
  remove(object: KubeObject): void | Promise<void>
}

/**
 * What a follower knows of the objects, so that it is told of each change once, whether the change
 * comes from a list or a watch. A change counts as known only after the follower has taken it.
 */
export class Picture {
  readonly #follower: Follower
  readonly #known = new Map<string, KubeObject>()

  constructor(follower: Follower) {
    this.#follower = follower
  }

  /** Takes in an event of a watch. */
  async take(event: WatchEvent): Promise<void> {
    if (event.type === 'BOOKMARK') return
    const key = keyOf(event.object)
    if (event.type !== 'DELETED') await this.#put(key, event.object)
    else if (this.#known.has(key)) await this.#remove(key, event.object)
  }

  /** Takes in a whole list: what is new, what has changed, and what is gone. */
  async replace(items: readonly KubeObject[]): Promise<void> {
    const listed = new Set(items.map(keyOf))
    for (const [key, object] of this.#known) {
      if (!listed.has(key)) await this.#remove(key, object)
    }
    for (const item of items) await this.#put(keyOf(item), item)
  }

  async #put(key: string, object: KubeObject): Promise<void> {
    const known = this.#known.get(key)
    if (known && isSameVersion(known, object)) return
    const recreated = known !== undefined && known.metadata.uid !== object.metadata.uid
    if (recreated) await this.#remove(key, known)
    await this.#follower.put(object, recreated ? undefined : known)
    this.#known.set(key, object)
  }

  async #remove(key: string, object: KubeObject): Promise<void> {
    await this.#follower.remove(object)
    this.#known.delete(key)
  }
}

const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

const isSameVersion = (a: KubeObject, b: KubeObject): boolean =>
  a.metadata.resourceVersion !== undefined &&
  a.metadata.resourceVersion === b.metadata.resourceVersion &&
  a.metadata.uid === b.metadata.uid
