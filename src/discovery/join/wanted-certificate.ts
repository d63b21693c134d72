import { machineIdentity } from '../../core/index.ts'
import type { RequestedSubject } from './certificate-request.ts'

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
const longestMachineName = 63

const nodeName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** Why nobody can join as this; undefined if one can. */
export function problemOfIdentity(as: JoinIdentity): string | undefined {
  if (as.kind !== 'user')
    return nodeName.test(as.name) && (as.kind === 'node' || as.name.length <= longestMachineName)
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
