import { type Clock, excerpt, type Logger } from '../../../core/index.ts'
import { type IncomingDial, join, socketStream } from '../../link/index.ts'
import type { Activity } from '../activity.ts'
import type { AgentMetrics } from '../metrics.ts'
import { TargetUnreachable } from './dial-errors.ts'
import { dialTarget, type Resolve } from './dial-target.ts'
import type { Slots } from './slots.ts'

/** Konnectivity's agents give a target this long. */
const targetDialMs = 5_000

/** What the serving of dials needs. */
export interface DialServerParts {
  readonly slots: Slots
  readonly resolve: Resolve
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly log: Logger
  /** Everything that must not be cut off lightly: dials and connections. */
  readonly activity: Activity
  /** How long a target has to answer. */
  readonly timeoutMs?: number
}

/** Connects to what the servers ask for. */
export class DialServer {
  readonly #parts: DialServerParts
  #open = 0

  constructor(parts: DialServerParts) {
    this.#parts = parts
  }

  /** Connections to targets that are open. */
  get openConnections(): number {
    return this.#open
  }

  /** Answers one dial and carries its bytes; never throws. */
  serve(dial: IncomingDial): void {
    const { activity, log } = this.#parts
    activity.begin()
    this.#serve(dial)
      .catch((err: unknown) =>
        log.error({ err, address: excerpt(dial.address) }, 'serving a dial failed'),
      )
      .finally(() => activity.end())
  }

  async #serve(dial: IncomingDial): Promise<void> {
    if (dial.protocol !== 'tcp') {
      const network = excerpt(dial.protocol)
      dial.refuse(`dial ${network}: unknown network ${network}`)
      return
    }
    const { clock, metrics, resolve, slots, timeoutMs = targetDialMs } = this.#parts
    const began = clock.monotonic()
    const { signal } = dial
    const socket = await dialTarget(dial.address, { signal, timeoutMs, resolve, slots }).catch(
      (error: unknown) => this.#failed(dial, error),
    )
    if (!socket) return
    metrics.dialled((clock.monotonic() - began) / 1_000)
    const stream = socketStream(socket)
    const channel = dial.accept()
    if (!channel) {
      socket.destroy()
      return
    }
    this.#open++
    await join(channel, stream).finally(() => this.#open--)
  }

  #failed(dial: IncomingDial, error: unknown): undefined {
    // Whoever gave up wants no answer.
    if (dial.signal.aborted) return
    const known = error instanceof TargetUnreachable ? error : undefined
    this.#parts.metrics.dialFailed(known?.isTimeout ? 'timeout' : 'unknown')
    this.#parts.log.debug(
      { err: error, address: excerpt(dial.address) },
      'cannot connect to a target',
    )
    dial.refuse(known?.message ?? 'dial tcp: internal error')
  }
}
