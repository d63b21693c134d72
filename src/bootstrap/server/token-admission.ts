import { isSuperuser } from '../../authz/index.ts'
import {
  type Admission,
  forbidden,
  invalid,
  isRecord,
  type KubeObject,
  wellKnownKinds,
} from '../../core/index.ts'
import {
  isTokenSecret,
  readTokenSecret,
  replaceField,
  tokenNamespace,
} from '../tokens/stored-token.ts'

/**
 * Refuses Secrets that are meant as tokens and could never work as one, and tokens that replace a
 * machine unless an administrator writes them.
 */
export const tokenAdmission: Admission = (attempt) => {
  const { kind, subresource, operation, object, oldObject, name, namespace, user } = attempt
  const { secret } = wellKnownKinds
  const isSecret = kind.group === secret.group && kind.resource === secret.resource
  if (operation === 'delete' || !isSecret || subresource !== '' || !object) return
  const replacing = namespace === tokenNamespace && [object, oldObject].some(replaces)
  if (replacing && !isSuperuser(user))
    throw forbidden(kind, name, `only administrators write tokens with ${replaceField}`)
  if (!isTokenSecret(object)) return
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

const replaces = (secret: KubeObject | undefined): boolean =>
  isRecord(secret?.['data']) && Object.hasOwn(secret['data'], replaceField)
