import type { DialRequest } from '../protocol/index.ts'
import type { Channel, IncomingDial } from './link.ts'

/** What the other end's dials need of the link. */
export interface IncomingDialHost {
  /** Answers that the connection stands. */
  accept(dial: DialRequest): Channel
  /** Answers that it does not. */
  refuse(dial: DialRequest, text: string): void
}

class WaitingDial implements IncomingDial {
  readonly #request: DialRequest
  readonly #abort = new AbortController()
  readonly #answer: (act: () => void) => void
  readonly #host: IncomingDialHost

  constructor(request: DialRequest, host: IncomingDialHost, answer: (act: () => void) => void) {
    this.#request = request
    this.#host = host
    this.#answer = answer
  }

  get protocol(): string {
    return this.#request.protocol
  }

  get address(): string {
    return this.#request.address
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  accept(): Channel | undefined {
    let channel: Channel | undefined
    this.#answer(() => {
      channel = this.#host.accept(this.#request)
    })
    return channel
  }

  refuse(text: string): void {
    this.#answer(() => this.#host.refuse(this.#request, text))
  }

  giveUp(): void {
    this.#abort.abort()
  }
}

/** Dials of the other end that wait for our answer. */
export class IncomingDials {
  readonly #host: IncomingDialHost
  readonly #waiting = new Map<bigint, WaitingDial>()

  constructor(host: IncomingDialHost) {
    this.#host = host
  }

  get count(): number {
    return this.#waiting.size
  }

  /** `undefined` if a dial of that name waits already. */
  add(request: DialRequest): IncomingDial | undefined {
    const { random } = request
    if (this.#waiting.has(random)) return undefined
    const dial = new WaitingDial(request, this.#host, (act) => {
      if (this.#waiting.get(random) !== dial) return
      this.#waiting.delete(random)
      act()
    })
    this.#waiting.set(random, dial)
    return dial
  }

  /** Tells whether there was such a dial. */
  takenBack(random: bigint): boolean {
    const dial = this.#waiting.get(random)
    this.#waiting.delete(random)
    dial?.giveUp()
    return dial !== undefined
  }

  giveUpAll(): void {
    const dials = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const dial of dials) dial.giveUp()
  }
}
