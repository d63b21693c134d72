import { SallyportError } from '../../core/index.ts'

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

  /** Whether the request could be read in two ways: then nothing more is read from its connection. */
  get isMalformed(): boolean {
    return this.status === 400
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
