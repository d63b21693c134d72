/** What all watches together may write in one turn of the event loop. */
export interface TurnLimits {
  readonly maxBytes: number
  readonly maxWrites: number
}

/** A few milliseconds of encryption and system calls. */
const defaultTurnLimits: TurnLimits = { maxBytes: 4 * 2 ** 20, maxWrites: 250 }

/**
 * Divides the events of one commit among turns of the event loop: one object may go to thousands of watches, and other
 * requests must not wait for all of them. Watches that wait take turns, with one line each.
 */
export class WatchTurns {
  readonly #limits: TurnLimits
  readonly #nextTurn: (turn: () => void) => void
  #waiting: (() => number)[] = []
  #bytes = 0
  #writes = 0
  #scheduled = false

  constructor(
    limits: TurnLimits = defaultTurnLimits,
    nextTurn: (turn: () => void) => void = (turn) => void setImmediate(turn),
  ) {
    this.#limits = limits
    this.#nextTurn = nextTurn
  }

  /** True if so many bytes may be written in this turn; they count as written then. */
  take(bytes: number): boolean {
    if (this.#waiting.length > 0 || this.#isSpent()) return false
    this.#spend(bytes)
    return true
  }

  /** Calls `send` in a later turn; it returns how many bytes it has written. */
  wait(send: () => number): void {
    this.#waiting.push(send)
    this.#schedule()
  }

  #isSpent(): boolean {
    return this.#bytes >= this.#limits.maxBytes || this.#writes >= this.#limits.maxWrites
  }

  #spend(bytes: number): void {
    this.#bytes += bytes
    this.#writes += 1
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#nextTurn(() => this.#begin())
  }

  #begin(): void {
    this.#scheduled = false
    this.#bytes = 0
    this.#writes = 0
    let sent = 0
    for (; sent < this.#waiting.length && !this.#isSpent(); sent++)
      this.#spend(this.#waiting[sent]?.() ?? 0)
    this.#waiting = this.#waiting.slice(sent)
    if (this.#waiting.length > 0) this.#schedule()
  }
}

/** The lines of one watch, in their order, each in a turn that has room for it. */
export class PacedLines {
  readonly #turns: WatchTurns
  readonly #send: (line: Buffer) => void
  #waiting: Buffer[] = []
  #waitingBytes = 0

  constructor(turns: WatchTurns, send: (line: Buffer) => void) {
    this.#turns = turns
    this.#send = send
  }

  /** Bytes that wait for their turn. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  write(line: Buffer): void {
    if (this.#waiting.length === 0 && this.#turns.take(line.length)) {
      this.#send(line)
      return
    }
    this.#waiting.push(line)
    this.#waitingBytes += line.length
    if (this.#waiting.length === 1) this.#turns.wait(this.#sendNext)
  }

  /** Sends what waits, at once: nothing follows. */
  flush(): void {
    const waiting = this.#waiting
    this.drop()
    for (const line of waiting) this.#send(line)
  }

  drop(): void {
    this.#waiting = []
    this.#waitingBytes = 0
  }

  readonly #sendNext = (): number => {
    const line = this.#waiting.shift()
    if (line === undefined) return 0
    this.#waitingBytes -= line.length
    this.#send(line)
    if (this.#waiting.length > 0) this.#turns.wait(this.#sendNext)
    return line.length
  }
}
