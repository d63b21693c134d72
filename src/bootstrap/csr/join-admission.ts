import {
  type Admission,
  type Clock,
  type ClusterView,
  forbidden,
  wellKnownKinds,
} from '../../core/index.ts'
import { type CertificateRequest, CsrInvalid, parseCsr } from '../../pki/index.ts'
import { joinRefusal } from './approve.ts'
import { nodeNameIn } from './node-names.ts'
import { signerRule } from './signer-rules.ts'
import { readSigningRequest, type SigningRequest } from './signing-request.ts'
import { tokenIdOf } from './token-limits.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

/** Refuses requests of tokens at once that approval or signing would refuse later: used up, bound, name reserved. */
export function joinAdmission(view: ClusterView, clock: Clock): Admission {
  return async ({ kind, operation, subresource, object, user, name }, signal) => {
    const isNew =
      operation === 'create' &&
      subresource === '' &&
      kind.group === requestKind.group &&
      kind.resource === requestKind.resource
    if (!isNew || !object || tokenIdOf(user) === undefined) return
    const requested = parsed(readSigningRequest(object))
    const nodeName = requested && nodeNameIn(requested)
    if (!requested || nodeName === undefined) return
    const request = { requester: user, uid: '', publicKey: requested.publicKey }
    const refusal = await joinRefusal(request, nodeName, { view, nowMs: clock.now() }, signal)
    if (refusal) throw forbidden(kind, name, refusal.message)
  }
}

function parsed({ signer, pem }: SigningRequest): CertificateRequest | undefined {
  if (!signerRule(signer)) return undefined
  try {
    return parseCsr(pem)
  } catch (error) {
    // The signer says what is wrong with it.
    if (error instanceof CsrInvalid) return undefined
    throw error
  }
}
