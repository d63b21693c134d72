interface Place {
  readonly cut: () => void
}

/** Lets a limited number in; when all places are taken, whoever has most of them gives way to those who have few. */
export class FairLimit {
  readonly #limit: number
  readonly #mostPerHolder: number
  readonly #byHolder = new Map<string, Set<Place>>()
  #taken = 0

  /** A holder that has `mostPerHolder` gives its own oldest up for a new one. */
  constructor(limit: number, mostPerHolder = Number.POSITIVE_INFINITY) {
    this.#limit = limit
    this.#mostPerHolder = mostPerHolder
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#taken
  }

  /** Takes a place and returns how to give it back, or nothing if there is none. `cut` is called when it is taken away. */
  enter(holder: string, cut: () => void): (() => void) | undefined {
    const own = this.#byHolder.get(holder)
    if (own && own.size >= this.#mostPerHolder) this.#cutOldest(holder, own)
    if (this.#taken >= this.#limit && !this.#makeRoomFor(holder)) return undefined
    const place = { cut }
    const places = this.#byHolder.get(holder) ?? new Set()
    this.#byHolder.set(holder, places.add(place))
    this.#taken++
    return () => this.#leave(holder, place)
  }

  #makeRoomFor(holder: string): boolean {
    const [largest, places] = this.#largest()
    const own = this.#byHolder.get(holder)?.size ?? 0
    // Among equals the first stay: in a rush of many, those who are nearly done must not be pushed out.
    if (own + 1 >= places.size) return false
    this.#cutOldest(largest, places)
    return true
  }

  #cutOldest(holder: string, places: ReadonlySet<Place>): void {
    const [oldest] = places
    if (!oldest) return
    this.#leave(holder, oldest)
    oldest.cut()
  }

  #largest(): readonly [string, ReadonlySet<Place>] {
    let largest: readonly [string, ReadonlySet<Place>] = ['', new Set()]
    for (const entry of this.#byHolder) if (entry[1].size > largest[1].size) largest = entry
    return largest
  }

  #leave(holder: string, place: Place): void {
    const places = this.#byHolder.get(holder)
    if (!places?.delete(place)) return
    this.#taken--
    if (places.size === 0) this.#byHolder.delete(holder)
  }
}
