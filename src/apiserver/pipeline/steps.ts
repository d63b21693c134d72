import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { completeIdentity, scopeDecision } from '../../authn/index.ts'
import {
  ApiError,
  type Attributes,
  type Authentication,
  badRequest,
  type Decision,
  goQuote,
  isLongRunning,
  isProxied,
  longestTimerMs,
  methodNotAllowed,
  notServed,
  parseDuration,
  parseRequestInfo,
  StreamCut,
  unauthorized,
  wellKnown,
} from '../../core/index.ts'
import {
  checkDecidingHeaders,
  hasBody,
  holdResponse,
  ignoreFollowing,
  onHeaders,
  receiveBody,
  refuseAmbiguousHeaders,
} from '../../http/index.ts'
import { maxIdentityAgeMs, maxSignedBytes, type RequestLimits } from '../limits.ts'
import { type Exchange, isPending } from './exchange.ts'
import { LimitExceeded } from './failure.ts'
import type { PipelineDeps } from './types.ts'

const validAuditId = /^[\w.:-]{1,64}$/

/** Sets the audit id and the headers that every response has. */
export function accept(exchange: Exchange): void {
  const requested = exchange.request.headers['audit-id']
  exchange.auditId =
    typeof requested === 'string' && validAuditId.test(requested) ? requested : randomUUID()
  exchange.response.setHeader('Audit-Id', exchange.auditId)
  exchange.response.setHeader('Cache-Control', 'no-cache, private')
  // An error message may quote what a client sent: no browser may render it as a page.
  exchange.response.setHeader('X-Content-Type-Options', 'nosniff')
}

/** Rejects requests whose URL or headers are too large. */
export function checkLimits(exchange: Exchange, deps: PipelineDeps): void {
  try {
    checkRequestSize(exchange.request, deps.limits)
  } catch (error) {
    ignoreFollowing(exchange.request)
    throw error
  }
}

/** Throws when URL or headers are larger than allowed. */
export function checkRequestSize(
  request: { readonly url?: string | undefined; readonly rawHeaders: readonly string[] },
  limits: RequestLimits,
): void {
  if ((request.url ?? '').length > limits.maxUrlLength) {
    throw new LimitExceeded(414, `the URL is longer than ${limits.maxUrlLength} characters`)
  }
  const headers = request.rawHeaders
  if (headers.length > 2 * limits.maxHeaderCount) {
    throw new LimitExceeded(431, `the request has more than ${limits.maxHeaderCount} headers`)
  }
  let bytes = 0
  for (const text of headers) bytes += text.length
  if (bytes > limits.maxHeaderBytes) {
    throw new LimitExceeded(431, `the headers are larger than ${limits.maxHeaderBytes} bytes`)
  }
}

/** Rejects headers that do not arrive exactly as sent, and headers that two parsers could read differently. */
export function checkHeaders(exchange: Exchange): void {
  // First, because it also ends the connection: what follows an ambiguous request may be part of its body.
  refuseAmbiguousHeaders(exchange.request)
  checkDecidingHeaders(exchange.request.rawHeaders)
}

/** As the discovery proposal spells the path of cluster-info. */
const doubledSlash = /^\/(?=\/api\/v1\/namespaces\/kube-public\/configmaps\/cluster-info(?:\?|$))/

/** Parses method and URL, once for all later steps. */
export function readRequestInfo(exchange: Exchange): void {
  const { request } = exchange
  const { method = '', url = '' } = request
  if (url.startsWith('//')) request.url = url.replace(doubledSlash, '')
  exchange.info = parseRequestInfo(method, request.url ?? '')
  checkShape(exchange)
  exchange.longRunning = exchange.upgrade !== undefined || isLongRunning(exchange.info)
}

const notUpgradable = ({ headers }: IncomingMessage): ApiError =>
  badRequest(`this path cannot be upgraded to ${goQuote(headers.upgrade ?? '')}`)

/**
 * Method and URL contain nothing that the authorizer does not decide on, for upgrades too. Only proxied programs read a
 * path beyond the subresource, and only they have HEAD and OPTIONS.
 */
function checkShape({ info, request, upgrade }: Exchange): void {
  if (upgrade && (!info.isResourceRequest || info.subresource === '')) throw notUpgradable(request)
  if (!info.isResourceRequest || isProxied(info)) return
  if (info.rest !== '') throw notServed()
  if (request.method === 'HEAD') throw methodNotAllowed()
}

