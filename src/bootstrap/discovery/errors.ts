import { CommandFailed, isRecord, systemErrorCode } from '../../core/index.ts'
import { FetchError, isCertificateError } from '../../http/fetch/index.ts'

/** Why a cluster was not found or not trusted; stable, for programs and tables. */
export type DiscoveryReason =
  | 'bad-arguments'
  | 'unreachable'
  | 'not-ready'
  | 'not-a-cluster'
  | 'auth-refused'
  | 'forbidden'
  | 'token-unknown'
  | 'signature-absent'
  | 'signature-wrong'
  | 'document-unreadable'
  | 'document-invalid'
  | 'pin-mismatch'
  | 'server-not-trusted'
  | 'second-fetch-differs'
  | 'advertised-address-unreachable'
  | 'deadline-exceeded'
  | 'aborted'

/** What is told of a failure beside its sentence. */
export interface FailureFacts {
  /** What the user can do about it. */
  readonly hint: string
  /** The same may work a moment later, since clients and servers start in any order. */
  readonly mayPass?: boolean
  /** If it passes at all, it passes soon. */
  readonly passesSoon?: boolean
  /** The server asks not to come back before. */
  readonly retryAfterMs?: number
  /** The pins of the certificates that were seen, where they are what it is about. */
  readonly pinsSeen?: readonly string[]
  readonly cause?: unknown
}

/** A failure with a reason for programs, and a sentence and a next step for people. */
export abstract class ReasonedFailure<Reason extends string> extends CommandFailed {
  readonly reason: Reason
  readonly mayPass: boolean
  readonly passesSoon: boolean
  readonly retryAfterMs: number

  constructor(reason: Reason, message: string, facts: FailureFacts) {
    super(reason.toUpperCase().replaceAll('-', '_'), message, facts)
    this.reason = reason
    this.mayPass = facts.mayPass ?? false
    this.passesSoon = facts.passesSoon ?? false
    this.retryAfterMs = facts.retryAfterMs ?? 0
  }
}

/** Discovery ended without a cluster to trust. */
export class DiscoveryFailed extends ReasonedFailure<DiscoveryReason> {
  readonly pinsSeen: readonly string[]

  constructor(reason: DiscoveryReason, message: string, facts: FailureFacts) {
    super(reason, message, facts)
    this.pinsSeen = facts.pinsSeen ?? []
  }
}

/** A call that cannot work, found before anything was sent or read. */
export const badArguments = (message: string, hint: string): DiscoveryFailed =>
  new DiscoveryFailed('bad-arguments', message, { hint })

/** What a server that is asked for the cluster's sake has to prove. */
const membership = 'cannot prove that it belongs to the cluster'

/** What went wrong on the way to an address, before any answer could be judged. */
export function connectionFailure(
  url: string,
  error: unknown,
  signal: AbortSignal,
  unproven = membership,
): DiscoveryFailed {
  if (error instanceof DiscoveryFailed) return error
  if (signal.aborted)
    return new DiscoveryFailed('aborted', 'discovery was told to end', {
      hint: 'run it again to go on',
      cause: signal.reason,
    })
  const place = new URL(url).host
  if (error instanceof FetchError) return fetchFailure(place, error, unproven)
  return systemFailure(place, error, unproven)
}

function fetchFailure(place: string, error: FetchError, unproven: string): DiscoveryFailed {
  const { code, reason, status } = error
  switch (code) {
    case 'timeout':
      return unreachable({ why: `${place} did not answer in time`, hint: firewall }, error)
    case 'too-large':
      return notACluster(`${place} answered with more than a cluster ever would`, error)
    case 'redirected':
      return new DiscoveryFailed(
        'not-a-cluster',
        `${place} answered with a redirect (${status}), which nobody may follow before the server is trusted`,
        { hint: apiServerItself, cause: error },
      )
    case 'bad-content-type':
      return notACluster(`cannot use the response of ${place}: ${reason}`, error)
    case 'blocked-address':
      return new DiscoveryFailed('unreachable', `cannot connect to ${place}: ${reason}`, {
        hint: 'metadata addresses of cloud platforms belong to no cluster: check the address',
        cause: error,
      })
    case 'untrusted':
    case 'unreachable':
      return systemFailure(place, error.cause ?? error, unproven)
  }
}

/** A failure of the connection itself, by the code of its error. */
function systemFailure(place: string, error: unknown, unproven: string): DiscoveryFailed {
  const code = systemErrorCode(error) ?? ''
  if (isCertificateError(code)) return untrusted(`${place} ${unproven}`, error, code)
  if (/^(EPROTO|ERR_SSL_)/.test(code))
    return notACluster(`what listens at ${place} does not speak TLS`, error)
  if (code.startsWith('HPE_'))
    return notACluster(`what listens at ${place} does not speak HTTP`, error)
  const unknown = { why: `no answer from ${place} (${code || 'unknown error'})`, hint: firewall }
  return unreachable(known(place)[code] ?? unknown, error)
}

const unreachable = (
  { why, hint }: { readonly why: string; readonly hint: string },
  cause: unknown,
): DiscoveryFailed => new DiscoveryFailed('unreachable', why, { hint, mayPass: true, cause })

/** What to give in place of an address at which something else responds. */
export const apiServerItself =
  'give address and port of the API server itself, not of a portal or proxy before it'

const firewall =
  'check address and port, and that no firewall is in between; a bare host means port 6443'

function known(place: string): Readonly<Record<string, { why: string; hint: string }>> {
  const noName = {
    why: `the name in ${place} cannot be resolved`,
    hint: 'check the spelling, or use an IP address',
  }
  const noWay = { why: `there is no way to ${place} from here`, hint: firewall }
  const cut = {
    why: `${place} closed the connection without an answer`,
    hint: 'if a load balancer is in between, it has no server to turn to yet',
  }
  return {
    ENOTFOUND: noName,
    EAI_AGAIN: noName,
    ECONNREFUSED: {
      why: `nothing listens at ${place}`,
      hint: 'start the API server, or check address and port; a bare host means port 6443',
    },
    EHOSTUNREACH: noWay,
    ENETUNREACH: noWay,
    ECONNRESET: cut,
    EPIPE: cut,
  }
}

const notACluster = (message: string, cause: unknown): DiscoveryFailed =>
  new DiscoveryFailed('not-a-cluster', message, {
    hint: 'give address and port of a Kubernetes API server',
    cause,
  })

const trustFailures: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  CERT_SIGNATURE_FAILURE: 'the signature of its certificate is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for other names',
}

function untrusted(who: string, error: unknown, code: string): DiscoveryFailed {
  const why = trustFailures[code] ?? 'its certificate is not signed by a CA that is trusted for it'
  const names = code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? namesIn(error) : ''
  return new DiscoveryFailed('server-not-trusted', `${who}: ${why}${names && ` (${names})`}`, {
    hint: trustHint(code),
    cause: error,
  })
}

function trustHint(code: string): string {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'use an address that the certificate is for, or have this one added to it (--tls-san of the server)'
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return "check this machine's clock first, then the certificate of the server"
  return 'a proxy that opens TLS may be in between, or another cluster may answer there; do not send it the token'
}

function namesIn(error: unknown): string {
  const cert = error instanceof Error && 'cert' in error ? error.cert : undefined
  const names = isRecord(cert) ? cert['subjectaltname'] : undefined
  return typeof names === 'string' ? names.replaceAll(/(DNS|IP Address):/g, '') : ''
}
