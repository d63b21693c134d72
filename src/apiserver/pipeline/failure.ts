import { type KubeStatus, type Logger, SallyportError, toKubeStatus } from '../../core/index.ts'
import { ClientGone } from '../../http/index.ts'
import type { Exchange } from './exchange.ts'
import { LimitExceeded } from './limits.ts'

const credentialWords =
  /(?:token|secret|password|passwd|credentials?|apikey|authorization|signature|assertion|jwt|bearer)$/
const credentialNames = new Set(['code', 'key', 'sig', 'auth', 'pwd', 'pass'])
const dottedWords = /[\w-]+(?:\.[\w-]*)*/g
const redacted = 'REDACTED'

/** A request URI that may be written down: whatever in it could be a credential is taken out. */
export function redactUri(uri: string): string {
  const mark = uri.indexOf('?')
  const path = redactTokens(mark < 0 ? uri : uri.slice(0, mark))
  if (mark < 0) return path
  const pairs = uri.slice(mark + 1).split('&')
  return `${path}?${pairs.map(redactPair).join('&')}`
}

/** A text from which everything that looks like a JWT is taken out. Linear: strangers choose the text. */
export function redactTokens(text: string): string {
  return text.includes('eyJ') ? text.replace(dottedWords, withoutTokens) : text
}

/** A token is a part with `eyJ` and five characters more, a part that is not empty, and a third if there is one. */
function withoutTokens(words: string): string {
  if (!words.includes('eyJ')) return words
  const parts = words.split('.')
  const kept: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? ''
    const start = part.indexOf('eyJ')
    const isToken = start >= 0 && part.length >= start + 8 && Boolean(parts[at + 1])
    kept.push(isToken ? part.slice(0, start) + redacted : part)
    if (isToken) at += 2
  }
  return kept.join('.')
}

function redactPair(pair: string): string {
  const equals = pair.indexOf('=')
  if (equals < 0) return redactTokens(pair)
  const name = pair.slice(0, equals)
  return isCredential(name) ? `${name}=${redacted}` : redactTokens(pair)
}

function isCredential(name: string): boolean {
  const bare = decoded(name)
    .toLowerCase()
    .replaceAll(/[^a-z\d]/g, '')
  return credentialNames.has(bare) || credentialWords.test(bare)
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

const brokenOff = new Error('the answer broke off')

/** Answers an exchange with what went wrong; when the answer has begun already, cuts it. */
export function answerFailure(exchange: Exchange, error: unknown, log: Logger): void {
  report(exchange, error, log)
  const { response } = exchange
  if (response.writableEnded) return // a complete answer stays one
  if (response.headersSent || response.destroyed || error instanceof ClientGone) {
    exchange.cut(brokenOff)
    return
  }
  const status = statusOf(error)
  exchange.failure = status
  const body = Buffer.from(`${JSON.stringify(status)}\n`)
  response.statusCode = status.code
  response.setHeader('Content-Type', 'application/json')
  response.setHeader('Content-Length', body.length)
  // A name in the URL comes back in the words of those who refuse before anybody has looked at it.
  if (status.code === 403 && !exchange.decision?.allowed)
    response.setHeader('X-Content-Type-Options', 'nosniff')
  const retryAfter = status.details?.retryAfterSeconds
  if (retryAfter !== undefined) response.setHeader('Retry-After', String(retryAfter))
  response.end(body)
}

function statusOf(error: unknown): KubeStatus {
  if (!(error instanceof LimitExceeded)) return toKubeStatus(error)
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: error.message,
    code: error.httpCode,
  }
}

function report(exchange: Exchange, error: unknown, log: Logger): void {
  const { auditId, info, request } = exchange
  const about = { auditId, method: request.method, path: redactTokens(info.path) }
  if (exchange.aborted || error instanceof ClientGone) {
    log.debug({ ...about, err: error }, 'request was cut short')
    return
  }
  if (!(error instanceof SallyportError)) {
    log.error({ ...about, err: error }, 'request failed unexpectedly')
    return
  }
  const reason = redactTokens(error.message)
  const fields = { ...about, code: error.code, reason, detail: error.detail }
  if (toKubeStatus(error).code < 500 || error instanceof LimitExceeded) {
    log.debug(fields, 'request refused')
  } else log.warn({ ...fields, err: error.cause }, 'request failed')
}
