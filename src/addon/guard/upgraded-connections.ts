import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, type Logger, longestTimerMs } from '../../core/index.ts'
import { type AddonUser, renewTunnelHeader, tunnelHeader } from '../token/claims.ts'
import { unproven } from './refusal.ts'

/** Why a tunnel was cut. */
export type TunnelEnd = 'token-expired' | 'too-old' | 'idle' | 'shutting-down'

/** How much longer than their tokens tunnels last. */
export const tunnelLeewayMs = 10_000

/** How long tunnels last. */
export interface TunnelLimits {
  readonly clock: Clock
  /** However often its token is renewed. */
  readonly maxAgeMs: number
  /** How much longer than its token it lasts, since clocks differ. */
  readonly leewayMs: number
}

interface Tunnel {
  readonly user: AddonUser
  /** On the monotonic clock. */
  readonly oldAt: number
  readonly cut: (why: TunnelEnd) => void
  timer: NodeJS.Timeout | undefined
}

/** The tunnels that are open; each ends with its token unless a fresh one comes, and at its maximum age anyway. */
export class Tunnels {
  readonly #limits: TunnelLimits
  readonly #open = new Map<string, Tunnel>()

  constructor(limits: TunnelLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size
  }

  /** Takes in a tunnel; `cut` is called at most once. Returns its name and how to say that it has ended by itself. */
  add(user: AddonUser, cut: (why: TunnelEnd) => void): { id: string; ended: () => void } {
    const id = randomBytes(16).toString('hex')
    const oldAt = this.#limits.clock.monotonic() + this.#limits.maxAgeMs
    const tunnel = { user, oldAt, cut, timer: undefined }
    this.#open.set(id, tunnel)
    this.#schedule(id, tunnel, user.expiresAt)
    return { id, ended: () => this.#remove(id) }
  }

  /** Lets a tunnel last as long as a fresh token of the same user; throws GuardRefused. */
  renew(id: string, fresh: AddonUser): void {
    const tunnel = this.#open.get(id)
    const { user, uid, audience } = tunnel?.user ?? {}
    if (!tunnel || user !== fresh.user || uid !== fresh.uid || audience !== fresh.audience)
      throw unproven('unknown-tunnel', 'there is no such tunnel of this user')
    this.#schedule(id, tunnel, fresh.expiresAt)
  }

  /** Cuts all. */
  cutAll(why: TunnelEnd): void {
    for (const [id, tunnel] of this.#open) this.#cut(id, tunnel, why)
  }

  #schedule(id: string, tunnel: Tunnel, expiresAt: number): void {
    const { clock, leewayMs } = this.#limits
    const lives = expiresAt + leewayMs - clock.now()
    const ages = tunnel.oldAt - clock.monotonic()
    const why = lives <= ages ? 'token-expired' : 'too-old'
    clearTimeout(tunnel.timer)
    const delay = Math.min(Math.max(0, Math.min(lives, ages)), longestTimerMs)
    tunnel.timer = setTimeout(() => this.#cut(id, tunnel, why), delay).unref()
  }

  #cut(id: string, tunnel: Tunnel, why: TunnelEnd): void {
    if (this.#remove(id)) tunnel.cut(why)
  }

  #remove(id: string): boolean {
    clearTimeout(this.#open.get(id)?.timer)
    return this.#open.delete(id)
  }
}

const renewName = renewTunnelHeader.toLowerCase()
const agreement = /^HTTP\/1\.1 101[^\r\n]*\r\n/

/** Connections that have left HTTP and are an application's own: they end with their token like those behind the sidecar. */
export class ApplicationTunnels {
  readonly #tunnels: Tunnels
  readonly #log: Logger

  constructor(limits: { readonly clock: Clock; readonly maxAgeMs: number }, log: Logger) {
    this.#tunnels = new Tunnels({ ...limits, leewayMs: tunnelLeewayMs })
    this.#log = log
  }

  /** Whether a request was there to renew a tunnel, and has done so; throws GuardRefused. */
  renew({ headers }: IncomingMessage, fresh: AddonUser): boolean {
    const id = headers[renewName]
    if (id === undefined) return false
    this.#tunnels.renew(String(id), fresh)
    return true
  }

  /** Cuts a connection when its token ends, unless a fresh one comes for the name that its 101 then bears. */
  follow(socket: Duplex, user: AddonUser): void {
    if (socket.destroyed) return
    const { id, ended } = this.#tunnels.add(user, (why) => {
      this.#log.info({ user: user.user, reason: why }, 'a tunnel was cut')
      socket.destroy()
    })
    socket.once('close', ended)
    nameInAgreement(socket, id)
  }

  /** Cuts all. */
  cutAll(): void {
    this.#tunnels.cutAll('shutting-down')
  }
}

/** Whether Node has taken a request's connection out of HTTP; it has not where an application has no ear for that. */
export const isUpgrade = (request: IncomingMessage): boolean =>
  'upgrade' in request && request.upgrade === true

/** The application writes its 101 itself, by whatever library: the first bytes that it writes are the place for a name. */
function nameInAgreement(socket: Duplex, id: string): void {
  const write = socket.write.bind(socket)
  let isFirst = true
  socket.write = (chunk: unknown, ...others: unknown[]): boolean => {
    const named = isFirst ? withName(chunk, id) : chunk
    isFirst = false
    return Reflect.apply(write, undefined, [named, ...others])
  }
}

function withName(chunk: unknown, id: string): unknown {
  if (typeof chunk === 'string')
    return chunk.replace(agreement, (line) => `${line}${tunnelHeader}: ${id}\r\n`)
  if (!(chunk instanceof Uint8Array)) return chunk
  const text = Buffer.from(chunk).toString('latin1')
  return agreement.test(text) ? Buffer.from(String(withName(text, id)), 'latin1') : chunk
}
