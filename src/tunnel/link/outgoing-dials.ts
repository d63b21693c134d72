import { randomFillSync } from 'node:crypto'
import type { DialResponse } from '../protocol/index.ts'
import { DialFailed } from './dial-failed.ts'
import type { Channel } from './link.ts'

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
