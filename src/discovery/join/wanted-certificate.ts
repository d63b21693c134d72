import type { RequestedSubject } from './certificate-request.ts'

/** As whom to join: a machine, or a person. */
export type JoinIdentity =
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'user'; readonly name: string; readonly groups: readonly string[] }

/** A certificate as the cluster's signers know it. */
export interface WantedCertificate {
  readonly subject: RequestedSubject
  readonly signerName: string
}

/** The certificate that an identity needs. */
export function wantedCertificate(as: JoinIdentity): WantedCertificate {
  return as.kind === 'node'
    ? {
        subject: { commonName: `system:node:${as.name}`, organizations: ['system:nodes'] },
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      }
    : {
        subject: { commonName: as.name, organizations: as.groups },
        signerName: 'kubernetes.io/kube-apiserver-client',
      }
}

const nodeName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** Why nobody can join as this; undefined if one can. */
export function problemOfIdentity(as: JoinIdentity): string | undefined {
  if (as.kind === 'node')
    return nodeName.test(as.name)
      ? undefined
      : `${JSON.stringify(as.name)} cannot be the name of a node: small letters, digits, - and . only`
  if (as.name.trim() !== as.name || as.name === '' || /[\0-\x1f\x7f]/.test(as.name))
    return `${JSON.stringify(as.name)} cannot be a user name`
  if (as.name.startsWith('system:'))
    return `names that begin with system: are the cluster's own: ${as.name}`
  return as.groups.includes('system:masters')
    ? 'no cluster signs a certificate for the group system:masters by request'
    : undefined
}

/** Whom the cluster will know. */
export const usernameOf = (as: JoinIdentity): string => wantedCertificate(as).subject.commonName
