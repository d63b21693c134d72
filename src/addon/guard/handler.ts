import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock, Logger } from '../../core/index.ts'
import {
  type ForwardPolicy,
  forward,
  forwardUpgrade,
  type UpgradeResult,
} from '../../http/forward/index.ts'
import {
  type BodyProblem,
  discardUnreadBody,
  type UpgradingClient,
  upgradingClient,
  watchBody,
  withoutHeaders,
} from '../../http/index.ts'
import type { Upstream } from '../../http/upstream/index.ts'
import { type AddonUser, renewTunnelHeader, tunnelHeader } from '../token/claims.ts'
import type { AccessLog } from './access-log.ts'
import { authenticate, type Proof } from './authenticate.ts'
import { type IdentityOutput, identityHeaders } from './identity-output.ts'
import type { GuardMetrics } from './metrics.ts'
import { type GuardedRequest, type HeaderRules, protocolOf, readRequest } from './read-request.ts'
import { GuardRefused, malformed, refusalBody, refusalHeaders } from './refusal.ts'
import type { TunnelEnd, Tunnels } from './upgraded-connections.ts'
import { forwardPolicy } from './upstream.ts'

/** How long requests may take. */
interface HandlerLimits {
  /** From its head to the end of its response. */
  readonly maxRequestMs: number
  readonly tunnelIdleMs: number
  readonly bodyIdleMs: number
  readonly lingerMs: number
}

/** What the requests of one port share. */
export interface HandlerDeps {
  readonly upstream: Upstream
  readonly port: number
  readonly proof: Proof
  readonly rules: HeaderRules
  readonly output: IdentityOutput
  readonly tunnels: Tunnels
  /** Connections on which no token was accepted yet. */
  readonly unauthenticated: Set<object>
  readonly limits: HandlerLimits
  readonly metrics: GuardMetrics
  readonly accessLog: AccessLog
  readonly clock: Clock
  readonly log: Logger
}

const renewName = renewTunnelHeader.toLowerCase()

/** Authenticates the requests of one port and forwards those of known users. */
export class GuardHandler {
  readonly #deps: HandlerDeps
  readonly #identities = new WeakMap<AddonUser, readonly string[]>()
  /** Connections on which a malformed request was seen. Later requests on them are ignored. */
  readonly #poisoned = new WeakSet<object>()
  /** The newest response of each connection: responses are sent in the order of their requests. */
  readonly #responding = new WeakMap<object, ServerResponse>()

  constructor(deps: HandlerDeps) {
    this.#deps = deps
  }

  /** Responds to one request; never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#poisoned.has(request.socket)) return
    this.#responding.set(request.socket, response)
    const record = this.#begin(request, response)
    const { rules, limits, upstream, tunnels } = this.#deps
    try {
      // Nothing is awaited before this: a request in the same packet is already being parsed.
      const read = readRequest(request, rules)
      if (read.hasBody)
        watchBody(request, limits, (problem) => {
          this.#refuse(request, response, bodyRefusals[problem], record)
        })
      const found = this.#authenticate(request, read, record)
      const user = found instanceof Promise ? await found : found
      if (request.headers[renewName] !== undefined) {
        tunnels.renew(String(request.headers[renewName]), user)
        response.writeHead(204).end()
        return
      }
      await forward(request, response, {
        upstream,
        path: request.url ?? '/',
        headers: this.#withIdentity(read, user),
        policy: forwardPolicy,
        lingerMs: limits.lingerMs,
      })
    } catch (error) {
      this.#refuse(request, response, error, record)
    }
  }

  /** Responds to a request for another protocol; never rejects. */
  async upgrade(request: IncomingMessage, head: Buffer): Promise<void> {
    const { log, limits, rules, clock } = this.#deps
    const { socket } = request
    // Node stops listening here, and an error without a listener would end the process.
    socket.on('error', (err) => log.debug({ err }, 'upgraded connection failed'))
    if (this.#poisoned.has(socket)) return
    if (this.#responding.get(socket)?.writableFinished === false) {
      // Its response would be taken for that of the request before it.
      socket.destroy()
      return
    }
    const client = upgradingClient(request, head)
    const record: RequestRecord = { began: clock.monotonic(), reason: 'ok' }
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(tooOld()), limits.maxRequestMs)
    socket.once('close', () => clearTimeout(timer))
    try {
      const read = readRequest(request, rules)
      const protocol = protocolOf(request)
      const user = await this.#authenticate(request, read, record)
      const upgrade = { client, protocol, read, user, abort, timer }
      const { status, end } = await this.#forwardUpgrade(request, upgrade)
      this.#record(request, status, { ...record, reason: end === 'closed' ? 'ok' : end })
    } catch (error) {
      this.#poisoned.add(socket)
      const { status } = this.#refuse(request, client.response, error, record)
      this.#record(request, status, record)
    }
  }

