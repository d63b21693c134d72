import type { IncomingMessage } from 'node:http'
import type { Impersonate, Revocations } from '../../authn/index.ts'
import type {
  ApiError,
  Attributes,
  Authentication,
  Authenticator,
  Backend,
  Clock,
  Decision,
  Logger,
} from '../../core/index.ts'
import type { CpuAccounts } from '../fairness/cpu-accounts.ts'
import type { Fairness } from '../fairness/fairness.ts'
import type { RequestLimits } from '../limits.ts'
import type { OriginPolicy } from './check-origin.ts'
import type { Exchange } from './exchange.ts'

/** Serves a request that has passed every check. */
export type RouteHandler = Backend['handle']

/** Records every request, rejected ones too. */
export interface AuditTrail {
  /** The request has been parsed; nothing else is known. */
  received(exchange: Exchange): void
  /** The headers of the response to a long-running request have been sent. */
  started(exchange: Exchange): void
  /** Nothing more will happen. */
  complete(exchange: Exchange): void
}

/** What the steps of the pipeline apply; all policy comes from outside. */
export interface PipelineDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly limits: RequestLimits
  readonly requestTimeoutMs: number
  readonly origins: OriginPolicy
  readonly authenticator: Authenticator
  /** Receives each request whose identity is proven and not revoked, or is anonymous. */
  readonly connections?: {
    authenticated(request: IncomingMessage, authentication: Authentication): void
  }
  readonly revocations: Pick<Revocations, 'check' | 'onRevoked' | 'onMoreRevoked'>
  /** Calls `end` when the CA of a connection's client certificate is no longer trusted; returns how to stop that. */
  readonly clientTrust?: { onDistrusted(request: IncomingMessage, end: () => void): () => void }
  readonly impersonate: Impersonate
  readonly fairness: Fairness
  readonly cpu: CpuAccounts
  /** Serves what has passed all steps, and decides who may do what. */
  readonly backend: Backend
  /** The 403 for a denied request, in the words of Kubernetes. */
  readonly denial: (attributes: Attributes, decision: Decision) => ApiError
  readonly audit: AuditTrail
  readonly metrics: { complete(exchange: Exchange): void }
}

/** One check of the pipeline; throws to reject, returns a promise only if it has to wait. */
export type Step = (exchange: Exchange, deps: PipelineDeps) => void | Promise<void>
