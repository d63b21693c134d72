import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { nodeNameOf } from '../../authz/index.ts'
import { excerpt, type UserInfo, wellKnown } from '../../core/index.ts'
import { type CertificateFields, peerCertificates, readCertificateFields } from '../../pki/index.ts'

/** Who an agent has proven to be, whatever it says of itself. */
export interface AgentIdentity {
  /** Agents with the same key are the same holder of an address: a node with two agents, or a renewed certificate. */
  readonly key: string
  /** For authorization; absent where the credential names no user. */
  readonly user?: UserInfo
  /** The node that the credential is bound to. */
  readonly nodeName?: string
  /** For log lines. */
  readonly fields: Readonly<Record<string, string>>
}

/** The extra field in which Kubernetes 1.30 and newer name the node of the Pod that a token is bound to. */
const nodeNameExtra = 'authentication.kubernetes.io/node-name'

const bound = (nodeName: string | undefined): { readonly nodeName?: string } =>
  nodeName ? { nodeName } : {}

/** The identity behind the certificate of a connection; `undefined` if there is none. TLS has verified it. */
export function identityOfCertificate(socket: Socket): AgentIdentity | undefined {
  const [certificate] = peerCertificates(socket)
  if (!certificate) return undefined
  const { serialNumber: serial } = certificate
  const { subject, subjectDer } = nameIn(certificate)
  const { commonName, organizations } = subject
  const isNamed = commonName !== '' || organizations.length > 0
  const user = { username: commonName, groups: [...organizations, wellKnown.authenticated] }
  const shown = [...organizations.map((name) => `O=${name}`), `CN=${commonName}`].join(',')
  return {
    // All of the name, so that no other one reads the same.
    key: isNamed ? `certificate ${subjectDer.toString('hex')}` : `serial ${serial}`,
    ...(commonName !== '' && { user, ...bound(nodeNameOf(user)) }),
    fields: { certificate: excerpt(shown), serial },
  }
}

const noName = {
  subject: { commonName: '', organizations: [] },
  subjectDer: Buffer.alloc(0),
} as const

function nameIn(certificate: X509Certificate): Pick<CertificateFields, 'subjectDer'> & {
  readonly subject: Pick<CertificateFields['subject'], 'commonName' | 'organizations'>
} {
  try {
    return readCertificateFields(certificate.raw)
  } catch {
    // OpenSSL accepts names that cannot be read here; such a certificate proves no name.
    return noName
  }
}

/** The identity behind a token that the cluster has reviewed. */
export function identityOfToken(user: UserInfo): AgentIdentity {
  const nodes = user.extra?.[nodeNameExtra] ?? []
  const nodeName = nodes.length === 1 ? nodes[0] : undefined
  return {
    key: `token ${user.username} ${nodeName ?? ''}`,
    user,
    ...bound(nodeName),
    fields: { user: excerpt(user.username), ...(nodeName && { node: excerpt(nodeName) }) },
  }
}

/** An agent in this process. */
export const localIdentity = (agentId: string): AgentIdentity => ({
  key: `local ${agentId}`,
  fields: {},
})
