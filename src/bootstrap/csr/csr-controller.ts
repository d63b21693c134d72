import { X509Certificate } from 'node:crypto'
import type { Controller } from '../../api/index.ts'
import {
  type Authorizer,
  type Clock,
  type ClusterView,
  hasReason,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import { type CertificateAuthority, CsrInvalid, parseCsr } from '../../pki/index.ts'
import type { DiscoveryMetrics } from '../server/failure-limit.ts'
import { decideRequest } from './approve.ts'
import { adoptNodeName, nodeNameIn } from './node-names.ts'
import { signRequest } from './sign.ts'
import { signerRule } from './signer-rules.ts'
import {
  conditionOf,
  readSigningRequest,
  type SigningRequest,
  writeCertificate,
  writeVerdict,
} from './signing-request.ts'

const hourMs = 3_600_000
const pendingMs = 24 * hourMs

/** When a request has outlived its use: an hour after its end, a day after its start; as in Kubernetes. */
function endOfRequest(request: SigningRequest): number {
  const ends = ['Approved', 'Denied', 'Failed'].flatMap((type) => {
    const condition = conditionOf(request, type)
    return condition ? [condition.atMs + hourMs] : []
  })
  return ends.length > 0 ? Math.min(...ends) : request.createdAtMs + pendingMs
}

const { certificateSigningRequest: requestKind } = wellKnownKinds

/** What the certificate controller works with. */
export interface CertificateControllerParts {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly clock: Clock
  readonly log: Logger
  /** Asked for every certificate; without its key nothing is signed here. */
  readonly ca: () => CertificateAuthority
  readonly maxLifetimeMs: number
  readonly metrics: Pick<DiscoveryMetrics, 'certificate'>
}

/** Approves, signs and in the end removes requests for certificates of Kubernetes' own signers. */
export function createCertificateController(parts: CertificateControllerParts): Controller {
  const { view, clock } = parts
  return {
    name: 'certificates',
    start({ watch }) {
      watch({
        kind: requestKind,
        project: ({ metadata }) => metadata.resourceVersion,
        keysOf: ({ name, after }) => (after === undefined ? [] : [name]),
      })
      return async (name, signal) => {
        const object = await view.get(requestKind, { name }, signal)
        if (!object) return undefined
        const request = readSigningRequest(object)
        try {
          const leftMs = endOfRequest(request) - clock.now()
          if (leftMs <= 0) {
            await remove(view, request, signal)
            return undefined
          }
          const isWaiting = await advance(request, parts, signal)
          return isWaiting ? { again: true } : { againAfterMs: leftMs }
        } catch (error) {
          // Somebody else was faster; what they did comes as an event.
          if (hasReason(error, 'Conflict', 'NotFound')) return { again: true }
          throw error
        }
      }
    },
  }
}

/** Does the next step that a request is due for; true if it is due for one that may succeed later. */
async function advance(
  request: SigningRequest,
  parts: CertificateControllerParts,
  signal: AbortSignal,
): Promise<boolean> {
  if (request.isIssued) await adoptIssued(request, parts, signal)
  const isOver =
    request.isIssued || conditionOf(request, 'Denied') || conditionOf(request, 'Failed')
  if (isOver || !signerRule(request.signer)) return false
  return conditionOf(request, 'Approved')
    ? sign(request, parts, signal)
    : decide(request, parts, signal)
}

/** Certificates that an older version issued count as reservations too. */
async function adoptIssued(
  { certificatePem, pem, requester, signer }: SigningRequest,
  { view, clock }: CertificateControllerParts,
  signal: AbortSignal,
): Promise<void> {
  if (signerRule(signer)?.usage !== 'client auth') return
  try {
    const { subject, publicKey } = parseCsr(pem)
    const nodeName = nodeNameIn({ subject })
    if (nodeName === undefined) return
    const certificate = new X509Certificate(certificatePem)
    const name = { nodeName, publicKey, requester, replaces: false, nowMs: clock.now() }
    await adoptNodeName(view, name, certificate, signal)
  } catch (error) {
    if (!(error instanceof CsrInvalid) && !isUnreadable(error)) throw error
  }
}

/** OpenSSL's error for something that is not a certificate. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof Error && String((error as { code?: unknown }).code).startsWith('ERR_OSSL')

async function decide(
  request: SigningRequest,
  parts: CertificateControllerParts,
  signal: AbortSignal,
): Promise<boolean> {
  const nowMs = parts.clock.now()
  const verdict = await decideRequest(request, { ...parts, nowMs }, signal)
  const { name, requester } = request
  if (verdict === undefined || verdict === 'no-right') {
    const why = verdict ?? 'not for the server to decide'
    parts.log.trace({ request: name, user: requester.username, why }, 'certificate not decided')
    return verdict === 'no-right'
  }
  await writeVerdict(parts.view, request, { ...verdict, nowMs }, signal)
  const { type, reason } = verdict
  parts.metrics.certificate(request.signer, type === 'Approved' ? 'approved' : 'denied')
  parts.log.info({ request: name, user: requester.username, type, reason }, 'certificate decided')
  return false
}

async function sign(
  request: SigningRequest,
  parts: CertificateControllerParts,
  signal: AbortSignal,
): Promise<boolean> {
  const { view, log, clock, maxLifetimeMs } = parts
  const ca = parts.ca()
  if (!ca.key) return false
  const nowMs = clock.now()
  const { name: from, requester } = request
  const outcome = await signRequest(request, { view, ca, maxLifetimeMs, nowMs }, signal)
  const seen = { request: from, user: requester.username }
  if ('type' in outcome) {
    await writeVerdict(view, request, { ...outcome, nowMs }, signal)
    parts.metrics.certificate(request.signer, 'failed')
    log.warn({ ...seen, reason: outcome.reason }, 'certificate refused')
    return false
  }
  await writeCertificate(view, request, outcome.certPem, signal)
  parts.metrics.certificate(request.signer, 'signed')
  const { serialNumber: serial, validTo } = outcome.certificate
  log.info({ ...seen, serial, validTo }, 'certificate signed')
  return false
}

async function remove(
  view: ClusterView,
  { object, uid }: SigningRequest,
  signal: AbortSignal,
): Promise<void> {
  await view.write('delete', object, { uid }, signal)
}
