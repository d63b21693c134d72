import { badRequest, isRecord } from '../../core/index.ts'
import { type GroupVersionKind, schemaOf } from '../schema/index.ts'
import { shownType } from '../schema/scalar-values.ts'

/** The `kind` and `apiVersion` of a body, empty where it has none. */
export interface TypeMeta {
  readonly kind: string
  readonly apiVersion: string
}

/** Reads `kind` and `apiVersion` of a decoded JSON value. */
export function readTypeMeta(value: unknown): TypeMeta {
  if (value === null) return { kind: '', apiVersion: '' }
  if (!isRecord(value))
    throw badRequest(`json: cannot unmarshal ${shownType(value)} into Go value of type object`)
  const read = (name: 'kind' | 'apiVersion'): string => {
    const text = value[name] ?? ''
    if (typeof text === 'string') return text
    throw badRequest(
      `json: cannot unmarshal ${shownType(text)} into Go struct field .${name} of type string`,
    )
  }
  return { kind: read('kind'), apiVersion: read('apiVersion') }
}

/** What the body says it is, with the expected kind where it says nothing. */
export function actualKind(sent: TypeMeta, expected: GroupVersionKind): GroupVersionKind {
  const parts = sent.apiVersion.split('/')
  if (parts.length > 2) throw badRequest(`unexpected GroupVersion string: ${sent.apiVersion}`)
  const version = parts.pop() ?? ''
  const group = parts[0] ?? ''
  const kind = sent.kind || expected.kind
  return sent.apiVersion === '' ? { ...expected, kind } : { group, version, kind }
}

const shownVersion = ({ group, version }: GroupVersionKind): string =>
  group === '' ? version : `${group}/${version}`

/** The error for a body that cannot be taken for the kind that was expected. */
export const cannotBeHandled = (
  actual: GroupVersionKind,
  expected: GroupVersionKind,
  why: string,
) =>
  badRequest(
    `${actual.kind} in version "${actual.version}" cannot be handled as a ${expected.kind}: ${why}`,
  )

const optionsKind = /^(Create|Delete|Get|List|Patch|Update)Options$/

/** Says that nobody knows the kind. */
export const notRegistered = (kind: GroupVersionKind): string =>
  `no kind "${kind.kind}" is registered for version "${shownVersion(kind)}"`

/** Refuses a body of another kind or version than the one that its URL names. */
export function checkKind(actual: GroupVersionKind, expected: GroupVersionKind): void {
  if (schemaOf(actual) === undefined) throw cannotBeHandled(actual, expected, notRegistered(actual))
  if (actual.kind !== expected.kind) {
    const internal = expected.group === '' ? 'core' : expected.group.split('.', 1)[0]
    const from = `${actual.version}.${actual.kind}`
    const into = `${internal}.${expected.kind}`
    throw cannotBeHandled(actual, expected, `converting (${from}) to (${into}): unknown conversion`)
  }
  const same = actual.group === expected.group && actual.version === expected.version
  if (!same && !optionsKind.test(actual.kind))
    throw badRequest(
      `the API version in the data (${shownVersion(actual)}) does not match the expected API version (${shownVersion(expected)})`,
    )
}
