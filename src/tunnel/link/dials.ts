import { randomFillSync } from 'node:crypto'
import { SallyportError } from '../../core/index.ts'
import type { DialRequest, DialResponse } from '../protocol/index.ts'
import type { Channel, DialFailureReason, IncomingDial } from './link.ts'

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

const inWords: Record<DialFailureReason, string> = {
  'refused-by-peer': 'the other end could not connect',
  'link-lost': 'the link to the other end was lost',
  timeout: 'the other end did not answer in time',
  cancelled: 'the dial was given up',
}

/** A dial through a link that came to nothing. */
export class DialFailed extends SallyportError {
  readonly code = 'TUNNEL_DIAL_FAILED'
  readonly reason: DialFailureReason
  /** What the other end said, or our own words where it said nothing. */
  readonly text: string

  constructor(reason: DialFailureReason, address: string, text: string = inWords[reason]) {
    super(`cannot reach ${address} through the tunnel: ${text}`)
    this.reason = reason
    this.text = text
  }
}

interface PendingDial {
  readonly address: string
  readonly settle: (outcome: Channel | DialFailed) => void
}

/** What the dials of a link need of it. */
export interface DialHost {
  request(random: bigint, address: string): void
  takeBack(random: bigint): void
  /** Makes the channel of a dial that succeeded. */
  open(address: string, connectId: number): Channel
}

/** Drawn in advance: a call for each dial would cost more than the packet. */
const pool = Buffer.alloc(4096)
let drawn = pool.length

/** 63 bits, as Konnectivity's ends make them. */
function newRandom(): bigint {
  if (drawn === pool.length) {
    randomFillSync(pool)
    drawn = 0
  }
  const random = pool.readBigUInt64BE(drawn) >> 1n
  drawn += 8
  return random
}

/** Our dials that wait for the other end's answer. */
export class OutgoingDials {
  readonly #host: DialHost
  readonly #pending = new Map<bigint, PendingDial>()

  constructor(host: DialHost) {
    this.#host = host
  }

  get count(): number {
    return this.#pending.size
  }

  dial(address: string, signal: AbortSignal, deadlineMs: number): Promise<Channel> {
    if (signal.aborted) return Promise.reject(new DialFailed('cancelled', address))
    const random = newRandom()
    return new Promise((resolve, reject) => {
      const giveUp = (reason: 'cancelled' | 'timeout'): void => {
        this.#host.takeBack(random)
        settle(new DialFailed(reason, address))
      }
      const cancel = (): void => giveUp('cancelled')
      const timer = setTimeout(() => giveUp('timeout'), deadlineMs)
      const settle = (outcome: Channel | DialFailed): void => {
        this.#pending.delete(random)
        clearTimeout(timer)
        signal.removeEventListener('abort', cancel)
        if (outcome instanceof DialFailed) reject(outcome)
        else resolve(outcome)
      }
      signal.addEventListener('abort', cancel, { once: true })
      this.#pending.set(random, { address, settle })
      this.#host.request(random, address)
    })
  }

  /** Tells whether the answer belonged to a dial that still waited. */
  answered({ random, error, connectId }: DialResponse): boolean {
    const dial = this.#pending.get(random)
    if (!dial) return false
    if (error !== '') dial.settle(new DialFailed('refused-by-peer', dial.address, error))
    else dial.settle(this.#host.open(dial.address, connectId))
    return true
  }

  /** The other end takes a dial back that it cannot answer. */
  closedByPeer(random: bigint): void {
    const dial = this.#pending.get(random)
    dial?.settle(new DialFailed('refused-by-peer', dial.address))
  }

  failAll(): void {
    for (const { address, settle } of this.#pending.values())
      settle(new DialFailed('link-lost', address))
  }
}
