import { ClientConfigInvalid, failureText, NoAddressReachable } from './errors.ts'

/** What came of several attempts: the first that worked, or why each of them failed. */
export type Outcome<T> =
  | { readonly index: number; readonly value: T }
  | { readonly failures: readonly unknown[] }

/** How attempts take turns. */
export interface Turns<T> {
  /** How long one may take before the next is begun beside it. */
  readonly headStartMs: number
  /** Takes back what worked too late. */
  readonly undo: (late: T) => void
}

/** Makes attempts one after the other, the next already when one takes long, until one works. */
export function firstThatWorks<T>(
  attempts: readonly (() => Promise<T>)[],
  { headStartMs, undo }: Turns<T>,
): Promise<Outcome<T>> {
  const failures: unknown[] = []
  let begun = 0
  let failed = 0
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  return new Promise((resolve) => {
    const end = (outcome: Outcome<T>): void => {
      isOver = true
      clearTimeout(timer)
      resolve(outcome)
    }
    const beginNext = (): void => {
      clearTimeout(timer)
      const index = begun++
      const attempt = attempts[index]
      if (isOver || !attempt) return
      if (begun < attempts.length) timer = setTimeout(beginNext, headStartMs)
      attempt().then(
        (value) => (isOver ? undo(value) : end({ index, value })),
        (error: unknown) => {
          failures[index] = error
          failed++
          if (isOver) return
          if (failed === attempts.length) end({ failures })
          else if (begun < attempts.length) beginNext()
        },
      )
    }
    if (attempts.length === 0) end({ failures })
    else beginNext()
  })
}

/** Where an API server listens. */
export interface ServerAddress {
  /** Scheme, host and port, as a URL writes them. */
  readonly origin: string
  /** As a socket takes it: IPv6 addresses without brackets. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Goes before the path of every request; never ends in a slash. */
  readonly basePath: string
}

/** The addresses of one cluster, all of one scheme and one path. */
export function parseServers(
  servers: readonly string[],
): readonly [ServerAddress, ...ServerAddress[]] {
  const [first, ...others] = servers.map(parseServer)
  if (!first) throw new ClientConfigInvalid('a cluster needs at least one server address')
  for (const other of others)
    if (other.tls !== first.tls || other.basePath !== first.basePath)
      throw new ClientConfigInvalid(
        `the addresses of a cluster must have one scheme and one path: ${first.origin}${first.basePath} and ${other.origin}${other.basePath} differ`,
      )
  return [first, ...others]
}

function parseServer(text: string): ServerAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new ClientConfigInvalid('the address of the API server must begin with https://')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new ClientConfigInvalid(
      'the address of the API server must have no user, password, query or fragment',
    )
  const tls = url.protocol === 'https:'
  return {
    origin: url.origin,
    host: unbracketed(url.hostname),
    port: url.port === '' ? (tls ? 443 : 80) : Number(url.port),
    tls,
    basePath: url.pathname.replace(/\/+$/, ''),
  }
}

/** A URL writes IPv6 addresses in brackets, a socket does not. */
export const unbracketed = (host: string): string => host.replace(/^\[|\]$/g, '')

/** Host and port as the line of a request writes them. */
export const authority = ({ host, port }: Pick<ServerAddress, 'host' | 'port'>): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

type Addresses = readonly [ServerAddress, ...ServerAddress[]]

/** An address that does not answer at all must not hold up the others for as long as it may take. */
const headStartMs = 2_000

/** The addresses of one cluster: the one that answered last is asked first, the others stand by. */
export class AddressSet {
  #all: Addresses
  #good = 0

  constructor(all: Addresses) {
    this.#all = all
  }

  get all(): Addresses {
    return this.#all
  }

  /** Takes other addresses from now on, of the same scheme and path; the one that answered last still goes first. */
  replace(servers: readonly string[]): void {
    const [first] = this.#all
    const [, ...next] = parseServers([first.origin + first.basePath, ...servers])
    const [head, ...others] = next
    if (!head) return
    const good = this.#all[this.#good]?.origin
    this.#all = [head, ...others]
    this.#good = Math.max(
      this.#all.findIndex(({ origin }) => origin === good),
      0,
    )
  }

  /** The first connection that can be made; names each address and its failure when none can. */
  async connect<T extends { destroy(): unknown }>(
    dial: (address: ServerAddress) => Promise<T>,
  ): Promise<T> {
    const all = this.#all
    if (all.length === 1) return dial(all[0])
    const inTurn = [...all.slice(this.#good), ...all.slice(0, this.#good)]
    const outcome = await firstThatWorks(
      inTurn.map((address) => () => dial(address)),
      { headStartMs, undo: (late) => void late.destroy() },
    )
    if ('value' in outcome) {
      this.#good = Math.max(this.#all.indexOf(inTurn[outcome.index] ?? all[0]), 0)
      return outcome.value
    }
    const failures = inTurn.map(({ origin }, index) => ({
      address: origin,
      cause: outcome.failures[index],
    }))
    const reasons = failures.map(({ address, cause }) => `${address}: ${failureText(cause)}`)
    throw new NoAddressReachable(
      `none of the ${all.length} addresses of the cluster can be reached: ${reasons.join('; ')}`,
      failures,
    )
  }
}
