import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import { type Logger, responseTo, systemErrorCode, withinTime } from '../../core/index.ts'

/** A whole answer, byte for byte. */
export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Every value of a header, which `headers` would join or drop. */
  values(name: string): string[]
  readonly body: Buffer
}

/** What all requests have in common. */
export interface GetTerms {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Told of every request and its answer; of credentials and bodies only that they are there. */
  readonly log: Logger
}

/** One GET. */
export interface GetOrder extends GetTerms {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Whom to believe: these roots alone, or those that Node.js knows. */
export interface Trust {
  readonly roots?: string | readonly string[]
  /** The name that the certificate must have, if it is not the one in the URL. */
  readonly serverName?: string
}

/** More than any document needs. */
export const largestAnswer = 1024 * 1024

/** No whole answer came in time. */
export class AnswerLate extends Error {}

/** An answer has more bytes than any document needs. */
export class AnswerTooLarge extends Error {}

/** Asks a server that proves who it is. */
export function getVerified(order: GetOrder, { roots, serverName }: Trust): Promise<RawAnswer> {
  return get(order, {
    rejectUnauthorized: true,
    ...(roots !== undefined && { ca: typeof roots === 'string' ? roots : [...roots] }),
    ...(serverName !== undefined && { servername: serverName }),
  })
}

/**
 * Asks whoever answers, and believes nothing of it. The only place where a certificate is not verified:
 * one request on a connection of its own, which is closed with the answer.
 */
export function getFromAnyone(order: GetOrder): Promise<RawAnswer> {
  return get(order, { rejectUnauthorized: false })
}

const get = (order: GetOrder, tls: ConnectionOptions): Promise<RawAnswer> =>
  withinTime(order.timeoutMs, order.signal, (signal) => getUntil(signal, order, tls))

async function getUntil(
  signal: AbortSignal,
  order: GetOrder,
  tls: ConnectionOptions,
): Promise<RawAnswer> {
  const log = order.log.child({ url: shownUrl(order.url) })
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0, ...tls })
  const signed = order.headers?.['authorization'] !== undefined
  log.trace({ method: 'GET', verified: tls.rejectUnauthorized, signed }, 'request')
  try {
    const response = await head(order, agent, signal)
    const status = response.statusCode ?? 0
    const body = await bodyOf(response)
    log.trace({ status, bytes: body.length }, 'answer')
    const values = (name: string): string[] => valuesIn(response.rawHeaders, name)
    return { status, headers: response.headers, values, body }
  } catch (error) {
    const late = signal.aborted && !order.signal.aborted
    log.trace({ late, code: systemErrorCode(error) }, 'no answer')
    if (late) throw new AnswerLate('late', { cause: error })
    throw error
  } finally {
    agent.destroy()
  }
}

/** A URL as it may be told: without its query, since a link to a document may be as good as a password. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

function head(order: GetOrder, agent: Agent, signal: AbortSignal): Promise<IncomingMessage> {
  const sent = request(order.url, {
    agent,
    signal,
    headers: {
      accept: 'application/json',
      'accept-encoding': 'identity',
      connection: 'close',
      'user-agent': 'sallyport',
      ...order.headers,
    },
  })
  const response = responseTo(sent)
  sent.end()
  return response
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of response) {
    if (!Buffer.isBuffer(part)) throw new TypeError('a body is read as bytes')
    length += part.length
    if (length > largestAnswer) throw new AnswerTooLarge('too large')
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function valuesIn(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name,
  )
}
