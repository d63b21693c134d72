import { maxIdleHolders, minHeldBytes } from '../limits.ts'

/** A request whose bytes wait in memory because its client sends or reads slowly. */
export interface Holder {
  readonly user: string
  /** What it holds now; 0 if nothing. Only `HeldBytes` changes it. */
  held: number
  /** Neighbours in the list of its user, only while it holds something. */
  older?: Holder | undefined
  newer?: Holder | undefined
  /** Ended to free the memory that it holds. */
  readonly request: { disconnect(why: Error): void }
}

/** How much memory such requests may hold. */
export interface HeldLimits {
  readonly maxBytesPerUser: number
  readonly maxBytesInTotal: number
}

/**
 * A linked list: the tables that a long-lived Set leaves behind would keep the requests of all its past members in memory
 * until the next full garbage collection.
 */
interface UserHeld {
  bytes: number
  oldest: Holder | undefined
  newest: Holder | undefined
}

const outOfMemory = new Error('too many bytes wait in memory for this client')

/**
 * Bounds the bytes of bodies that are being received and of responses that are not read yet, per user
 * and in total. A user over the limit gets no more. When the total is reached, the oldest request of the
 * user with the most bytes is ended: a client that holds little is never affected by others.
 */
export class HeldBytes {
  readonly #limits: HeldLimits
  readonly #users = new Map<string, UserHeld>()
  #total = 0
  #disconnected = 0

  constructor(limits: HeldLimits) {
    this.#limits = limits
  }

  /** Bytes that are held now. */
  get total(): number {
    return this.#total
  }

  /** Requests that were ended because the total was reached. */
  get disconnected(): number {
    return this.#disconnected
  }

  /** Sets what the holder holds, at least `minHeldBytes`; false if its user may not hold so much. */
  hold(holder: Holder, bytes: number): boolean {
    const needed = Math.max(bytes, minHeldBytes)
    const user = this.#users.get(holder.user)
    const others = (user?.bytes ?? 0) - holder.held
    if (needed > holder.held && others + needed > this.#limits.maxBytesPerUser) return false
    this.#change(holder, user, needed)
    while (this.#total > this.#limits.maxBytesInTotal) this.#endLargest()
    return holder.held > 0
  }

  /** Releases all that the holder holds; safe to call twice. */
  release(holder: Holder): void {
    if (holder.held > 0) this.#change(holder, this.#users.get(holder.user), 0)
  }

  #change(holder: Holder, known: UserHeld | undefined, bytes: number): void {
    const user = known ?? { bytes: 0, oldest: undefined, newest: undefined }
    if (known === undefined) this.#users.set(holder.user, user)
    this.#total += bytes - holder.held
    user.bytes += bytes - holder.held
    const wasHolding = holder.held > 0
    holder.held = bytes
    if (bytes > 0 && !wasHolding) append(user, holder)
    else if (bytes === 0 && wasHolding) remove(user, holder)
    if (user.oldest === undefined && this.#users.size > maxIdleHolders)
      this.#users.delete(holder.user)
  }

  #endLargest(): void {
    let largest: UserHeld | undefined
    for (const user of this.#users.values())
      if (largest === undefined || user.bytes > largest.bytes) largest = user
    const oldest = largest?.oldest
    if (oldest === undefined) return
    this.#disconnected++
    this.release(oldest)
    oldest.request.disconnect(outOfMemory)
  }
}

function append(user: UserHeld, holder: Holder): void {
  holder.older = user.newest
  if (user.newest) user.newest.newer = holder
  else user.oldest = holder
  user.newest = holder
}

function remove(user: UserHeld, holder: Holder): void {
  const { older, newer } = holder
  if (older) older.newer = newer
  else user.oldest = newer
  if (newer) newer.older = older
  else user.newest = older
  holder.older = undefined
  holder.newer = undefined
}
