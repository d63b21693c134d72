import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { completeIdentity, scopeDecision } from '../../authn/index.ts'
import {
  ApiError,
  type Attributes,
  type Authentication,
  type AuthorizedRequest,
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
  ignoreFollowing,
  receiveBody,
  refuseAmbiguousHeaders,
  type UpgradingClient,
} from '../../http/index.ts'
import { type Exchange, isPending } from './exchange.ts'
import { checkRequestSize } from './limits.ts'
import type { PipelineParts } from './types.ts'

const usableAuditId = /^[\w.:-]{1,64}$/

/** Names the exchange and sets the headers that every answer has. */
export function accept(exchange: Exchange): void {
  const wished = exchange.request.headers['audit-id']
  exchange.auditId =
    typeof wished === 'string' && usableAuditId.test(wished) ? wished : randomUUID()
  exchange.response.setHeader('Audit-Id', exchange.auditId)
  exchange.response.setHeader('Cache-Control', 'no-cache, private')
  // What a client sent may come back in a message: no browser may take it for a page.
  exchange.response.setHeader('X-Content-Type-Options', 'nosniff')
}

/** Refuses what is too large to be looked at. */
export function checkLimits(exchange: Exchange, parts: PipelineParts): void {
  try {
    checkRequestSize(exchange.request, parts.limits)
  } catch (error) {
    ignoreFollowing(exchange.request)
    throw error
  }
}

/** Rejects headers that cannot be taken exactly as sent, or that two readers could understand in two ways. */
export function checkHeaders(exchange: Exchange): void {
  // First, because it also ends the connection: what follows an ambiguous request may be part of its body.
  refuseAmbiguousHeaders(exchange.request)
  checkDecidingHeaders(exchange.request.rawHeaders)
}

/** As the proposal of discovery spells the way to cluster-info. */
const doubledSlash = /^\/(?=\/api\/v1\/namespaces\/kube-public\/configmaps\/cluster-info(?:\?|$))/

/** Understands method and URL, once for all who come after. */
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
 * Method and URL hold nothing that the authorizer does not decide on, for upgrades too. Only proxied programs read a
 * path beyond the subresource, and only they have HEAD and OPTIONS.
 */
function checkShape({ info, request, upgrade }: Exchange): void {
  if (upgrade && (!info.isResourceRequest || info.subresource === '')) throw notUpgradable(request)
  if (!info.isResourceRequest || isProxied(info)) return
  if (info.rest !== '') throw notServed()
  if (request.method === 'HEAD') throw methodNotAllowed()
}

/** Opens the audit record; it is closed when the exchange is over, however that comes about. */
export function beginAudit(exchange: Exchange, parts: PipelineParts): void {
  parts.audit.received(exchange)
  if (exchange.longRunning && exchange.upgrade === undefined) reportStart(exchange, parts)
}

/** Node has no event for "headers are on their way": every path to that leads through `writeHead`. */
function reportStart(exchange: Exchange, parts: PipelineParts): void {
  const { response } = exchange
  const writeHead = response.writeHead.bind(response)
  Object.assign(response, {
    writeHead(...args: Parameters<typeof writeHead>) {
      Object.assign(response, { writeHead })
      const result = writeHead(...args)
      parts.audit.started(exchange)
      return result
    },
  })
}

/** Says that the time for an answer is over, in Kubernetes' words. */
const timeout = (): ApiError =>
  new ApiError('Timeout', 'Timeout: request did not complete within the allotted timeout')

/** How long the request may take: the server's limit, or less if the client asks for less. */
function allowedMs(exchange: Exchange, maximum: number): number {
  if (!exchange.request.url?.includes('timeout')) return maximum
  const asked = exchange.info.query.get('timeout')
  if (asked === null || asked === '') return maximum
  const ms = parseDuration(asked)
  if (ms === undefined)
    throw badRequest(
      `invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(asked)}`,
    )
  return ms > 0 && ms < maximum ? ms : maximum
}

/** Gives every request but the long-running ones a moment at which it ends, answered or not. */
export function startDeadline(exchange: Exchange, parts: PipelineParts): void {
  if (exchange.longRunning) return
  const ms = allowedMs(exchange, parts.requestTimeoutMs)
  exchange.deadline = setTimeout(expire, ms, exchange)
}

function expire(exchange: Exchange): void {
  exchange.expire(timeout())
}

/** Finds out who asks. No identity, a wrong one and a revoked one are all the same 401. */
export function authenticate(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const found = parts.authenticator.authenticate(exchange.request, exchange.signal)
  if (isPending(found)) return found.then((result) => identify(exchange, parts, result))
  return identify(exchange, parts, found)
}

function identify(
  exchange: Exchange,
  parts: PipelineParts,
  found: Authentication | undefined,
): void | Promise<void> {
  if (found === undefined) throw unauthorized('no credential that we know')
  const authentication = completeIdentity(found)
  exchange.authentication = authentication
  exchange.impersonator = undefined
  exchange.identifiedAt = parts.clock.monotonic()
  for (const [key, value] of Object.entries(found.auditNotes ?? {})) exchange.annotate(key, value)
  const checked = parts.checkRevocation(authentication)
  if (checked) return checked.then(() => parts.onAuthenticated?.(exchange.request, authentication))
  parts.onAuthenticated?.(exchange.request, authentication)
  return undefined
}

