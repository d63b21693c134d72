import { type Admission, invalid, wellKnownKinds } from '../../core/index.ts'
import { isTokenSecret, readTokenSecret } from '../tokens/stored-token.ts'

/** Refuses Secrets that are meant as tokens and could never work as one; elsewhere they are stored and ignored. */
export const tokenAdmission: Admission = ({ kind, subresource, operation, object, name }) => {
  const { secret } = wellKnownKinds
  const isSecret = kind.group === secret.group && kind.resource === secret.resource
  if (
    operation === 'delete' ||
    !isSecret ||
    subresource !== '' ||
    !object ||
    !isTokenSecret(object)
  )
    return
  const { problems } = readTokenSecret(object)
  if (problems.length === 0) return
  throw invalid(
    { group: '', kind: secret.kind },
    name,
    problems.map(({ field, message }) => ({
      reason: 'FieldValueInvalid',
      field,
      message: `Invalid value: ${message}`,
    })),
  )
}