  async #forwardUpgrade(
    request: IncomingMessage,
    { client, protocol, read, user, abort, timer }: AuthenticatedUpgrade,
  ): Promise<{ readonly status: number; readonly end: UpgradeResult['end'] | TunnelEnd }> {
    const { upstream, tunnels, limits } = this.#deps
    let tunnel: ReturnType<Tunnels['add']> | undefined
    let reason: TunnelEnd | undefined
    const policy: ForwardPolicy = {
      ...forwardPolicy,
      responseHeaders: (head) => {
        const headers = forwardPolicy.responseHeaders(head)
        if (head.status !== 101) return headers
        // From here on the limits of upgraded connections apply.
        clearTimeout(timer)
        tunnel = tunnels.add(user, (why) => {
          reason = why
          abort.abort()
        })
        return [...withoutHeaders(headers, isTunnelHeader), tunnelHeader, tunnel.id]
      },
    }
    try {
      const { status, end } = await forwardUpgrade(request, client, {
        upstream,
        protocol,
        path: request.url ?? '/',
        headers: this.#withIdentity(read, user),
        policy,
        idleMs: limits.tunnelIdleMs,
        signal: abort.signal,
      })
      return { status, end: reason ?? end }
    } finally {
      tunnel?.ended()
    }
  }

  #authenticate(
    { socket }: IncomingMessage,
    { authorization }: GuardedRequest,
    record: RequestRecord,
  ): AddonUser | Promise<AddonUser> {
    const accept = (user: AddonUser): AddonUser => {
      this.#deps.unauthenticated.delete(socket)
      record.user = user
      return user
    }
    const found = authenticate(authorization, this.#deps.proof)
    return found instanceof Promise ? found.then(accept) : accept(found)
  }

  #begin(request: IncomingMessage, response: ServerResponse): RequestRecord {
    const { limits, clock } = this.#deps
    const record: RequestRecord = { began: clock.monotonic(), reason: 'ok' }
    const timer = setTimeout(() => {
      record.reason = 'too-old'
      if (response.headersSent) response.destroy()
      else this.#refuse(request, response, tooOld(), record)
    }, limits.maxRequestMs)
    response.once('close', () => {
      clearTimeout(timer)
      if (record.reason === 'ok' && !response.writableFinished) record.reason = 'broken-off'
      this.#record(request, response.statusCode, record)
    })
    return record
  }

  /** What came without a claim to an identity, then ours: nothing that a client sends can take it away again. */
  #withIdentity({ headers }: GuardedRequest, user: AddonUser): string[] {
    let identity = this.#identities.get(user)
    if (!identity) {
      identity = identityHeaders(user, this.#deps.output)
      this.#identities.set(user, identity)
    }
    for (const item of identity) headers.push(item)
    return headers
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: unknown,
    record: RequestRecord,
  ): GuardRefused {
    const refusal = this.#toRefusal(error)
    record.reason = refusal.reason
    if (refusal.isMalformed) this.#poisoned.add(request.socket)
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return refusal
    }
    const body = refusalBody(refusal)
    response.once('finish', () => discardUnreadBody(request, response, this.#deps.limits.lingerMs))
    response.writeHead(refusal.status, {
      ...(refusal.isMalformed && { Connection: 'close' }),
      ...refusalHeaders(refusal, body),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
    return refusal
  }

  #toRefusal(error: unknown): GuardRefused {
    if (error instanceof GuardRefused) return error
    this.#deps.log.error({ err: error }, 'request failed')
    return new GuardRefused(500, 'internal-error', 'the request could not be handled')
  }

  #record(request: IncomingMessage, status: number, record: RequestRecord): void {
    const { metrics, accessLog, clock, port } = this.#deps
    const durationMs = clock.monotonic() - record.began
    const { reason, user } = record
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
  const id = headers['audit-id']
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id) ? id : undefined
}

/** What is known about a request so far. */
interface RequestRecord {
  readonly began: number
  reason: string
  user?: AddonUser
}

/** A known user's request for another protocol. */
interface AuthenticatedUpgrade {
  readonly client: UpgradingClient
  readonly protocol: string
  readonly read: GuardedRequest
  readonly user: AddonUser
  readonly abort: AbortController
  /** Aborts when a response is overdue. */
  readonly timer: NodeJS.Timeout
}

const isTunnelHeader = (name: string): boolean => name.toLowerCase() === tunnelHeader.toLowerCase()

const bodyRefusals: Readonly<Record<BodyProblem, GuardRefused>> = {
  overhead: malformed('the chunks of the body have more extensions than data'),
  stalled: new GuardRefused(408, 'body-too-slow', 'the body of the request came too slowly'),
}

const tooOld = (): GuardRefused =>
  new GuardRefused(504, 'too-old', 'the request took longer than requests may')
