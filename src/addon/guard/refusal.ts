import { SallyportError } from '../../core/index.ts'
import { responseHead } from '../../http/index.ts'

/** A request that the guard answers itself because it must not go on; `reason` is stable, for clients and metrics. */
export class GuardRefused extends SallyportError {
  readonly code = 'GUARD_REFUSED'
  readonly status: number
  readonly reason: string
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    reason: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.status = status
    this.reason = reason
    this.headers = headers
  }

  /** Whether the request could be read in two ways, or only in part: then nothing more is read from its connection. */
  get isMalformed(): boolean {
    return this.status === 400 || this.status === 408 || this.status === 431
  }
}

/** 403: nobody is known to be behind the request. */
export const unproven = (reason: string, message: string): GuardRefused =>
  new GuardRefused(403, reason, message)

/** 400: the request can be read in two ways, or in none. */
export const malformed = (message: string): GuardRefused =>
  new GuardRefused(400, 'malformed-request', message)

/** The body of a refusal: a reason for programs, a sentence for people, nothing of the request. */
export function refusalBody({ status, reason, message }: GuardRefused): string {
  return `${JSON.stringify({ code: status, reason, message })}\n`
}

/** The headers of a refusal, without those of the connection. */
export const refusalHeaders = (
  refusal: GuardRefused,
  body: string,
): Record<string, string | number> => ({
  ...refusal.headers,
  'Content-Type': 'application/json',
  'Content-Length': Buffer.byteLength(body),
  'Cache-Control': 'no-store',
})

/** A whole refusal for a connection that Node no longer writes answers to. */
export function refusalText(refusal: GuardRefused): string {
  const body = refusalBody(refusal)
  const headers = { ...refusalHeaders(refusal, body), Connection: 'close' }
  const flat = Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
  return responseHead(refusal.status, flat) + body
}
