import { signers } from '../../authz/index.ts'
import type { ClusterView } from '../../core/index.ts'
import {
  backdateMs,
  type CertificateAuthority,
  type CertificateRequest,
  CsrInvalid,
  type IssuedCertificate,
  parseCsr,
  signCsr,
} from '../../pki/index.ts'
import { nodeNameIn, takeoverRefusal } from './approve.ts'
import { signerRule } from './signer-rules.ts'
import { conditionOf, type SigningRequest, type Verdict } from './signing-request.ts'
import { type Refusal, takeUse, tokenGone, tokenIdOf } from './token-limits.ts'

/** What requests are signed with. */
export interface SigningParts {
  readonly view: ClusterView
  readonly ca: CertificateAuthority
  /** No certificate is good for longer. */
  readonly longestMs: number
  readonly nowMs: number
}

const shortestMs = 10 * 60_000
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
    if (problem !== undefined) return failed('SignerValidationFailure', problem)
    const refusal = await refusalNow(request, asked, parts, signal)
    if (refusal) return failed(refusal.reason, refusal.message)
    return await signCsr(asked, {
      ca: parts.ca,
      usages: [rule.usage],
      now: parts.nowMs,
      lifetimeMs: lifetimeOf(request, parts.longestMs),
    })
  } catch (error) {
    if (error instanceof CsrInvalid) return failed('SignerValidationFailure', error.message)
    throw error
  }
}

const failed = (reason: string, message: string): Verdict => ({ type: 'Failed', reason, message })

/** Why a token gives no certificate now, whatever it was when the request was approved; a use is counted otherwise. */
async function refusalNow(
  request: SigningRequest,
  asked: CertificateRequest,
  parts: SigningParts,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const id = tokenIdOf(request.requester)
  if (id === undefined || request.signer !== signers.kubeletClient) return undefined
  const { view, nowMs } = parts
  const nodeName = nodeNameIn(asked)
  const taken = await takeoverRefusal(nodeName, parts, signal)
  if (taken) return taken
  const use = { nodeName, requestUid: request.uid, nowMs }
  const refusal = await takeUse(view, id, use, signal)
  // Whoever approves by hand may do so after the token's end; our own approval rests on the token.
  const isByHand = conditionOf(request, 'Approved')?.reason !== 'AutoApproved'
  return refusal?.reason === tokenGone && isByHand ? undefined : refusal
}

/** What is asked for, within bounds; counted from the moment to which the certificate reaches back. */
function lifetimeOf({ expirationSeconds }: SigningRequest, longestMs: number): number {
  const asked = expirationSeconds === undefined ? longestMs : expirationSeconds * 1000
  const granted = Math.min(Math.max(asked, shortestMs), longestMs)
  return granted < shortLivedMs ? granted : granted - backdateMs
}