/** Begins the audit record; it is completed when the exchange is over, for whatever reason. */
export function beginAudit(exchange: Exchange, { audit }: PipelineDeps): void {
  audit.received(exchange)
  if (exchange.longRunning && exchange.upgrade === undefined)
    onHeaders(exchange.response, () => audit.started(exchange))
}

/** In Kubernetes' words. */
const timeout = (): ApiError =>
  new ApiError('Timeout', 'Timeout: request did not complete within the allotted timeout')

/** How long the request may take: the server's limit, or less if the client requests less. */
function allowedMs(exchange: Exchange, maximum: number): number {
  if (!exchange.request.url?.includes('timeout')) return maximum
  const requested = exchange.info.query.get('timeout')
  if (requested === null || requested === '') return maximum
  const ms = parseDuration(requested)
  if (ms === undefined)
    throw badRequest(
      `invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(requested)}`,
    )
  return ms > 0 && ms < maximum ? ms : maximum
}

/** Sets the deadline of every request but the long-running ones. */
export function startDeadline(exchange: Exchange, deps: PipelineDeps): void {
  if (exchange.longRunning) return
  const ms = allowedMs(exchange, deps.requestTimeoutMs)
  exchange.deadline = setTimeout(expire, ms, exchange)
}

function expire(exchange: Exchange): void {
  exchange.expire(timeout())
}

/** Authenticates the request. A missing, a wrong and a revoked credential all return the same 401. */
export function authenticate(exchange: Exchange, deps: PipelineDeps): void | Promise<void> {
  const found = deps.authenticator.authenticate(exchange.request, exchange.signal)
  if (isPending(found)) return found.then((result) => identify(exchange, deps, result))
  identify(exchange, deps, found)
  return undefined
}

function identify(exchange: Exchange, deps: PipelineDeps, found: Authentication | undefined): void {
  if (found === undefined) throw unauthorized('no known credential')
  const authentication = completeIdentity(found)
  exchange.authentication = authentication
  exchange.impersonator = undefined
  exchange.identifiedAt = deps.clock.monotonic()
  for (const [key, value] of Object.entries(found.auditNotes ?? {})) exchange.annotate(key, value)
  deps.revocations.check(authentication)
  deps.connections?.authenticated(exchange.request, authentication)
}

/** Signs the response, errors too, if the credential requires it: its client does not trust the connection. */
export function signResponse({ authentication, request, response }: Exchange): void {
  const { signResponse: sign } = authentication
  if (!sign) return
  // Signed as it is sent: not compressed, in one piece.
  delete request.headers['accept-encoding']
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Vary', 'Authorization, Accept')
  if (request.method === 'HEAD') return
  holdResponse(response, {
    maxBytes: maxSignedBytes,
    complete: (body) => {
      response.setHeader('Content-Length', body.length)
      response.setHeader('X-Kubernetes-JWS', sign(body))
    },
  })
}

/** Applies the `Impersonate-*` headers of users who may; both identities stay known. */
export function impersonate(exchange: Exchange, deps: PipelineDeps): void | Promise<void> {
  const { request, authentication, info, signal } = exchange
  const action = info.isResourceRequest
    ? { verb: info.verb, resource: info }
    : { verb: info.verb, path: info.path }
  const acting = deps.impersonate(request, authentication, action, signal)
  if (isPending(acting)) return acting.then((result) => actAs(exchange, result))
  actAs(exchange, acting)
  return undefined
}

function actAs(exchange: Exchange, acting: Authentication): void {
  if (acting === exchange.authentication) return
  exchange.impersonator = exchange.authentication
  exchange.authentication = acting
}

/**
 * Confirms the identity of a request that has waited for its body or its permit: in that time the user may have been
 * revoked, the token deleted, or the permission to impersonate removed.
 */
export function confirmIdentity(exchange: Exchange, deps: PipelineDeps): void | Promise<void> {
  const { authentication, impersonator = authentication, identifiedAt } = exchange
  const isFresh = deps.clock.monotonic() - identifiedAt <= maxIdentityAgeMs
  if (!isFresh) return identifyAgain(exchange, deps)
  deps.revocations.check(impersonator)
  return undefined
}

async function identifyAgain(exchange: Exchange, deps: PipelineDeps): Promise<void> {
  await authenticate(exchange, deps)
  await impersonate(exchange, deps)
}

