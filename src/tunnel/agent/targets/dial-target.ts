import { lookup } from 'node:dns/promises'
import { isIP, type Socket } from 'node:net'
import { parseHostPort } from '../../addresses/index.ts'
import { raceAddresses } from './address-race.ts'
import { badAddress, lookupFailure, timeoutFailure } from './go-dial-error.ts'
import type { Slots } from './slots.ts'

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
