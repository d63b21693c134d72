/** A link that shares a budget with others. */
export interface BudgetedLink {
  /** Bytes that it keeps: not read by us yet, or not taken by the peer. */
  readonly heldBytes: number
  /** Gives up what holds most of them. */
  shed(): void
}

/** Bounds the bytes that all links of one peer keep in memory. */
export class BufferBudget {
  readonly #maxBytes: number
  readonly #emptied: () => void
  readonly #links = new Set<BudgetedLink>()
  #bytes = 0

  constructor(maxBytes: number, emptied: () => void = () => {}) {
    this.#maxBytes = maxBytes
    this.#emptied = emptied
  }

  add(link: BudgetedLink): void {
    this.#links.add(link)
  }

  /** A link has ended; it holds nothing any more. */
  remove(link: BudgetedLink): void {
    if (this.#links.delete(link) && this.#links.size === 0) this.#emptied()
  }

  count(change: number): void {
    this.#bytes += change
    if (change <= 0 || this.#bytes <= this.#maxBytes) return
    let fullest: BudgetedLink | undefined
    for (const link of this.#links)
      if (fullest === undefined || link.heldBytes > fullest.heldBytes) fullest = link
    fullest?.shed()
  }
}

/** One budget for each peer that has links. */
export class BufferBudgets {
  readonly #maxBytes: number
  readonly #budgets = new Map<string, BufferBudget>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The budget of a peer; a link has to be added at once. */
  of(peer: string): BufferBudget {
    const existing = this.#budgets.get(peer)
    if (existing) return existing
    const budget = new BufferBudget(this.#maxBytes, () => this.#budgets.delete(peer))
    this.#budgets.set(peer, budget)
    return budget
  }
}
