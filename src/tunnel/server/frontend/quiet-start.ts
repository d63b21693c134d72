import type { Duplex } from 'node:stream'
import { HeldChunks } from '../../../core/index.ts'
import { type Leg, type LegEvents, socketLeg } from '../../link/index.ts'

/**
 * A leg on a client's socket that holds back what is written until the client has spoken, or for
 * `forMs` at most. kube-apiserver gives up a connection when bytes of the target arrive together with
 * the answer to CONNECT; whoever speaks first has read that answer.
 */
export function quietStart(socket: Duplex, forMs: number): Leg {
  return new QuietStart(socket, forMs)
}

class QuietStart implements Leg {
  readonly #socket: Duplex
  readonly #leg: Leg
  readonly #forMs: number
  #held: HeldChunks | undefined = new HeldChunks()
  #finishes = false
  #timer: NodeJS.Timeout | undefined

  constructor(socket: Duplex, forMs: number) {
    this.#socket = socket
    this.#leg = socketLeg(socket)
    this.#forMs = forMs
  }

  get backlog(): number {
    return (this.#held?.bytes ?? 0) + this.#leg.backlog
  }

  start(events: LegEvents): void {
    this.#timer = setTimeout(() => this.#release(), this.#forMs)
    this.#leg.start({
      data: (chunk) => {
        if (this.#held) this.#release()
        events.data(chunk)
      },
      finished: () => events.finished(),
      drained: () => events.drained(),
      closed: (error) => {
        clearTimeout(this.#timer)
        events.closed(error)
      },
    })
  }

  write(chunk: Buffer): void {
    if (!this.#held) {
      this.#leg.write(chunk)
      return
    }
    this.#held.push(chunk)
  }

  consumed(bytes: number): void {
    this.#leg.consumed(bytes)
  }

  finish(): void {
    if (this.#held) this.#finishes = true
    else this.#leg.finish()
  }

  close(error?: Error): void {
    // Neither a unix socket nor TLS has a reset; an end without TLS's own close says as much.
    if (error) this.#socket.destroy()
    else {
      this.#release()
      this.#leg.close()
    }
    clearTimeout(this.#timer)
  }

  #release(): void {
    clearTimeout(this.#timer)
    const held = this.#held
    if (!held) return
    this.#held = undefined
    for (const chunk of held.take()) this.#leg.write(chunk)
    if (this.#finishes) this.#leg.finish()
  }
}
