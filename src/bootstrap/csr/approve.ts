import { signers } from '../../authz/index.ts'
import {
  type Authorizer,
  type ClusterView,
  goQuote,
  isRecord,
  machineIdentity,
  machineNameOf,
  wellKnown,
  wellKnownKinds,
} from '../../core/index.ts'
import { type CertificateRequest, CsrInvalid, parseCsr } from '../../pki/index.ts'
import { signerRule } from './signer-rules.ts'
import type { SigningRequest, Verdict } from './signing-request.ts'
import { type Refusal, tokenIdOf, tokenRefusal } from './token-limits.ts'

/** Whether a machine that runs workloads asks for the certificate of its own name anew, and for nothing more. */
function isMachineRenewal({ signer, requester, pem, usages }: SigningRequest): boolean {
  if (signer !== signers.client || !machineNameOf(requester)) return false
  try {
    const asked = parseCsr(pem)
    return (
      isBareSubject(asked, requester.username) &&
      signerRule(signer)?.problemOf(asked, usages) === undefined
    )
  } catch (error) {
    if (error instanceof CsrInvalid) return false
    throw error
  }
}

/** This name in the group of machines, and no other name, group or attribute. */
const isBareSubject = (
  { subject, dnsNames, ipAddresses, emailAddresses, uris, others }: CertificateRequest,
  username: string,
): boolean =>
  subject.commonName === username &&
  subject.organizations.length === 1 &&
  subject.organizations[0] === machineIdentity.group &&
  subject.otherTypes.length === 0 &&
  dnsNames.length + ipAddresses.length + emailAddresses.length + uris.length + others === 0

/** Within which a node that is alive has shown it; Kubernetes' own patience. */
const graceMs = 40_000

/**
 * Whether a node of this name is in service: it says so itself, and if it has a Lease, has renewed it.
 * Nobody here marks nodes that fell silent, so a node without a Lease is believed.
 */
async function isReadyNode(
  view: ClusterView,
  name: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const node = await view.get(wellKnownKinds.node, { name }, signal)
  if (!node || !saysReady(node['status'])) return false
  const key = { namespace: 'kube-node-lease', name }
  const lease = await view.get(wellKnownKinds.lease, key, signal)
  const renewedAt = renewalOf(lease?.['spec'])
  return renewedAt === undefined || renewedAt + graceMs > nowMs
}

function saysReady(status: unknown): boolean {
  const conditions = isRecord(status) ? status['conditions'] : undefined
  return (
    Array.isArray(conditions) &&
    conditions.some(
      (each) => isRecord(each) && each['type'] === 'Ready' && each['status'] === 'True',
    )
  )
}

function renewalOf(spec: unknown): number | undefined {
  const text = isRecord(spec) ? spec['renewTime'] : undefined
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

/** What a decision is made with. */
export interface DecisionParts {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly nowMs: number
}

/**
 * Approves a node's request if whoever asks has the right to be approved, as Kubernetes does: a node
 * for itself, or a bootstrap token for a node that is not in service; and that of a machine for itself.
 * Undefined leaves it to others; `no-right` may change with the next role.
 */
export async function decideRequest(
  request: SigningRequest,
  parts: DecisionParts,
  signal: AbortSignal,
): Promise<Verdict | 'no-right' | undefined> {
  if (isMachineRenewal(request))
    return (await may('selfmachineclient', request, parts, signal))
      ? approved('a machine may renew its own certificate')
      : 'no-right'
  const asked = nodeRequestOf(request)
  if (!asked) return undefined
  const { commonName } = asked.subject
  if (
    request.requester.username === commonName &&
    (await may('selfnodeclient', request, parts, signal))
  )
    return approved('a node may renew its own certificate')
  if (!(await may('nodeclient', request, parts, signal))) return 'no-right'
  const nodeName = nodeNameIn(asked)
  const refusal = await joinRefusal(request, nodeName, parts, signal)
  if (refusal) return { type: 'Denied', ...refusal }
  return approved('whoever asks may join nodes')
}

const approved = (why: string): Verdict => ({
  type: 'Approved',
  reason: 'AutoApproved',
  message: `approved by the server: ${why}`,
})

/** A request for a node's client certificate that will be signed once it is approved. */
function nodeRequestOf(request: SigningRequest): CertificateRequest | undefined {
  if (request.signer !== signers.kubeletClient) return undefined
  try {
    const asked = parseCsr(request.pem)
    const problem = signerRule(request.signer)?.problemOf(asked, request.usages)
    return problem === undefined ? asked : undefined
  } catch (error) {
    if (error instanceof CsrInvalid) return undefined
    throw error
  }
}

/** The node that a request names. */
export const nodeNameIn = ({ subject }: CertificateRequest): string =>
  subject.commonName.slice(wellKnown.nodeUserPrefix.length)

async function may(
  subresource: 'nodeclient' | 'selfnodeclient' | 'selfmachineclient',
  { requester }: SigningRequest,
  { authorizer }: DecisionParts,
  signal: AbortSignal,
): Promise<boolean> {
  const resource = {
    group: 'certificates.k8s.io',
    version: '*',
    resource: 'certificatesigningrequests',
    subresource,
    namespace: '',
    name: '',
  }
  const decision = await authorizer.authorize({ user: requester, verb: 'create', resource }, signal)
  return decision.allowed
}

/** Why a node may not join under this name or with this token; undefined if it may. */
export async function joinRefusal(
  { requester, uid }: Pick<SigningRequest, 'requester' | 'uid'>,
  nodeName: string,
  { view, nowMs }: Pick<DecisionParts, 'view' | 'nowMs'>,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const id = tokenIdOf(requester)
  const use = { nodeName, requestUid: uid, nowMs }
  const refusal = id === undefined ? undefined : await tokenRefusal(view, id, use, signal)
  return refusal ?? takeoverRefusal(nodeName, { view, nowMs }, signal)
}

/** Why nobody else may have the name of a node that is in service; undefined if it is not. */
export async function takeoverRefusal(
  nodeName: string,
  { view, nowMs }: Pick<DecisionParts, 'view' | 'nowMs'>,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  if (!(await isReadyNode(view, nodeName, nowMs, signal))) return undefined
  return {
    reason: 'NodeIsReady',
    message: `the node ${goQuote(nodeName)} is in service, and its name cannot be taken over; delete the Node first, or choose another name`,
  }
}