/** Rejects users who have used more than their share of CPU time; never administrators and health checks. */
export function checkCpu({ authentication, info }: Exchange, deps: PipelineDeps): void {
  const { user, impersonator = user } = authentication
  const isExempt = !info.isResourceRequest || user.groups.includes(wellKnown.masters)
  if (!isExempt) deps.cpu.check(impersonator.username)
}

/** Binds a stream to the credentials that opened it: it ends when one expires, is revoked or loses its CA. */
export function bindToCredential(exchange: Exchange, deps: PipelineDeps): void {
  if (!exchange.longRunning) return
  bind(exchange, exchange.authentication, deps)
  if (exchange.impersonator) bind(exchange, exchange.impersonator, deps)
  const end = (): void => exchange.disconnect(new StreamCut('revoked'))
  const stop = deps.clientTrust?.onDistrusted(exchange.request, end)
  if (stop) exchange.onEnd(stop)
}

function bind(exchange: Exchange, authentication: Authentication, deps: PipelineDeps): void {
  const end = (): void => exchange.disconnect(new StreamCut('revoked'))
  exchange.onEnd(deps.revocations.onRevoked(authentication, end))
  const remainingMs = (authentication.expiresAt ?? Number.POSITIVE_INFINITY) - exchange.receivedAt
  if (remainingMs > longestTimerMs) return
  const timer = setTimeout(expireCredential, Math.max(0, remainingMs), exchange)
  exchange.onEnd(() => clearTimeout(timer))
}

function expireCredential(exchange: Exchange): void {
  exchange.disconnect(new StreamCut('credential-expired'))
}

/** Waits until the body has arrived, so that a slow client holds no permit. Streams read their own. */
export function receive(exchange: Exchange, deps: PipelineDeps): void | Promise<void> {
  const { request, longRunning } = exchange
  const { fairness, limits, requestTimeoutMs } = deps
  const ticket = fairness.ticketFor(exchange)
  exchange.ticket = ticket
  if (longRunning || !hasBody(request)) return undefined
  const onBytes = (received: number): void => fairness.receive(ticket, received)
  onBytes(0)
  return receiveBody(request, {
    maxBytes: limits.maxBodyBytes,
    timeoutMs: requestTimeoutMs,
    signal: exchange.signal,
    onBytes,
  })
}

/** Waits for a permit; it is released when the response is complete, or waits for its client. */
export function acquirePermit({ ticket }: Exchange, deps: PipelineDeps): void | Promise<void> {
  return ticket && deps.fairness.admit(ticket)
}

/** Checks the credential's own scope, then the authorizer; an upstream API server authorizes what it owns. */
export function authorize(exchange: Exchange, deps: PipelineDeps): void | Promise<void> {
  const { backend } = deps
  const attributes = attributesOf(exchange)
  checkScope(exchange, attributes, deps)
  if (backend.owner(exchange.info) === 'upstream') return undefined
  const decision = backend.authorizer.authorize(attributes, exchange.signal)
  if (isPending(decision)) {
    return decision.then((result) => enforce(exchange, attributes, result, deps))
  }
  enforce(exchange, attributes, decision, deps)
  return undefined
}

function attributesOf({ authentication, info }: Exchange): Attributes {
  const { user } = authentication
  if (info.isResourceRequest) return { user, verb: info.verb, resource: info }
  return { user, verb: info.verb, path: info.path }
}

/** Impersonation does not widen what the credential may be used for. */
function checkScope(exchange: Exchange, attributes: Attributes, deps: PipelineDeps): void {
  const refusal =
    scopeDecision(exchange.authentication, attributes) ??
    (exchange.impersonator && scopeDecision(exchange.impersonator, attributes))
  if (refusal) enforce(exchange, attributes, refusal, deps)
}

function enforce(
  exchange: Exchange,
  attributes: Attributes,
  decision: Decision,
  deps: PipelineDeps,
): void {
  exchange.decision = decision
  if (!decision.allowed) throw deps.denial(attributes, decision)
}

/** Passes the request to the backend. */
export function route(exchange: Exchange, { backend }: PipelineDeps): void | Promise<void> {
  const { response, signal, upgrade } = exchange
  if (upgrade) return backend.upgrade(exchange, exchange.upgradingClient(upgrade), signal)
  return backend.handle(exchange, response, signal)
}
