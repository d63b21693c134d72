import { lookup } from 'node:dns/promises'
import { connect, isIP, isIPv6, type Socket } from 'node:net'
import { isPlatformAddress } from '../../../http/index.ts'
import { parseHostPort, showHostPort } from '../../addresses.ts'
import {
  badAddress,
  connectFailure,
  forbiddenAddress,
  lookupFailure,
  timeoutFailure,
} from './dial-errors.ts'
import type { Slots } from './slots.ts'

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
function raceAddresses(
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

/** All addresses of a name, in the order in which the system prefers them. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** Asks the operating system, which knows `/etc/hosts` as well. */
export const systemResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, order: 'verbatim' })
  return found.map(({ address }) => address)
}

/** How a target is dialled. */
export interface DialOptions {
  /** Aborts when nobody waits for the connection any more. */
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly resolve: Resolve
  /** Places for connections in the making; waiting for one counts as dialling. */
  readonly slots: Slots
}

/** Opens a TCP connection to `host:port`; rejects with TargetUnreachable, or with the signal's reason. */
export async function dialTarget(address: string, options: DialOptions): Promise<Socket> {
  const target = parseHostPort(address)
  if (!target) throw badAddress(address)
  const giveUp = new AbortController()
  const cancel = (): void => giveUp.abort(options.signal.reason)
  options.signal.addEventListener('abort', cancel, { once: true })
  const timer = setTimeout(() => giveUp.abort(timeoutFailure(address)), options.timeoutMs)
  try {
    options.signal.throwIfAborted()
    await options.slots.take(giveUp.signal)
    try {
      const addresses = await addressesOf(target.host, options.resolve, giveUp.signal)
      // The addresses that are dialed, and not the name: it may resolve to another one by now.
      if (addresses.some(isPlatformAddress)) throw forbiddenAddress(address)
      return await raceAddresses(addresses, target.port, giveUp.signal)
    } finally {
      options.slots.release()
    }
  } finally {
    clearTimeout(timer)
    options.signal.removeEventListener('abort', cancel)
  }
}

async function addressesOf(
  host: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  signal.throwIfAborted()
  let stop: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    // A lookup cannot be cancelled, but nobody has to wait for it.
    const found = await Promise.race([resolve(host).catch((cause) => cause as Error), aborted])
    if (found instanceof Error) throw lookupFailure(host, found)
    return found
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
  }
}
