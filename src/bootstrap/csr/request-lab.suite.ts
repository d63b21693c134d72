import { type KeyObject, randomUUID } from 'node:crypto'
import { type LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import { signers } from '../../authz/index.ts'
import {
  type Authorizer,
  isRecord,
  type KubeObject,
  kubeTime,
  systemClock,
  type UserInfo,
  wellKnownKinds,
} from '../../core/index.ts'
import { attribute, distinguishedName } from '../../pki/certificate-lab.suite.ts'
import { labCsr } from '../../pki/csr-lab.suite.ts'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
} from '../../pki/index.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

const dayMs = 24 * 3_600_000

/** A CA of the test's own. */
export async function labAuthority(): Promise<CertificateAuthority> {
  const key = await generateEcKey()
  const order = { commonName: 'kubernetes', key, now: Date.now(), lifetimeMs: 3650 * dayMs }
  const made = await issueAuthorityCertificate(order)
  return { name: 'cluster CA', certificate: made.certificate, bundlePem: made.certPem, key }
}

/** Whoever shows the token with this id. */
export const bearerOf = (id: string): UserInfo => ({
  username: `system:bootstrap:${id}`,
  groups: ['system:bootstrappers', 'system:authenticated'],
})

/** A node with a certificate. */
export const nodeUser = (name: string): UserInfo => ({
  username: `system:node:${name}`,
  groups: ['system:nodes', 'system:authenticated'],
})

/** Rights as kubeadm gives them: tokens join nodes, nodes renew themselves. */
export const joinRights: Authorizer = {
  authorize: ({ user, verb, resource }) => {
    const wanted = `${verb} ${resource?.group}/${resource?.resource}/${resource?.subresource}`
    const path = 'create certificates.k8s.io/certificatesigningrequests'
    const allowed =
      (wanted === `${path}/nodeclient` && user.groups.includes('system:bootstrappers')) ||
      (wanted === `${path}/selfnodeclient` && user.groups.includes('system:nodes'))
    return { allowed, reason: '' }
  },
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
}

/** PEM of a node's request. */
export const nodeCsr = (node: string, key?: KeyObject): string =>
  labCsr({
    ...(key && { key }),
    subject: distinguishedName(
      [attribute('O', 'system:nodes')],
      [attribute('CN', `system:node:${node}`)],
    ),
  })

/** A request as the API would have stored it. */
export interface LabRequest {
  readonly name: string
  readonly pem: string
  readonly requester: UserInfo
  readonly signer?: string
  readonly usages?: readonly string[]
  readonly expirationSeconds?: number
  readonly conditions?: readonly Readonly<Record<string, string>>[]
  readonly createdAtMs?: number
  /** PEM of the certificate that was issued for it. */
  readonly certificate?: string
}

/** Puts a request into the cluster in the name of its requester. */
export async function submit(cluster: LocalCluster, order: LabRequest): Promise<void> {
  const { name, pem, requester, conditions = [] } = order
  await cluster.smuggle(requestKind, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: {
      name,
      uid: randomUUID(),
      creationTimestamp: kubeTime(order.createdAtMs ?? systemClock.now()),
    },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: order.signer ?? signers.kubeletClient,
      usages: order.usages ?? ['digital signature', 'client auth'],
      ...(order.expirationSeconds !== undefined && { expirationSeconds: order.expirationSeconds }),
      username: requester.username,
      groups: requester.groups,
      ...(requester.extra && { extra: requester.extra }),
    },
    status: {
      ...(conditions.length > 0 && { conditions }),
      ...(order.certificate !== undefined && {
        certificate: Buffer.from(order.certificate).toString('base64'),
      }),
    },
  })
}

/** What has become of a request: `Approved:AutoApproved` and the like, and its certificate. */
export function outcomeOf(request: KubeObject): { said: string[]; certificate: string } {
  const status = isRecord(request['status']) ? request['status'] : {}
  const conditions = Array.isArray(status['conditions']) ? status['conditions'] : []
  const { certificate } = status
  return {
    said: conditions.filter(isRecord).map(({ type, reason }) => [type, reason].join(':')),
    certificate:
      typeof certificate === 'string' ? Buffer.from(certificate, 'base64').toString() : '',
  }
}

/** Waits until a request is issued, denied or failed. */
export const untilAnswered = (cluster: LocalCluster, name: string) =>
  cluster
    .untilObject(requestKind, { name }, (request) => {
      const { said, certificate } = outcomeOf(request)
      return certificate !== '' || said.some((each) => /^(Denied|Failed):/.test(each))
    })
    .then(outcomeOf)
