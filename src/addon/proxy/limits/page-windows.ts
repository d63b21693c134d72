import type { PageWindow } from '../forward/index.ts'

/** How many pages are unpacked at a time that may each need megabytes for it. */
interface PageWindowLimits {
  readonly perUser: number
  readonly overall: number
}

/** Each page under `br` may ask for a window of 4 MiB: 32 MiB for a user, 256 MiB for all. */
const defaultPageWindows: PageWindowLimits = { perUser: 8, overall: 64 }

/** The memory that unpacking may take, shared between users: pages are made by add-ons, and an add-on may be hostile. */
export class PageWindows {
  readonly #limits: PageWindowLimits
  readonly #taken = new Map<string, number>()
  #all = 0

  constructor(limits: PageWindowLimits = defaultPageWindows) {
    this.#limits = limits
  }

  /** A place for a request of this user, not taken yet. */
  of(user: string): PageWindow {
    let isTaken = false
    return {
      take: () => {
        isTaken ||= this.#take(user)
        return isTaken
      },
      leave: () => {
        if (isTaken) this.#leave(user)
        isTaken = false
      },
    }
  }

  #take(user: string): boolean {
    const { perUser, overall } = this.#limits
    const own = this.#taken.get(user) ?? 0
    if (own >= perUser || this.#all >= overall) return false
    this.#taken.set(user, own + 1)
    this.#all++
    return true
  }

  #leave(user: string): void {
    const left = (this.#taken.get(user) ?? 0) - 1
    if (left > 0) this.#taken.set(user, left)
    else this.#taken.delete(user)
    this.#all--
  }
}
