import { isIP } from 'node:net'
import {
  type Authentication,
  type KubeStatus,
  kubeMicroTime,
  type RedactedText,
  type RequestInfo,
  redact,
  type StatusReason,
  type UserInfo,
} from '../../core/index.ts'
import { clientLeftCode, type Exchange } from '../pipeline/exchange.ts'

/** When in the life of a request an event was made. */
export type AuditStage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete'

const needsEscape = /[^ !#-[\]-~]/

/** A string of an event. Nearly all are plain, and to see that is faster than to escape them. */
function json(text: string): string {
  const clean = redact(text)
  return needsEscape.test(clean) ? JSON.stringify(clean) : `"${clean}"`
}

const maxKnownWords = 1_000
const maxWordLength = 128
let knownWords = new Map<string, string>()

/** As `json`, for strings of which there are few different ones. */
function jsonWord(text: string): string {
  const known = knownWords.get(text)
  if (known !== undefined) return known
  const line = json(text)
  // A client that sends thousands of words must not fill the memory.
  if (knownWords.size >= maxKnownWords) knownWords = new Map()
  if (text.length <= maxWordLength) knownWords.set(text, line)
  return line
}

/** An object of an event; its keys may be a client's too. */
const jsonOf = (value: object): string => redact(JSON.stringify(value))

const maxUserAgentLength = 1_024

/**
 * The `audit.k8s.io/v1` Event of an exchange as one line, at level Metadata: who, what and how it
 * went, never a body. Put together by hand, because it is made for every request; all that is not
 * a constant goes through `json`, `jsonWord` or `jsonOf`, which redact it.
 */
export function auditLine(exchange: Exchange, stage: AuditStage, nowMs: number): RedactedText {
  const { info, request } = exchange
  let line = '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata"'
  line += `,"auditID":${json(exchange.auditId)},"stage":"${stage}"`
  line += `,"requestURI":${json(request.url ?? '')}`
  line += `,"verb":${jsonWord(info.verb || (request.method ?? '').toLowerCase())}`
  line += usersOf(exchange)
  line += `,"sourceIPs":${sourceIps(exchange)}`
  const userAgent = request.headers['user-agent']
  if (userAgent) line += `,"userAgent":${jsonWord(shortened(userAgent))}`
  if (info.isResourceRequest) line += `,"objectRef":${objectRef(info)}`
  if (stage !== 'RequestReceived') line += `,"responseStatus":${responseStatus(exchange)}`
  line += `,"requestReceivedTimestamp":"${kubeMicroTime(exchange.receivedAt)}"`
  line += `,"stageTimestamp":"${kubeMicroTime(nowMs)}"`
  return `${line}${annotationsOf(exchange)}}\n` as RedactedText
}

/** Half a token has no shape, so that it is redacted before it is cut. */
const shortened = (text: string): string =>
  text.length > maxUserAgentLength ? redact(text).slice(0, maxUserAgentLength) : text

function usersOf(exchange: Exchange): string {
  const { impersonator, knownAuthentication: acting } = exchange
  if (impersonator === undefined) return `,"user":${userOf(acting)}`
  return `,"user":${userOf(impersonator)},"impersonatedUser":${userOf(acting)}`
}

const userLines = new WeakMap<UserInfo, string>()

/** Authenticators give out the same object again and again. */
function userOf(authentication: Authentication | undefined): string {
  if (authentication === undefined) return '{}'
  const { user } = authentication
  let line = userLines.get(user)
  if (line === undefined) {
    const { username, uid, groups, extra } = user
    line = jsonOf({ username, uid, groups, extra })
    userLines.set(user, line)
  }
  return line
}

/** As Kubernetes lists them: only the last one is certain, what comes before is the client's word. */
function sourceIps(exchange: Exchange): string {
  const forwarded = exchange.request.headers['x-forwarded-for']
  if (forwarded === undefined) return `[${jsonWord(exchange.sourceAddress)}]`
  const claimed = String(forwarded).split(',', 16)
  const valid = claimed.map((item) => item.trim()).filter((item) => isIP(item) !== 0)
  return jsonOf([...valid, exchange.sourceAddress])
}

function objectRef(info: RequestInfo): string {
  let line = `{"resource":${jsonWord(info.resource)}`
  if (info.namespace) line += `,"namespace":${jsonWord(info.namespace)}`
  if (info.name) line += `,"name":${json(info.name)}`
  if (info.group) line += `,"apiGroup":${jsonWord(info.group)}`
  line += `,"apiVersion":${jsonWord(info.version)}`
  if (info.subresource) line += `,"subresource":${jsonWord(info.subresource)}`
  return `${line}}`
}

/** Their messages may quote what the client sent, which may be anything. */
const quoting = new Set<StatusReason>(['BadRequest', 'Invalid', 'UnsupportedMediaType'])

function responseStatus(exchange: Exchange): string {
  const { code, failure } = exchange
  if (failure) return jsonOf(withoutQuotes(exchange, failure))
  if (code === clientLeftCode)
    return `{"metadata":{},"message":"Connection closed early","code":${clientLeftCode}}`
  return `{"metadata":{},"code":${code}}`
}

function withoutQuotes(exchange: Exchange, failure: KubeStatus): object {
  const { status, reason, code } = failure
  const message = reason === 'Unauthorized' ? attemptsOf(exchange) : (failure.message ?? '')
  const quotes = reason === undefined || quoting.has(reason)
  return { metadata: {}, status, ...(!quotes && { message }), reason, code }
}

/** The client is told nothing; the auditor may know which kinds of credential were tried. */
function attemptsOf({ request }: Exchange): string {
  const scheme = request.headers.authorization?.split(' ', 1)[0]?.toLowerCase()
  const attempts = [
    ...(scheme === 'bearer' || scheme === 'basic' ? [scheme] : []),
    ...(hasPeerCertificate(request.socket) ? ['x509'] : []),
  ]
  return `Authentication failed, attempted: ${attempts.join(', ') || 'nothing'}`
}

function hasPeerCertificate(socket: object | null | undefined): boolean {
  if (!socket || !('getPeerX509Certificate' in socket)) return false
  const { getPeerX509Certificate: get } = socket
  return typeof get === 'function' && get.call(socket) !== undefined
}

function annotationsOf({ decision, annotations }: Exchange): string {
  let list = ''
  for (const [key, value] of annotations ?? []) list += `,${json(key)}:${json(value)}`
  if (decision !== undefined) {
    const word = decision.allowed ? 'allow' : 'forbid'
    list += `,"authorization.k8s.io/decision":"${word}"`
    list += `,"authorization.k8s.io/reason":${jsonWord(decision.reason)}`
  }
  return list === '' ? '' : `,"annotations":{${list.slice(1)}}`
}