/** Lets those who may act as somebody else; both identities stay known. */
export function impersonate(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { request, authentication, info, signal } = exchange
  const action = info.isResourceRequest
    ? { verb: info.verb, resource: info }
    : { verb: info.verb, path: info.path }
  const acting = parts.impersonate(request, authentication, action, signal)
  if (isPending(acting)) return acting.then((result) => actAs(exchange, result))
  actAs(exchange, acting)
  return undefined
}

function actAs(exchange: Exchange, acting: Authentication): void {
  if (acting === exchange.authentication) return
  exchange.impersonator = exchange.authentication
  exchange.authentication = acting
}

/** An identity that was proven longer ago than this is proven anew before it is used. */
const maxIdentityAgeMs = 100

/**
 * Confirms who sent a request that has waited for its body or its permit: in that time the user may have been revoked,
 * the token deleted, or the right to impersonate taken away.
 */
export function confirmIdentity(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { authentication, impersonator = authentication, identifiedAt } = exchange
  const isFresh = parts.clock.monotonic() - identifiedAt <= maxIdentityAgeMs
  return isFresh ? parts.checkRevocation(impersonator) : identifyAgain(exchange, parts)
}

async function identifyAgain(exchange: Exchange, parts: PipelineParts): Promise<void> {
  await authenticate(exchange, parts)
  await impersonate(exchange, parts)
}

/** Rejects users who have used more than their share of CPU time; never administrators and health checks. */
export function checkCpu({ authentication, info }: Exchange, parts: PipelineParts): void {
  const { user, impersonator = user } = authentication
  const isExempt = !info.isResourceRequest || user.groups.includes(wellKnown.masters)
  if (!isExempt) parts.cpu.check(impersonator.username)
}

/** A stream must not outlive the credentials that opened it: it ends when one expires, is revoked or loses its CA. */
export function bindToCredential(exchange: Exchange, parts: PipelineParts): void {
  if (!exchange.longRunning) return
  bind(exchange, exchange.authentication, parts)
  if (exchange.impersonator) bind(exchange, exchange.impersonator, parts)
  const cut = (): void => exchange.cut(new StreamCut('revoked'))
  const stop = parts.onDistrusted?.(exchange.request, cut)
  if (stop) exchange.onEnd(stop)
}

function bind(exchange: Exchange, authentication: Authentication, parts: PipelineParts): void {
  const stop = parts.onRevoked?.(authentication, () => exchange.cut(new StreamCut('revoked')))
  if (stop) exchange.onEnd(stop)
  const remainingMs = (authentication.expiresAt ?? Number.POSITIVE_INFINITY) - exchange.receivedAt
  if (remainingMs > longestTimerMs) return
  const timer = setTimeout(expire_bindToCredential, Math.max(0, remainingMs), exchange)
  exchange.onEnd(() => clearTimeout(timer))
}

function expire_bindToCredential(exchange: Exchange): void {
  exchange.cut(new StreamCut('credential-expired'))
}

/** Waits until the body has arrived, so that a slow client holds no permit. Streams read theirs themselves. */
export function receive(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { request, longRunning } = exchange
  const { fairness, limits, requestTimeoutMs } = parts
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

/** Waits for a permit; it is given back when the response is made, or waits for its client. */
export function admit({ ticket }: Exchange, parts: PipelineParts): void | Promise<void> {
  return ticket && parts.fairness.admit(ticket)
}

/** Asks whether they may: first the credential's own scope, then the authorizer. */
export function authorize(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const attributes = attributesOf(exchange)
  refuseOutOfScope(exchange, attributes, parts)
  const decision = parts.authorizer.authorize(attributes, exchange.signal)
  if (isPending(decision)) {
    return decision.then((result) => enforce(exchange, attributes, result, parts))
  }
  enforce(exchange, attributes, decision, parts)
  return undefined
}

function attributesOf({ authentication, info }: Exchange): Attributes {
  const { user } = authentication
  if (info.isResourceRequest) return { user, verb: info.verb, resource: info }
  return { user, verb: info.verb, path: info.path }
}

/** Acting as somebody else does not widen what the credential may be used for. */
function refuseOutOfScope(exchange: Exchange, attributes: Attributes, parts: PipelineParts): void {
  const refusal =
    scopeDecision(exchange.authentication, attributes) ??
    (exchange.impersonator && scopeDecision(exchange.impersonator, attributes))
  if (refusal) enforce(exchange, attributes, refusal, parts)
}

function enforce(
  exchange: Exchange,
  attributes: Attributes,
  decision: Decision,
  parts: PipelineParts,
): void {
  exchange.decision = decision
  if (!decision.allowed) throw parts.denial(attributes, decision)
}

/** Hands the request to whoever answers it. */
export function route(exchange: Exchange, parts: PipelineParts): void | Promise<void> {
  const { request, response, info, authentication } = exchange
  const routed: AuthorizedRequest = { request, info, authentication, audit: exchange }
  if (exchange.upgrade) return leaveHttp(exchange, routed, parts)
  if (!info.isResourceRequest) return parts.paths(routed, response, exchange.signal)
  return parts.resources(routed, response, exchange.signal)
}

function leaveHttp(
  exchange: Exchange,
  routed: AuthorizedRequest,
  parts: PipelineParts,
): void | Promise<void> {
  const { upgrade } = exchange
  if (!upgrade || !parts.upgrade) throw notUpgradable(exchange.request)
  const client: UpgradingClient = {
    response: exchange.response,
    head: upgrade.head,
    claim: () => {
      if (exchange.claimSocket()) return upgrade.socket
      throw new ApiError('ServiceUnavailable', 'the connection is gone')
    },
  }
  return parts.upgrade(routed, client, exchange.signal)
}
