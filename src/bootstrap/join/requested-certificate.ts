import type { KeyObject, X509Certificate } from 'node:crypto'
import { isNodeName, machineIdentity, type Secret } from '../../core/index.ts'
import type { Cluster, KubeconfigUser } from '../../kubeconfig/index.ts'
import { PemInvalid, parseCertificates, readCertificateFields } from '../../pki/trust/index.ts'
import type { DiscoveryParts } from '../discovery/options.ts'
import type { RequestedSubject } from './certificate-request.ts'
import { JoinFailed } from './errors.ts'

/** As whom to join: a node, a machine that runs workloads without being one, or a person. */
export type JoinIdentity =
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'machine'; readonly name: string }
  | { readonly kind: 'user'; readonly name: string; readonly groups: readonly string[] }

/** A certificate as the cluster's signers know it. */
export interface WantedCertificate {
  readonly subject: RequestedSubject
  readonly signerName: string
}

/** The certificate that an identity needs. */
export function wantedCertificate(as: JoinIdentity): WantedCertificate {
  if (as.kind === 'node')
    return {
      subject: { commonName: `system:node:${as.name}`, organizations: ['system:nodes'] },
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    }
  const { userPrefix, group } = machineIdentity
  const subject =
    as.kind === 'machine'
      ? { commonName: `${userPrefix}${as.name}`, organizations: [group] }
      : { commonName: as.name, organizations: as.groups }
  return { subject, signerName: 'kubernetes.io/kube-apiserver-client' }
}

/** A machine's name is the value of a label too. */
const maxMachineNameLength = 63

/** Why nobody can join as this; undefined if one can. */
export function problemOfIdentity(as: JoinIdentity): string | undefined {
  if (as.kind !== 'user')
    return isNodeName(as.name) && (as.kind === 'node' || as.name.length <= maxMachineNameLength)
      ? undefined
      : `${JSON.stringify(as.name)} cannot be the name of a ${as.kind}: small letters, digits, - and . only`
  if (as.name.trim() !== as.name || as.name === '' || /[\0-\x1f\x7f]/.test(as.name))
    return `${JSON.stringify(as.name)} cannot be a user name`
  if (as.name.startsWith('system:'))
    return `names that begin with system: are the cluster's own: ${as.name}`
  return as.groups.includes('system:masters')
    ? 'no cluster signs a certificate for the group system:masters by request'
    : undefined
}

/** The groups that the cluster will see them in. */
export const organizationsOf = (as: JoinIdentity): readonly string[] =>
  wantedCertificate(as).subject.organizations

/** Whom the cluster will know. */
export const usernameOf = (as: JoinIdentity): string => wantedCertificate(as).subject.commonName

/** Checks that a certificate is for our key and the name that was asked for, and valid now; returns it. */
export function checkCertificate(
  pem: string,
  expected: { readonly key: KeyObject; readonly wanted: WantedCertificate; readonly nowMs: number },
): X509Certificate {
  const [certificate] = parsed(pem)
  if (!certificate?.checkPrivateKey(expected.key)) throw wrong('it is for another key')
  const { commonName } = expected.wanted.subject
  if (commonNameOf(certificate) !== commonName) throw wrong(`it is not for ${commonName}`)
  if (Date.parse(certificate.validFrom) > expected.nowMs)
    throw wrong(`it is valid from ${certificate.validFrom} only: is this machine's clock late?`)
  if (Date.parse(certificate.validTo) <= expected.nowMs)
    throw wrong(`it ended at ${certificate.validTo}: is this machine's clock ahead?`)
  return certificate
}

const commonNameOf = (certificate: X509Certificate): string =>
  readCertificateFields(certificate.raw).subject.commonName

function parsed(pem: string): X509Certificate[] {
  try {
    return parseCertificates(pem)
  } catch (error) {
    if (error instanceof PemInvalid) throw wrong(error.message)
    throw error
  }
}

const wrong = (why: string): JoinFailed =>
  new JoinFailed('certificate-wrong', `the certificate that was issued cannot be used: ${why}`, {
    hint: 'see what the signer of the cluster does; --force asks anew',
  })

/** What is wanted of a cluster that was found. */
export interface JoinOrder {
  /** As discovery returned it. */
  readonly cluster: Cluster
  /** Who asks: a bootstrap token, or the certificate that is to be renewed. */
  readonly credential: KubeconfigUser
  readonly as: JoinIdentity
  /** A key whose request is already under way; a new one is made unless given. */
  readonly keyPem?: Secret
  /** For how long the certificate is wanted; the signer decides unless given, and may give less. */
  readonly lifetimeMs?: number
  /** How long to go on asking while the failure may pass. */
  readonly timeoutMs?: number
  /** How long to wait for somebody to approve the request; 0 is not at all. */
  readonly approvalTimeoutMs?: number
}

/** What happens while a certificate is asked for. */
export type JoinProgress =
  | { readonly step: 'requested'; readonly request: string; readonly resumed: boolean }
  | { readonly step: 'pending'; readonly request: string; readonly approved: boolean }

/** What joining works with; the defaults are the machine's own. */
export interface JoinParts extends DiscoveryParts {
  readonly onJoinProgress?: (progress: JoinProgress) => void
  /** Told of the key before it is used, so that it can be kept for a second run. */
  readonly keepKey?: (keyPem: Secret) => Promise<void>
}

/** A certificate of the cluster, and its key. */
export interface JoinedIdentity {
  readonly username: string
  readonly certificatePem: string
  readonly keyPem: Secret
  /** Epoch milliseconds. */
  readonly expiresAt: number
  /** Name of the CertificateSigningRequest. */
  readonly request: string
}
