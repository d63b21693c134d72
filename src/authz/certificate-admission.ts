import { isDeepStrictEqual } from 'node:util'
import {
  type Admission,
  type Authorizer,
  forbidden,
  goQuote,
  isRecord,
  type KubeObject,
  type WriteAttempt,
  wellKnown,
} from '../core/index.ts'

/** The names of Kubernetes' own signers. */
export const signers = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubeletClient: 'kubernetes.io/kube-apiserver-client-kubelet',
  kubeletServing: 'kubernetes.io/kubelet-serving',
  legacyUnknown: 'kubernetes.io/legacy-unknown',
} as const

/** Whom a certificate request names. */
export interface RequestedSubject {
  readonly commonName: string
  readonly organizations: readonly string[]
}

/** Reads the subject of `spec.request` (base64 of PEM); throws when it is not a request. */
export type SubjectReader = (request: string) => RequestedSubject | Promise<RequestedSubject>

/** What the certificate checks ask. */
export interface CertificateAdmissionOptions {
  readonly authorizer: Authorizer
  readonly readSubject: SubjectReader
}

const group = 'certificates.k8s.io'

/** True for writes of certificate signing requests. */
export const isCertificateRequest = ({ kind }: WriteAttempt): boolean =>
  kind.group === group && kind.resource === 'certificatesigningrequests'

/** The signer that a request is addressed to. */
export function signerOf(request: KubeObject): string {
  const spec = request['spec']
  return isRecord(spec) && typeof spec['signerName'] === 'string' ? spec['signerName'] : ''
}

/** Reads the subject that `spec.request` asks for. */
export function requestedSubject(
  request: KubeObject,
  readSubject: SubjectReader,
): RequestedSubject | Promise<RequestedSubject> {
  const spec = request['spec']
  const encoded = isRecord(spec) ? spec['request'] : undefined
  if (typeof encoded !== 'string') throw new TypeError('spec.request is missing')
  return readSubject(encoded)
}

/**
 * Approving and signing take the right to do so for the signer; nobody may ask for a client
 * certificate of `system:masters`, which could never be taken back by RBAC.
 */
export function certificateAdmission(options: CertificateAdmissionOptions): Admission {
  return async (attempt, signal) => {
    if (!isCertificateRequest(attempt)) return
    const { operation, subresource, object, oldObject } = attempt
    if (operation === 'create' && subresource === '' && object) {
      return refuseMasters(attempt, object, options.readSubject)
    }
    if (operation !== 'update' || !object || !oldObject) return
    const verb = verbOf(subresource, object, oldObject)
    if (!verb) return
    const signer = signerOf(oldObject)
    if (await mayUseSigner(options.authorizer, { attempt, verb, signer }, signal)) return
    throw refusal(
      attempt,
      `user not permitted to ${verb} requests with signerName ${goQuote(signer)}`,
    )
  }
}

const refusal = (attempt: WriteAttempt, why: string) => forbidden(attempt.kind, attempt.name, why)

function verbOf(subresource: string, object: KubeObject, old: KubeObject) {
  if (subresource === 'approval') return 'approve'
  if (subresource !== 'status') return undefined
  return isDeepStrictEqual(signedPart(object), signedPart(old)) ? undefined : 'sign'
}

function signedPart(request: KubeObject): unknown {
  const status = isRecord(request['status']) ? request['status'] : {}
  return [status['certificate'], status['conditions']]
}

async function refuseMasters(
  attempt: WriteAttempt,
  object: KubeObject,
  readSubject: SubjectReader,
): Promise<void> {
  if (signerOf(object) !== signers.client) return
  const { organizations } = await subjectOf(attempt, object, readSubject)
  if (organizations.includes(wellKnown.masters)) {
    throw refusal(
      attempt,
      `use of ${signers.client} signer with system:masters group is not allowed`,
    )
  }
}

async function subjectOf(attempt: WriteAttempt, object: KubeObject, readSubject: SubjectReader) {
  try {
    return await requestedSubject(object, readSubject)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'not a certificate request'
    throw refusal(attempt, `failed to parse CSR: ${why}`)
  }
}

interface SignerQuestion {
  readonly attempt: WriteAttempt
  readonly verb: 'approve' | 'sign'
  readonly signer: string
}

async function mayUseSigner(
  authorizer: Authorizer,
  { attempt, verb, signer }: SignerQuestion,
  signal: AbortSignal,
): Promise<boolean> {
  const wholeDomain = `${signer.split('/')[0]}/*`
  for (const name of [signer, wholeDomain]) {
    const resource = { group, version: '*', resource: 'signers', subresource: '', namespace: '' }
    const attributes = { user: attempt.user, verb, resource: { ...resource, name } }
    const decision = await authorizer.authorize(attributes, signal)
    if (decision.allowed) return true
  }
  return false
}
