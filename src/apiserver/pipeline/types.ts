import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Impersonate } from '../../authn/index.ts'
import type {
  ApiError,
  Attributes,
  Authentication,
  Authenticator,
  AuthorizedRequest,
  Authorizer,
  Clock,
  Decision,
  Logger,
  RequestInfo,
} from '../../core/index.ts'
import type { UpgradingClient } from '../../http/index.ts'
import type { CpuAccounts } from '../fairness/cpu-accounts.ts'
import type { Fairness } from '../fairness/fairness.ts'
import type { Exchange } from './exchange.ts'
import type { RequestLimits } from './limits.ts'
import type { ProvenOrigins } from './proven-origins.ts'

/** Answers a request that has passed every check. */
export type RouteHandler = (
  request: AuthorizedRequest,
  response: ServerResponse,
  signal: AbortSignal,
) => void | Promise<void>

/** Answers a request to leave HTTP; what it throws before it has claimed the socket becomes a Status. */
export type UpgradeHandler = (
  request: AuthorizedRequest,
  client: UpgradingClient,
  signal: AbortSignal,
) => void | Promise<void>

/** Told of every request, refused ones too. */
export interface AuditTrail {
  /** The request has been understood; nothing else is known. */
  received(exchange: Exchange): void
  /** A long-running request has begun to be answered. */
  started(exchange: Exchange): void
  /** Nothing more will happen. */
  complete(exchange: Exchange): void
}

/** What the pipeline is made of; all policy comes from outside. */
export interface PipelineParts {
  readonly clock: Clock
  readonly log: Logger
  readonly limits: RequestLimits
  readonly requestTimeoutMs: number
  /** Whether pages of another origin may write, or use add-ons if the request is for one. */
  readonly isAllowedOrigin: (origin: string, info: RequestInfo) => boolean
  readonly provenOrigins: ProvenOrigins
  readonly authenticator: Authenticator
  /** Sees each request that has proven an identity which is not revoked, or is anonymous. */
  readonly onAuthenticated?: (request: IncomingMessage, authentication: Authentication) => void
  /** Throws when the user or the credential has been revoked, or when that cannot be known. */
  readonly checkRevocation: (authentication: Authentication) => void | Promise<void>
  /** Calls `cut` once the user or the credential is revoked; the function it returns ends that. */
  readonly onRevoked?: (authentication: Authentication, cut: () => void) => () => void
  /** Cuts when the CA of a connection's client certificate is no longer trusted; returns how to stop watching. */
  readonly onDistrusted?: (request: IncomingMessage, cut: () => void) => () => void
  readonly impersonate: Impersonate
  readonly fairness: Fairness
  readonly cpu: CpuAccounts
  readonly authorizer: Authorizer
  /** A denial in the words of Kubernetes. */
  readonly denial: (attributes: Attributes, decision: Decision) => ApiError
  readonly audit: AuditTrail
  readonly metrics: { complete(exchange: Exchange): void }
  readonly resources: RouteHandler
  readonly paths: RouteHandler
  /** Without one, requests to leave HTTP are refused. */
  readonly upgrade?: UpgradeHandler
}

/** One check on the way; throws to refuse, returns a promise only if it has to wait. */
export type Step = (exchange: Exchange, parts: PipelineParts) => void | Promise<void>
