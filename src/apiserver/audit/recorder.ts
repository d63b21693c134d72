import { isIP } from 'node:net'
import type { Writable } from 'node:stream'
import {
  type Authentication,
  type Clock,
  type KubeStatus,
  kubeMicroTime,
  type RedactedText,
  type RequestInfo,
  redact,
  type StatusReason,
  type UserInfo,
} from '../../core/index.ts'
import {
  maxBufferedAuditBytes,
  maxKnownWords,
  maxUserAgentLength,
  maxWordLength,
} from '../limits.ts'
import { clientClosedRequest, type Exchange } from '../pipeline/exchange.ts'
import type { AuditTrail } from '../pipeline/types.ts'

/** Where audit lines are written. Never blocks and never throws: dropped lines are counted. */
export interface AuditSink {
  write(line: RedactedText): void
  /** Lines that were lost since the start. */
  readonly dropped: number
  /** Resolves when all lines are written. */
  close(): Promise<void>
}

/** What an audit recorder works with. */
export interface AuditOptions {
  readonly sink: AuditSink
  readonly clock: Clock
  /** Also records the stage RequestReceived; off unless given, because ResponseComplete contains the same and more. */
  readonly requestReceived?: boolean
}

/** Records every exchange as `audit.k8s.io/v1` events. */
export class AuditRecorder implements AuditTrail {
  readonly #options: AuditOptions
  #events = 0

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** Events recorded since the start, for the metrics. */
  get events(): number {
    return this.#events
  }

  received(exchange: Exchange): void {
    if (this.#options.requestReceived) this.#record(exchange, 'RequestReceived')
  }

  started(exchange: Exchange): void {
    this.#record(exchange, 'ResponseStarted')
  }

  complete(exchange: Exchange): void {
    this.#record(exchange, 'ResponseComplete')
  }

  #record(exchange: Exchange, stage: AuditStage): void {
    const { sink, clock } = this.#options
    this.#events++
    // Counted from the start of the request: so the stages are in order whatever the wall clock does.
    const now = exchange.receivedAt + (clock.monotonic() - exchange.startedAt)
    sink.write(auditLine(exchange, stage, now))
  }
}

/** Writes audit lines to a stream that it does not close, such as the standard output. */
export function auditToStream(
  stream: Writable,
  maxBufferedBytes = maxBufferedAuditBytes,
): AuditSink {
  let dropped = 0
  return {
    write(line) {
      if (stream.writableLength > maxBufferedBytes || stream.destroyed) dropped++
      else stream.write(line)
    },
    get dropped() {
      return dropped
    },
    close: () =>
      new Promise((resolve) => {
        if (stream.destroyed) resolve()
        else stream.write('', () => resolve())
      }),
  }
}

/** The stage of a request that an event records. */
type AuditStage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete'

const needsEscape = /[^ !#-[\]-~]/

/** A string of an event. Nearly all are plain ASCII, and the test for that is faster than to escape them. */
function json(text: string): string {
  const clean = redact(text)
  return needsEscape.test(clean) ? JSON.stringify(clean) : `"${clean}"`
}

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

/**
 * The `audit.k8s.io/v1` Event of an exchange as one line, at level Metadata: user, object and result,
 * never a body. Rendered by hand, because it is written for every request; everything but constants
 * goes through `json`, `jsonWord` or `jsonOf`, which redact it.
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

/** Redacted before it is shortened: half a token would not be recognized. */
const shortened = (text: string): string =>
  text.length > maxUserAgentLength ? redact(text).slice(0, maxUserAgentLength) : text

function usersOf(exchange: Exchange): string {
  const { impersonator, knownAuthentication: acting } = exchange
  if (impersonator === undefined) return `,"user":${userOf(acting)}`
  return `,"user":${userOf(impersonator)},"impersonatedUser":${userOf(acting)}`
}

const userLines = new WeakMap<UserInfo, string>()

/** Authenticators return the same object for the same credential. */
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

/** As Kubernetes lists them: only the last one is verified, the others are claimed by the client. */
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

/** Their messages may quote what the client sent, credentials included. */
const quoting = new Set<StatusReason>(['BadRequest', 'Invalid', 'UnsupportedMediaType'])

function responseStatus(exchange: Exchange): string {
  const { code, failure } = exchange
  if (failure) return jsonOf(withoutQuotes(exchange, failure))
  if (code === clientClosedRequest)
    return `{"metadata":{},"message":"Connection closed early","code":${clientClosedRequest}}`
  return `{"metadata":{},"code":${code}}`
}

function withoutQuotes(exchange: Exchange, failure: KubeStatus): object {
  const { status, reason, code } = failure
  const message = reason === 'Unauthorized' ? attemptsOf(exchange) : (failure.message ?? '')
  const quotes = reason === undefined || quoting.has(reason)
  return { metadata: {}, status, ...(!quotes && { message }), reason, code }
}

/** The response names no reason; the audit log names the kinds of credentials that were tried. */
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
