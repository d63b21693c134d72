import type { KeyObject } from 'node:crypto'
import { signers } from '../../authz/index.ts'
import {
  type Authorizer,
  type ClusterView,
  machineIdentity,
  machineNameOf,
} from '../../core/index.ts'
import { type CertificateRequest, CsrInvalid, parseCsr } from '../../pki/index.ts'
import { nodeNameIn, nodeNameRefusal } from './node-names.ts'
import { signerRule } from './signer-rules.ts'
import type { SigningRequest, Verdict } from './signing-request.ts'
import { checkToken, type Refusal, tokenIdOf } from './token-limits.ts'

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

/** What a decision is made with. */
export interface DecisionParts {
  readonly view: ClusterView
  readonly authorizer: Authorizer
  readonly nowMs: number
}

/**
 * Approves a node's request if whoever asks has the right to be approved, as Kubernetes does: a node
 * for itself, or a bootstrap token for a node whose name is free; and that of a machine for itself.
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
  const { requester, uid } = request
  const { publicKey } = asked
  const nodeName = nodeNameIn(asked) ?? ''
  const refusal = await joinRefusal({ requester, uid, publicKey }, nodeName, parts, signal)
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

/** Why a request for the certificate of a node is refused, by its token or by its name; undefined if it is not. */
export async function joinRefusal(
  { requester, uid, publicKey }: JoinRequest,
  nodeName: string,
  { view, nowMs }: Pick<DecisionParts, 'view' | 'nowMs'>,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const id = tokenIdOf(requester)
  const use = { nodeName, requestUid: uid, nowMs }
  const { refusal, replaces } =
    id === undefined ? { replaces: false } : await checkToken(view, id, use, signal)
  const request = { nodeName, publicKey, requester, replaces, nowMs }
  return refusal ?? nodeNameRefusal(view, request, signal)
}

/** What the name and the token of a joining node are checked by. */
export interface JoinRequest extends Pick<SigningRequest, 'requester' | 'uid'> {
  readonly publicKey: KeyObject
}
