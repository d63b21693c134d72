import {
  isRecord,
  type KubeObject,
  machineIdentity,
  type ResourceAttributes,
  type WriteAttempt,
  wellKnownKinds,
} from '../../core/index.ts'
import { CsrInvalid, parseCsr } from '../../pki/index.ts'

const { group, resource } = wellKnownKinds.certificateSigningRequest

/** Whether it is about requests for certificates themselves, and not about their approval. */
export const isCertificateRequest = (
  asked: Pick<ResourceAttributes, 'group' | 'resource' | 'subresource'>,
): boolean => asked.group === group && asked.resource === resource && asked.subresource === ''

/** Why a machine may not write this request for a certificate; undefined if it renews its own. */
export function problemOfCertificate({
  kind,
  operation,
  subresource,
  object,
  user,
}: WriteAttempt): string | undefined {
  if (operation !== 'create' || !object || !isCertificateRequest({ ...kind, subresource }))
    return 'a machine can only ask for certificates'
  const subject = subjectOf(object)
  const isOwn =
    subject?.commonName === user.username &&
    subject.organizations.length === 1 &&
    subject.organizations[0] === machineIdentity.group
  return isOwn ? undefined : 'a machine can only ask for a certificate of its own name and group'
}

function subjectOf({ spec }: KubeObject) {
  const request = isRecord(spec) ? spec['request'] : undefined
  if (typeof request !== 'string') return undefined
  try {
    return parseCsr(Buffer.from(request, 'base64').toString()).subject
  } catch (error) {
    if (error instanceof CsrInvalid) return undefined
    throw error
  }
}
