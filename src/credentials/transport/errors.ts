import type { IncomingHttpHeaders } from 'node:http'
import { SallyportError, systemErrorCode } from '../../core/index.ts'

/** No whole answer came: whether the server did what was asked is unknown, unless it was a read. */
export class ConnectionFailed extends SallyportError {
  readonly code: string = 'CLIENT_CONNECTION_FAILED'
}

/** No connection to any address of a cluster could be made; the server has seen nothing of the request. */
export class NoAddressReachable extends ConnectionFailed {
  /** Why, address by address. */
  readonly failures: readonly { readonly address: string; readonly cause: unknown }[]

  constructor(message: string, failures: NoAddressReachable['failures']) {
    super(message, { cause: failures.at(-1)?.cause })
    this.failures = failures
  }
}

/** A connection was closed by us because its client certificate has been replaced. */
export class ConnectionRetired extends ConnectionFailed {
  override readonly code = 'CLIENT_CONNECTION_RETIRED'
  /** False if the server has seen nothing of the request. */
  readonly sent: boolean

  constructor(sent: boolean) {
    super('the connection was closed because the client certificate has been replaced')
    this.sent = sent
  }
}

/** A client cannot be made from what it was given. */
export class ClientConfigInvalid extends SallyportError {
  readonly code = 'CLIENT_CONFIG_INVALID'
}

/** The ordinary answer of a server that was asked for another protocol. */
export interface RefusedUpgrade {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Its beginning, if it is a long one. */
  readonly body: Buffer
  /** False if the body was longer than what is kept of it, or broke off. */
  readonly whole: boolean
}

/** The server did not change to the protocol that was asked for. */
export class UpgradeRefused extends SallyportError {
  readonly code = 'CLIENT_UPGRADE_REFUSED'
  readonly status: number
  readonly #answer: RefusedUpgrade

  constructor(server: string, answer: RefusedUpgrade) {
    super(`${server} refused the upgrade of the connection with status ${answer.status}`)
    this.status = answer.status
    this.#answer = answer
  }

  /** What the server said instead; in no message and no log, since it may be long and set cookies. */
  get answer(): RefusedUpgrade {
    return this.#answer
  }
}

/** What went wrong on the way to `server`, in the words of the system. */
export function connectionFailed(server: string, cause: unknown): ConnectionFailed {
  if (cause instanceof ConnectionFailed) return cause
  return new ConnectionFailed(`no answer from ${server}: ${failureText(cause)}`, { cause })
}

/** A failure in the words of the system, with its code. */
export function failureText(cause: unknown): string {
  const code = systemErrorCode(cause)
  const words = cause instanceof Error && cause.message !== '' ? cause.message : (code ?? 'unknown')
  return code === undefined || words.includes(code) ? words : `${words} (${code})`
}

/** A try to send a request failed. */
export class TryFailed extends Error {
  /** Whether it says nothing about the server: a kept connection turned out to be closed. */
  readonly stale: boolean

  constructor(cause: unknown, stale: boolean) {
    super('a try to send a request failed', { cause })
    this.stale = stale
  }
}

/** What a lost connection reports over HTTP/1.1; used for HTTP/2 too, so that nobody has to know two words. */
export class ConnectionReset extends Error {
  readonly code = 'ECONNRESET'

  constructor(message: string, cause?: unknown) {
    super(message, { cause })
  }
}
