import type { IncomingMessage } from 'node:http'
import { ApiError, systemErrorCode } from '../../../core/index.ts'
import type { ProxyBackend } from '../target.ts'
import type { AnswerPlaces } from './answer-headers.ts'
import type { BackendConnections } from './backend-connections.ts'
import type { Meter } from './relay.ts'

/** The place of one request among those whose pages may be unpacked. */
export interface PageWindow {
  /** Takes the place, once or again; false if there is none left. */
  take(): boolean
  /** Gives it back, if it was taken. */
  leave(): void
}

/** One request on its way to a backend. */
export interface Forwarding {
  readonly connections: BackendConnections
  readonly backend: ProxyBackend
  readonly request: IncomingMessage
  /** Path and query at the backend. */
  readonly path: string
  /** As a flat list. */
  readonly headers: readonly string[]
  readonly places: AnswerPlaces
  /** What we add to the answer, as `name: values`. */
  readonly added: ReadonlyMap<string, readonly string[]>
  readonly meters: { readonly toBackend: Meter; readonly toClient: Meter }
  /** What unpacking a page may take of our memory; as much as it likes without. */
  readonly window?: PageWindow
  /** How a tunnel is kept open at a guard that lets it last no longer than a token; absent without an identity. */
  readonly renewal?: { readonly everyMs: number; readonly token: () => Promise<string> }
  /** Aborts when the client is gone or the exchange is cut. */
  readonly signal: AbortSignal
}

/** What is thrown when a backend cannot be reached or answers no HTTP. */
export function unreachable(error: unknown): ApiError {
  const why = error instanceof Error ? (tlsFailure(error) ?? error.message) : 'unknown error'
  return new ApiError('ServiceUnavailable', `error trying to reach service: ${why}`, {
    cause: error,
  })
}

/** What OpenSSL found, without its addresses and source files. */
function tlsFailure(error: Error): string | undefined {
  const reason: unknown = 'reason' in error ? error.reason : undefined
  const isTls = systemErrorCode(error)?.startsWith('ERR_SSL_') === true
  return isTls && typeof reason === 'string' ? `no TLS (${reason}); is it https?` : undefined
}
