import type { ClusterView } from '../../core/index.ts'
import {
  backdateMs,
  type CertificateAuthority,
  type CertificateRequest,
  type CertificateUsage,
  CsrInvalid,
  type IssuedCertificate,
  parseCsr,
  signCsr,
} from '../../pki/index.ts'
import { type NodeNameRequest, nodeNameIn, nodeNameRefusal, reserveNodeName } from './node-names.ts'
import { signerRule } from './signer-rules.ts'
import { conditionOf, type SigningRequest, type Verdict } from './signing-request.ts'
import {
  checkToken,
  type Refusal,
  type TokenVerdict,
  takeUse,
  tokenGone,
  tokenIdOf,
} from './token-limits.ts'

/** What requests are signed with. */
export interface SigningParts {
  readonly view: ClusterView
  readonly ca: CertificateAuthority
  /** Maximum lifetime of a certificate. */
  readonly maxLifetimeMs: number
  readonly nowMs: number
}

const minLifetimeMs = 10 * 60_000
/** What lives shorter than this is not cut by the time that it reaches back. */
const shortLivedMs = 8 * 3_600_000

/** Signs a request that was approved, or says why it never will be. */
export async function signRequest(
  request: SigningRequest,
  parts: SigningParts,
  signal: AbortSignal,
): Promise<IssuedCertificate | Verdict> {
  const rule = signerRule(request.signer)
  if (!rule) throw new Error(`${request.signer} is somebody else's signer`)
  try {
    const asked = parseCsr(request.pem)
    const problem = rule.problemOf(asked, request.usages)
    if (problem !== undefined) return unsigned(problem)
    return await signAsNode(request, { asked, usage: rule.usage }, parts, signal)
  } catch (error) {
    if (error instanceof CsrInvalid) return unsigned(error.message)
    throw error
  }
}

const failed = (refusal: Refusal): Verdict => ({ type: 'Failed', ...refusal })
const unsigned = (message: string): Verdict =>
  failed({ reason: 'SignerValidationFailure', message })

interface CheckedRequest {
  readonly asked: CertificateRequest
  readonly usage: CertificateUsage
}

/** Signs; a certificate in the name of a node only where its token and its name permit it now. */
async function signAsNode(
  request: SigningRequest,
  { asked, usage }: CheckedRequest,
  parts: SigningParts,
  signal: AbortSignal,
): Promise<IssuedCertificate | Verdict> {
  const issue = () =>
    signCsr(asked, {
      ca: parts.ca,
      usages: [usage],
      now: parts.nowMs,
      lifetimeMs: lifetimeOf(request, parts.maxLifetimeMs),
    })
  const { requester } = request
  const nodeName = nodeNameIn(asked)
  const isOwnServing = usage === 'server auth' && requester.username === asked.subject.commonName
  if (nodeName === undefined || isOwnServing) return issue()
  const { view, nowMs } = parts
  const name = { nodeName, publicKey: asked.publicKey, requester, replaces: false, nowMs }
  const checked = await refusalNow(request, name, parts, signal)
  if (checked.refusal) return failed(checked.refusal)
  const issued = await issue()
  if (usage !== 'client auth') return issued
  const { replaces } = checked
  const lost = await reserveNodeName(view, { ...name, replaces }, issued.certificate, signal)
  return lost ? failed(lost) : issued
}

/**
 * Why there is no certificate now, whatever held when the request was approved. Counts a use of the
 * token otherwise, after the name was checked: a name that is taken costs no use.
 */
async function refusalNow(
  request: SigningRequest,
  name: NodeNameRequest,
  { view, nowMs }: SigningParts,
  signal: AbortSignal,
): Promise<TokenVerdict> {
  const id = tokenIdOf(request.requester)
  const use = { nodeName: name.nodeName, requestUid: request.uid, nowMs }
  const shown =
    id === undefined ? anyName : byHand(request, await checkToken(view, id, use, signal))
  if (shown.refusal) return shown
  const { replaces } = shown
  const refusal = await nodeNameRefusal(view, { ...name, replaces }, signal)
  if (refusal) return { refusal, replaces }
  return id === undefined ? anyName : byHand(request, await takeUse(view, id, use, signal))
}

const anyName: TokenVerdict = { replaces: false }

/** An administrator may approve after the token's end; our own approval rests on the token. */
function byHand(request: SigningRequest, verdict: TokenVerdict): TokenVerdict {
  const isByHand = conditionOf(request, 'Approved')?.reason !== 'AutoApproved'
  return verdict.refusal?.reason === tokenGone && isByHand ? anyName : verdict
}

/** What is asked for, within bounds; counted from the moment to which the certificate reaches back. */
function lifetimeOf({ expirationSeconds }: SigningRequest, maxLifetimeMs: number): number {
  const asked = expirationSeconds === undefined ? maxLifetimeMs : expirationSeconds * 1000
  const granted = Math.min(Math.max(asked, minLifetimeMs), maxLifetimeMs)
  return granted < shortLivedMs ? granted : granted - backdateMs
}
