import type { Clock } from '../../core/index.ts'
import type { AddonUser } from '../token/claims.ts'

/** One request as the access log tells it: nothing in it is a credential, and queries are left out. */
export interface AccessEntry {
  readonly method: string
  readonly url: string
  readonly status: number
  /** `ok`, or why it was refused or cut. */
  readonly reason: string
  readonly durationMs: number
  readonly remote: string | undefined
  readonly user?: AddonUser
  /** By which the audit log of the API server names the request. */
  readonly auditId?: string
  readonly port: number
}

/** Which requests are told. */
export type AccessLogLevel = 'all' | 'refused' | 'none'

/** Writes a JSON line per request, many at a time. */
export class AccessLog {
  readonly #level: AccessLogLevel
  readonly #clock: Clock
  readonly #write: (lines: string) => void
  #lines = ''

  constructor(level: AccessLogLevel, clock: Clock, write: (lines: string) => void) {
    this.#level = level
    this.#clock = clock
    this.#write = write
  }

  note(entry: AccessEntry): void {
    if (this.#level === 'none' || (this.#level === 'refused' && entry.reason === 'ok')) return
    if (this.#lines === '') setImmediate(() => this.flush())
    this.#lines += `${JSON.stringify(this.#fieldsOf(entry))}\n`
  }

  /** Writes what has been noted. */
  flush(): void {
    const lines = this.#lines
    this.#lines = ''
    if (lines !== '') this.#write(lines)
  }

  #fieldsOf({ url, user, durationMs, ...entry }: AccessEntry): object {
    const mark = url.indexOf('?')
    const { user: name, audience, tokenId } = user ?? {}
    return {
      time: new Date(this.#clock.now()).toISOString(),
      msg: 'request',
      ...entry,
      path: mark < 0 ? url : url.slice(0, mark),
      ms: Math.round(durationMs * 1000) / 1000,
      user: name,
      audience,
      tokenId,
    }
  }
}
