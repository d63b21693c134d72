import { ApiError, isRecord, type KubeObject, SallyportError } from '../../core/index.ts'
import { ReasonedFailure } from '../discovery/errors.ts'

/** Why a cluster that was found gave no certificate; stable, for programs and tables. */
export type JoinReason =
  | 'token-refused'
  | 'request-forbidden'
  | 'request-refused'
  | 'cluster-unreachable'
  | 'node-name-taken'
  | 'approval-pending'
  | 'request-denied'
  | 'request-failed'
  | 'request-gone'
  | 'certificate-wrong'
  | 'aborted'

/** Joining ended without a certificate. */
export class JoinFailed extends ReasonedFailure<JoinReason> {}

const passing = new Set([
  'TooManyRequests',
  'InternalError',
  'ServerTimeout',
  'ServiceUnavailable',
  'Timeout',
])

/** What a refusal or a lost connection means to somebody who asks for a certificate; `what` was asked for. */
export function joinFailure(error: unknown, what: string, signal: AbortSignal): unknown {
  if (error instanceof JoinFailed) return error
  if (signal.aborted)
    return new JoinFailed('aborted', 'joining was told to end', {
      hint: 'run the same again: it goes on where it was',
      cause: error,
    })
  if (isConnectionFailure(error))
    return new JoinFailed('cluster-unreachable', error.message, {
      hint: 'the cluster was found and trusted, but it does not answer now',
      mayPass: true,
      cause: error,
    })
  return error instanceof ApiError ? refusal(error, what) : error
}

const connectionFailures = new Set([
  'CLIENT_CONNECTION_FAILED',
  'CLIENT_CONNECTION_RETIRED',
  'CLIENT_REQUEST_TIMED_OUT',
])

/** Whether no whole answer came; told by its code, since the client is loaded only when it is used. */
export const isConnectionFailure = (error: unknown): error is SallyportError =>
  error instanceof SallyportError && connectionFailures.has(error.code)

/** Sallyport says itself what is wrong with the token; anybody else only that a right is missing. */
function hintOfForbidden(message: string): string {
  if (message.includes('is used up')) return 'ask the administrator for a new token'
  if (message.includes('is for the node'))
    return 'join with that name (--node-name NAME), or ask for a token of your own'
  if (message.includes('is reserved'))
    return 'choose another --node-name, or request a token for replacing the machine from the administrator'
  return 'the token must be in a group that may ask for certificates, for example system:bootstrappers:kubeadm:default-node-token'
}

function refusal(error: ApiError, what: string): JoinFailed {
  if (error.reason === 'Unauthorized')
    return new JoinFailed(
      'token-refused',
      `the cluster does not accept the credential (401), so it cannot be used for ${what}`,
      {
        hint: 'a token has expired, or may only sign: it needs the usage authentication; a certificate is one of a CA that was replaced: join anew with --force and a token (for a node, of `token create --replace`)',
        cause: error,
      },
    )
  if (error.reason === 'Forbidden')
    return new JoinFailed('request-forbidden', `the cluster refuses ${what}: ${error.message}`, {
      hint: hintOfForbidden(error.message),
      cause: error,
    })
  const mayPass = passing.has(error.reason)
  return new JoinFailed('request-refused', `the cluster refuses ${what}: ${error.message}`, {
    hint: mayPass ? 'it may pass' : 'the message says what the cluster wants',
    mayPass,
    retryAfterMs: (error.details?.retryAfterSeconds ?? 0) * 1000,
    cause: error,
  })
}

/** Where a request stands: the certificate once it is there, else whether somebody has approved it. */
export type RequestState = { readonly certificatePem: string } | { readonly approved: boolean }

/** Reads where a request stands; throws JoinFailed if nothing will come of it. */
export function stateOfRequest(object: KubeObject): RequestState {
  const status = isRecord(object['status']) ? object['status'] : {}
  const conditions = Array.isArray(status['conditions'])
    ? status['conditions'].filter(isRecord)
    : []
  const { name } = object.metadata
  for (const condition of conditions) {
    if (condition['type'] === 'Denied')
      throw new JoinFailed('request-denied', `request ${name} was denied${whyOf(condition)}`, {
        hint: 'ask the administrator; --force asks anew with another key',
      })
    if (condition['type'] === 'Failed')
      throw new JoinFailed(
        'request-failed',
        `request ${name} was approved, but the signer refused it${whyOf(condition)}`,
        { hint: 'the message says what the signer wants; --force asks anew with another key' },
      )
  }
  const { certificate } = status
  if (typeof certificate === 'string' && certificate !== '')
    return { certificatePem: Buffer.from(certificate, 'base64').toString('utf8') }
  return { approved: conditions.some((condition) => condition['type'] === 'Approved') }
}

function whyOf(condition: Record<string, unknown>): string {
  const said = [condition['reason'], condition['message']].filter(
    (text): text is string => typeof text === 'string' && text !== '',
  )
  return said.length > 0 ? `: ${said.join(': ')}` : ''
}
