import { connect, isIPv6, type Socket } from 'node:net'
import { showHostPort } from '../../addresses/index.ts'
import { connectFailure } from './go-dial-error.ts'

/** After this time without an answer the next address is tried as well (RFC 8305 §5). */
const nextAttemptMs = 250
const tcpKeepAliveMs = 30_000

/** Addresses with the families taking turns, the first one's family first. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const [first] = addresses
  if (first === undefined) return []
  const same = addresses.filter((address) => isIPv6(address) === isIPv6(first))
  const other = addresses.filter((address) => isIPv6(address) !== isIPv6(first))
  return same
    .flatMap((address, index) => [address, ...other.slice(index, index + 1)])
    .concat(other.slice(same.length))
}

/** Connects to whichever of the addresses answers first; rejects with the first failure when none does. */
export function raceAddresses(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const race = new AddressRace(alternateFamilies(addresses), port, {
      won: (socket) => {
        signal.removeEventListener('abort', abort)
        resolve(socket)
      },
      lost: (error) => {
        signal.removeEventListener('abort', abort)
        reject(error)
      },
    })
    const abort = (): void => race.cancel(signal.reason)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    race.tryNext()
  })
}

interface Outcome {
  won(socket: Socket): void
  lost(error: unknown): void
}

class AddressRace {
  readonly #waiting: string[]
  readonly #port: number
  readonly #outcome: Outcome
  readonly #attempts = new Set<Socket>()
  #timer: NodeJS.Timeout | undefined
  #firstFailure: unknown

  constructor(addresses: string[], port: number, outcome: Outcome) {
    this.#waiting = addresses
    this.#port = port
    this.#outcome = outcome
  }

  tryNext(): void {
    clearTimeout(this.#timer)
    const host = this.#waiting.shift()
    if (host === undefined) return
    const socket = connect({
      host,
      port: this.#port,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: tcpKeepAliveMs,
    })
    this.#attempts.add(socket)
    socket.once('error', (cause) => this.#failed(socket, host, cause))
    socket.once('connect', () => this.#won(socket))
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.tryNext(), nextAttemptMs)
  }

  cancel(reason: unknown): void {
    this.#end()
    this.#outcome.lost(reason)
  }

  #failed(socket: Socket, host: string, cause: Error): void {
    if (!this.#attempts.delete(socket)) return
    this.#firstFailure ??= connectFailure(showHostPort({ host, port: this.#port }), cause)
    if (this.#waiting.length > 0) this.tryNext()
    else if (this.#attempts.size === 0) this.#outcome.lost(this.#firstFailure)
  }

  #won(socket: Socket): void {
    this.#attempts.delete(socket)
    // It may be reset before whoever waits for it has had a turn: that must not go unheard.
    socket.on('error', () => {})
    this.#end()
    this.#outcome.won(socket)
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#waiting.length = 0
    for (const socket of this.#attempts) {
      socket.removeAllListeners('connect').removeAllListeners('error')
      socket.on('error', () => {}) // its outcome is of no interest any more
      socket.destroy()
    }
    this.#attempts.clear()
  }
}
