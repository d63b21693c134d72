import type { Socket } from 'node:net'
import {
  type Clock,
  type ClusterView,
  isRecord,
  type Logger,
  longestTimerMs,
  quotePeer,
  SallyportError,
  type UserInfo,
  withinTime,
} from '../../core/index.ts'
import type { Metadata } from '../../grpc/index.ts'
import { plainAddress } from '../addresses/source.ts'
import { AgentRefused, AgentUnjudged } from './agent-registry.ts'

/** Which tokens are an agent's. */
export interface TokenCheckParts {
  readonly view: ClusterView
  readonly namespace: string
  readonly serviceAccount: string
  readonly audience: string
}

/** Lets an agent in and returns its user, or throws AgentRefused. */
export type AgentCheck = (metadata: Metadata, signal: AbortSignal) => Promise<UserInfo>

/** What a refused agent hears, whatever was wrong: the log has the rest. */
const heard = 'the agent could not be authenticated'
const refused = (detail: string): AgentRefused => new AgentRefused(heard, { detail })

const scheme = 'Bearer '

/** A check of service-account tokens by TokenReview; throws AgentUnjudged when there is no review. */
export function createTokenCheck(parts: TokenCheckParts): AgentCheck {
  const expected = `system:serviceaccount:${parts.namespace}:${parts.serviceAccount}`
  return async (metadata, signal) => {
    const status = await review(parts, bearerIn(metadata), signal)
    if (status['error'] !== undefined && status['error'] !== '') {
      const error = typeof status['error'] === 'string' ? status['error'] : 'unknown error'
      throw refused(`the token review failed: ${quotePeer(error)}`)
    }
    if (status['authenticated'] !== true) throw refused('the token is not authentic')
    // A reviewer that knows no audiences has not checked ours.
    const audiences = Array.isArray(status['audiences']) ? status['audiences'] : []
    if (!audiences.includes(parts.audience)) {
      throw refused(`the token was not found good for the audience ${parts.audience}`)
    }
    const user = userIn(status['user'])
    if (user.username !== expected) {
      throw refused(`the token is of ${quotePeer(user.username)}, not of ${expected}`)
    }
    return user
  }
}

/** The user of a review; what is not as it should be is left out. */
function userIn(value: unknown): UserInfo {
  const { username, groups, extra } = isRecord(value) ? value : {}
  const texts = (list: unknown): string[] =>
    Array.isArray(list) ? list.filter((each) => typeof each === 'string') : []
  return {
    username: typeof username === 'string' ? username : '',
    groups: texts(groups),
    ...(isRecord(extra) && {
      extra: Object.fromEntries(Object.entries(extra).map(([key, list]) => [key, texts(list)])),
    }),
  }
}

/** The token in an agent's metadata; throws AgentRefused. */
function bearerIn(metadata: Metadata): string {
  const values = metadata['authorization'] ?? []
  const [value] = values
  if (value === undefined) throw refused('there is no authorization in the metadata')
  if (values.length > 1) throw refused('there is more than one authorization in the metadata')
  if (!value.startsWith(scheme)) throw refused('the authorization is no Bearer token')
  const token = value.slice(scheme.length)
  if (token === '') throw refused('the Bearer token is empty')
  return token
}

async function review(
  { view, audience }: TokenCheckParts,
  token: string,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const question = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, audiences: [audience] },
  }
  try {
    const { status } = await view.review('TokenReview', question, signal)
    return isRecord(status) ? status : {}
  } catch (error) {
    const why = error instanceof SallyportError ? error.message : 'unexpected failure'
    const detail = `the token could not be reviewed: ${why}`
    throw new AgentUnjudged(heard, { detail, cause: error })
  }
}

/** How tokens of connected agents are watched. */
export interface TokenWatchParts {
  readonly check: (...request: Parameters<AgentCheck>) => Promise<unknown>
  readonly everyMs: number
  /** Whether a token's end is its connection's. */
  readonly cutsExpired: boolean
  readonly clock: Clock
  readonly log: Logger
}

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
