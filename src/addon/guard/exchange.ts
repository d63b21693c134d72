import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock, Logger } from '../../core/index.ts'
import { type BodyProblem, discardUnreadBody, watchBody } from '../../http/index.ts'
import { type AddonUser, renewTunnelHeader } from '../token/claims.ts'
import type { AccessLog } from './access-log.ts'
import { authenticate, type Proof } from './authenticate.ts'
import { forward } from './forward.ts'
import { forwardUpgrade } from './forward-upgrade.ts'
import { type IdentityOutput, identityHeaders } from './identity-output.ts'
import type { GuardMetrics } from './metrics.ts'
import { type HeaderRules, readRequest } from './read-request.ts'
import { GuardRefused, malformed, refusalBody, refusalHeaders, refusalText } from './refusal.ts'
import { protocolOf } from './upgrade-protocol.ts'
import type { Tunnels } from './upgraded-connections.ts'
import type { Upstream } from './upstream.ts'

/** How long requests may take. */
interface ExchangeLimits {
  /** From its head to the end of its answer. */
  readonly maxRequestMs: number
  readonly tunnelIdleMs: number
  readonly bodyIdleMs: number
  readonly lingerMs: number
}

/** What the exchanges of one port share. */
export interface ExchangeParts {
  readonly upstream: Upstream
  readonly port: number
  readonly proof: Proof
  readonly rules: HeaderRules
  readonly output: IdentityOutput
  readonly tunnels: Tunnels
  /** Connections on which no token was accepted yet. */
  readonly unauthenticated: Set<object>
  readonly limits: ExchangeLimits
  readonly metrics: GuardMetrics
  readonly accessLog: AccessLog
  readonly clock: Clock
  readonly log: Logger
}

const renewName = renewTunnelHeader.toLowerCase()

/** Judges the requests of one port and sends on those of known users. */
export class Exchanges {
  readonly #parts: ExchangeParts
  readonly #identities = new WeakMap<AddonUser, readonly string[]>()
  /** Connections with a request that could be read in two ways: what follows on them is not read. */
  readonly #condemned = new WeakSet<object>()
  /** The newest answer of each connection: answers leave in the order of their requests. */
  readonly #answering = new WeakMap<object, ServerResponse>()

  constructor(parts: ExchangeParts) {
    this.#parts = parts
  }

