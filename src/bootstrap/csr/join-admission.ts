import { signers } from '../../authz/index.ts'
import {
  type Admission,
  type Clock,
  type ClusterView,
  forbidden,
  wellKnownKinds,
} from '../../core/index.ts'
import { CsrInvalid, parseCsr } from '../../pki/index.ts'
import { joinRefusal, nodeNameIn } from './approve.ts'
import { readSigningRequest, type SigningRequest } from './signing-request.ts'
import { tokenIdOf } from './token-limits.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

const nodeSigners: readonly string[] = [signers.kubeletClient, signers.kubeletServing]

/** Tells whoever asks with a token at once what the approval would say later: used up, bound, name taken. */
export function joinAdmission(view: ClusterView, clock: Clock): Admission {
  return async ({ kind, operation, subresource, object, user, name }, signal) => {
    const isNew =
      operation === 'create' &&
      subresource === '' &&
      kind.group === requestKind.group &&
      kind.resource === requestKind.resource
    if (!isNew || !object || tokenIdOf(user) === undefined) return
    const nodeName = nodeOf(readSigningRequest(object))
    if (nodeName === undefined) return
    const asked = { requester: user, uid: '' }
    const refusal = await joinRefusal(asked, nodeName, { view, nowMs: clock.now() }, signal)
    if (refusal) throw forbidden(kind, name, refusal.message)
  }
}

function nodeOf({ signer, pem }: SigningRequest): string | undefined {
  if (!nodeSigners.includes(signer)) return undefined
  try {
    return nodeNameIn(parseCsr(pem))
  } catch (error) {
    // The signer says what is wrong with it.
    if (error instanceof CsrInvalid) return undefined
    throw error
  }
}
