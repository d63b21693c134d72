import { randomFillSync } from 'node:crypto'
import { SallyportError } from '../../core/index.ts'
import type { DialRequest, DialResponse } from '../protocol/index.ts'
import type { Channel, DialFailureReason, IncomingDial } from './link.ts'

/** What incoming dials need of the link. */
export interface IncomingDialHost {
  /** Responds that the target is connected. */
  accept(dial: DialRequest): Channel
  /** Responds that it is not. */
  refuse(dial: DialRequest, text: string): void
}

class PendingIncomingDial implements IncomingDial {
  readonly #request: DialRequest
  readonly #abort = new AbortController()
  readonly #respond: (act: () => void) => void
  readonly #host: IncomingDialHost

  constructor(request: DialRequest, host: IncomingDialHost, respond: (act: () => void) => void) {
    this.#request = request
    this.#host = host
    this.#respond = respond
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
    this.#respond(() => {
      channel = this.#host.accept(this.#request)
    })
    return channel
  }

  refuse(text: string): void {
    this.#respond(() => this.#host.refuse(this.#request, text))
  }

  cancel(): void {
    this.#abort.abort()
  }
}

/** Dials of the peer that wait for our response. */
export class IncomingDials {
  readonly #host: IncomingDialHost
  readonly #pending = new Map<bigint, PendingIncomingDial>()

  constructor(host: IncomingDialHost) {
    this.#host = host
  }

  get count(): number {
    return this.#pending.size
  }

  /** Returns undefined if there is a dial with the same `random`. */
  add(request: DialRequest): IncomingDial | undefined {
    const { random } = request
    if (this.#pending.has(random)) return undefined
    const dial = new PendingIncomingDial(request, this.#host, (act) => {
      if (this.#pending.get(random) !== dial) return
      this.#pending.delete(random)
      act()
    })
    this.#pending.set(random, dial)
    return dial
  }

  /** The peer has cancelled a dial: returns whether it was known. */
  cancel(random: bigint): boolean {
    const dial = this.#pending.get(random)
    this.#pending.delete(random)
    dial?.cancel()
    return dial !== undefined
  }

  cancelAll(): void {
    const dials = [...this.#pending.values()]
    this.#pending.clear()
    for (const dial of dials) dial.cancel()
  }
}

const defaultTexts: Record<DialFailureReason, string> = {
  'refused-by-peer': 'peer could not connect',
  'link-lost': 'link to the peer was lost',
  timeout: 'peer did not respond in time',
  cancelled: 'dial was cancelled',
}

/** A dial through a link failed. */
export class DialFailed extends SallyportError {
  readonly code = 'TUNNEL_DIAL_FAILED'
  readonly reason: DialFailureReason
  /** The error of the peer, or ours where it sent none. */
  readonly text: string

  constructor(reason: DialFailureReason, address: string, text: string = defaultTexts[reason]) {
    super(`cannot reach ${address} through the tunnel: ${text}`)
    this.reason = reason
    this.text = text
  }
}

interface PendingDial {
  readonly address: string
  readonly settle: (outcome: Channel | DialFailed) => void
}

/** What outgoing dials need of the link. */
export interface DialHost {
  request(random: bigint, address: string): void
  cancel(random: bigint): void
  /** Creates the channel of a dial that succeeded. */
  open(address: string, connectId: number): Channel
}

/** Random bytes in advance: a call for each dial would cost more than the packet. */
const pool = Buffer.alloc(4096)
let used = pool.length

/** 63 random bits, as in Konnectivity. */
function newRandom(): bigint {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.readBigUInt64BE(used) >> 1n
  used += 8
  return random
}

/** Our dials that wait for the response of the peer. */
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
      const fail = (reason: 'cancelled' | 'timeout'): void => {
        this.#host.cancel(random)
        settle(new DialFailed(reason, address))
      }
      const cancel = (): void => fail('cancelled')
      const timer = setTimeout(() => fail('timeout'), deadlineMs)
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

  /** A response has arrived: returns whether its dial was still pending. */
  responded({ random, error, connectId }: DialResponse): boolean {
    const dial = this.#pending.get(random)
    if (!dial) return false
    if (error !== '') dial.settle(new DialFailed('refused-by-peer', dial.address, error))
    else dial.settle(this.#host.open(dial.address, connectId))
    return true
  }

  /** The peer has cancelled a dial that it cannot serve. */
  closedByPeer(random: bigint): void {
    const dial = this.#pending.get(random)
    dial?.settle(new DialFailed('refused-by-peer', dial.address))
  }

  failAll(): void {
    for (const { address, settle } of this.#pending.values())
      settle(new DialFailed('link-lost', address))
  }
}