  /** Answers one request; never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#condemned.has(request.socket)) return
    this.#answering.set(request.socket, response)
    const story = this.#begin(request, response)
    try {
      // Nothing is awaited before this: a request in the same packet is already at the door.
      const read = readRequest(request, this.#parts.rules)
      if (read.isChunked || read.hasLength)
        watchBody(request, this.#parts.limits, (problem) =>
          this.#refuse(request, response, bodyRefusals[problem], story),
        )
      const found = authenticate(read.authorization, this.#parts.proof)
      const user = found instanceof Promise ? await found : found
      this.#parts.unauthenticated.delete(request.socket)
      story.user = user
      if (request.headers[renewName] !== undefined) {
        this.#parts.tunnels.renew(String(request.headers[renewName]), user)
        response.writeHead(204).end()
        return
      }
      const { upstream } = this.#parts
      const identity = this.#identityOf(user)
      const { lingerMs } = this.#parts.limits
      await forward({ upstream, request, response, read, identity, lingerMs })
    } catch (error) {
      this.#refuse(request, response, error, story)
    }
  }

  /** Answers a request for another protocol; never rejects. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { log, limits, upstream, tunnels, clock } = this.#parts
    // Node stops listening here, and an error that nobody listens to would end the process.
    socket.on('error', (err) => log.debug({ err }, 'upgraded connection failed'))
    if (this.#condemned.has(request.socket)) return
    if (this.#answering.get(request.socket)?.writableFinished === false) {
      // Its answer would be taken for that of the request before it.
      socket.destroy()
      return
    }
    const story: Story = { began: clock.monotonic(), reason: 'ok' }
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(tooOld()), limits.maxRequestMs)
    socket.once('close', () => clearTimeout(timer))
    try {
      const read = readRequest(request, this.#parts.rules)
      const protocol = protocolOf(request)
      const user = await authenticate(read.authorization, this.#parts.proof)
      this.#parts.unauthenticated.delete(request.socket)
      story.user = user
      const identity = this.#identityOf(user)
      const idleMs = limits.tunnelIdleMs
      const shared = { upstream, tunnels, request, socket, head, idleMs, late: late.signal }
      const { status, why } = await forwardUpgrade({ ...shared, protocol, read, user, identity })
      this.#note(request, status, { ...story, reason: why === 'closed' ? 'ok' : why })
    } catch (error) {
      const refusal = this.#toRefusal(error)
      this.#condemned.add(request.socket)
      socket.end(refusalText(refusal), () => socket.destroy())
      this.#note(request, refusal.status, { ...story, reason: refusal.reason })
    }
  }

  #begin(request: IncomingMessage, response: ServerResponse): Story {
    const { limits, clock } = this.#parts
    const story: Story = { began: clock.monotonic(), reason: 'ok' }
    const timer = setTimeout(() => {
      story.reason = 'too-old'
      if (response.headersSent) response.destroy()
      else this.#refuse(request, response, tooOld(), story)
    }, limits.maxRequestMs)
    response.once('close', () => {
      clearTimeout(timer)
      if (story.reason === 'ok' && !response.writableFinished) story.reason = 'broken-off'
      this.#note(request, response.statusCode, story)
    })
    return story
  }

  #identityOf(user: AddonUser): readonly string[] {
    const known = this.#identities.get(user)
    if (known) return known
    const identity = identityHeaders(user, this.#parts.output)
    this.#identities.set(user, identity)
    return identity
  }

  #refuse(request: IncomingMessage, response: ServerResponse, error: unknown, story: Story): void {
    const refusal = this.#toRefusal(error)
    story.reason = refusal.reason
    if (refusal.isMalformed) this.#condemned.add(request.socket)
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const body = refusalBody(refusal)
    response.once('finish', () => discardUnreadBody(request, response, this.#parts.limits.lingerMs))
    response.writeHead(refusal.status, {
      ...refusalHeaders(refusal, body),
      ...(refusal.isMalformed && { Connection: 'close' }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  #toRefusal(error: unknown): GuardRefused {
    if (error instanceof GuardRefused) return error
    this.#parts.log.error({ err: error }, 'a request failed')
    return new GuardRefused(500, 'internal-error', 'the request could not be handled')
  }

  #note(request: IncomingMessage, status: number, story: Story): void {
    const { metrics, accessLog, clock, port } = this.#parts
    const durationMs = clock.monotonic() - story.began
    const { reason, user } = story
    metrics.note(status, reason, durationMs)
    const { method = '', url = '', socket } = request
    const auditId = user && (user.auditId ?? auditIdOf(request))
    accessLog.note({
      method,
      url,
      status,
      reason,
      durationMs,
      remote: socket.remoteAddress,
      port,
      ...(user && { user }),
      ...(auditId !== undefined && { auditId }),
    })
  }
}

/** What the API server calls the request; a token that several requests share does not say it. */
function auditIdOf({ headers }: IncomingMessage): string | undefined {
  const said = headers['audit-id']
  return typeof said === 'string' && /^[\w-]{1,64}$/.test(said) ? said : undefined
}

/** What is known of a request so far. */
interface Story {
  readonly began: number
  reason: string
  user?: AddonUser
}

const bodyRefusals: Readonly<Record<BodyProblem, GuardRefused>> = {
  overhead: malformed('the chunks of the body have more extensions than data'),
  stalled: new GuardRefused(408, 'body-too-slow', 'the body of the request came too slowly'),
}

const tooOld = (): GuardRefused =>
  new GuardRefused(504, 'too-old', 'the request took longer than requests may')
