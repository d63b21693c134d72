/** A link that shares a buffer budget. */
export interface BudgetedLink {
  /** Bytes in its buffers: not consumed by us, or not read by the peer. */
  readonly heldBytes: number
  /** Closes what holds most of them. */
  shed(): void
}

/** Bounds the bytes in the buffers of all links of a peer. */
export class BufferBudget {
  readonly #maxBytes: number
  readonly #emptied: () => void
  readonly #links = new Set<BudgetedLink>()
  #bytes = 0
  #isShedding = false

  constructor(maxBytes: number, emptied: () => void = () => {}) {
    this.#maxBytes = maxBytes
    this.#emptied = emptied
  }

  add(link: BudgetedLink): void {
    this.#links.add(link)
  }

  /** A link has ended. */
  remove(link: BudgetedLink): void {
    if (this.#links.delete(link) && this.#links.size === 0) this.#emptied()
  }

  count(change: number): void {
    this.#bytes += change
    // What is given up is counted from within, with the packet that reports it to the peer.
    if (change <= 0 || this.#isShedding) return
    this.#isShedding = true
    for (let link = this.#fullest(); link && this.#bytes > this.#maxBytes; link = this.#fullest())
      link.shed()
    this.#isShedding = false
  }

  #fullest(): BudgetedLink | undefined {
    if (this.#bytes <= this.#maxBytes) return undefined
    let fullest: BudgetedLink | undefined
    for (const link of this.#links)
      if (fullest === undefined || link.heldBytes > fullest.heldBytes) fullest = link
    return fullest
  }
}

/** A budget for each peer that has links. */
export class BufferBudgets {
  readonly #maxBytes: number
  readonly #budgets = new Map<string, BufferBudget>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The budget of a peer; the caller adds a link in the same tick. */
  of(peer: string): BufferBudget {
    const existing = this.#budgets.get(peer)
    if (existing) return existing
    const budget = new BufferBudget(this.#maxBytes, () => this.#budgets.delete(peer))
    this.#budgets.set(peer, budget)
    return budget
  }
}
