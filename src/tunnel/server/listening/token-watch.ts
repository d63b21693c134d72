import type { Socket } from 'node:net'
import {
  type Clock,
  isRecord,
  type Logger,
  longestTimerMs,
  withinTime,
} from '../../../core/index.ts'
import { plainAddress } from '../../addresses/index.ts'
import type { LinkRequest } from '../../grpc/index.ts'
import { AgentRefused, AgentUnjudged } from '../errors.ts'
import { type AgentCheck, bearerIn } from '../token-check.ts'

/** How tokens of connected agents are watched. */
export interface TokenWatchParts {
  readonly check: AgentCheck
  readonly everyMs: number
  /** Whether a token's end is its connection's. */
  readonly cutsExpired: boolean
  readonly clock: Clock
  readonly log: Logger
}

type Metadata = LinkRequest['metadata']

interface Watched {
  readonly metadata: Metadata
  /** On the clock; nothing if the token does not say. */
  readonly expiresAt: number | undefined
  /** On the monotonic clock. */
  readonly judgedAt: number
}

const answerMs = 10_000
/** After a token's end, and while nobody can be asked. */
const soonMs = 30_000
/** So many periods without a judgement are borne. */
const patience = 3
/** A token is over behind its last second, not within it. */
const behindEndMs = 1_000
/** So near its end a token may be over for the cluster, whose clock is another. */
const nearEndMs = 60_000

/** Reviews the tokens of connected agents again, and cuts those whose token is no longer good. */
export class TokenWatch {
  readonly #parts: TokenWatchParts
  /** The newest token of each connection. */
  readonly #watched = new WeakMap<Socket, Watched>()
  readonly #timers = new WeakMap<Socket, NodeJS.Timeout>()

  constructor(parts: TokenWatchParts) {
    this.#parts = parts
  }

  /** Watches the token by which a connection was let in just now. */
  follow(socket: Socket, metadata: Metadata): void {
    if (socket.destroyed) return
    if (!this.#watched.has(socket)) {
      socket.once('close', () => clearTimeout(this.#timers.get(socket)))
    }
    this.#judged(socket, { metadata, expiresAt: expiryIn(metadata) })
  }

  #judged(socket: Socket, token: Pick<Watched, 'metadata' | 'expiresAt'>): void {
    const { clock, everyMs } = this.#parts
    const watched = { ...token, judgedAt: clock.monotonic() }
    this.#watched.set(socket, watched)
    this.#schedule(socket, Math.min(spread(everyMs), this.#untilEnd(token)))
  }

  #untilEnd({ expiresAt = Number.POSITIVE_INFINITY }: Pick<Watched, 'expiresAt'>): number {
    const left = expiresAt - this.#parts.clock.now()
    return left > 0 ? left + behindEndMs : soonMs
  }

  /** An agent sends no other token on its connection, and every hour all that goes through it would break off. */
  #isSpared({ expiresAt = Number.POSITIVE_INFINITY }: Watched): boolean {
    const { clock, cutsExpired } = this.#parts
    return !cutsExpired && expiresAt - clock.now() < nearEndMs
  }

  #schedule(socket: Socket, delayMs: number): void {
    clearTimeout(this.#timers.get(socket))
    const look = (): void => void this.#review(socket)
    this.#timers.set(socket, setTimeout(look, Math.min(delayMs, longestTimerMs)).unref())
  }

  async #review(socket: Socket): Promise<void> {
    const watched = this.#watched.get(socket)
    if (!watched || socket.destroyed || this.#isSpared(watched)) return
    const gone = new AbortController()
    const leave = (): void => gone.abort()
    socket.once('close', leave)
    try {
      await withinTime(answerMs, gone.signal, (signal) =>
        this.#parts.check(watched.metadata, signal),
      )
      // Another stream may have brought a newer token meanwhile.
      if (this.#watched.get(socket) === watched) this.#judged(socket, watched)
    } catch (error) {
      if (!socket.destroyed && !this.#isSpared(watched)) this.#unproven(socket, watched, error)
    } finally {
      socket.off('close', leave)
    }
  }

  #unproven(socket: Socket, { judgedAt }: Watched, error: unknown): void {
    const { clock, everyMs, log } = this.#parts
    const isJudged = error instanceof AgentRefused && !(error instanceof AgentUnjudged)
    const why = (error instanceof AgentRefused && error.detail) || 'the review failed'
    const from = plainAddress(socket.remoteAddress)
    const silentMs = clock.monotonic() - judgedAt
    if (isJudged || silentMs >= patience * everyMs) {
      log.warn({ from, why }, 'a connection is cut')
      socket.destroy(new AgentRefused('the token of the agent is no longer good', { detail: why }))
      return
    }
    const keptMs = Math.round(patience * everyMs - silentMs)
    log.warn({ from, why, keptMs }, 'the token of a connected agent cannot be judged')
    this.#schedule(socket, Math.min(spread(everyMs), soonMs, keptMs))
  }
}

/** Agents that came at once are not asked about at once. */
const spread = (ms: number): number => ms * (0.8 + 0.4 * Math.random())

/** Only decides when to ask; whether the token is good is for the cluster to say. */
function expiryIn(metadata: Metadata): number | undefined {
  try {
    const [, payload = ''] = bearerIn(metadata).split('.')
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const end = isRecord(claims) ? claims['exp'] : undefined
    return typeof end === 'number' ? end * 1_000 : undefined
  } catch {
    return undefined
  }
}
