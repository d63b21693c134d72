import type { KubeObject } from '../../core/index.ts'
import { type FieldProblem, invalidValue, required, tooLong } from '../validation/field-problem.ts'
import { fieldIsImmutable } from '../validation/metadata.ts'
import { dataKeyProblems, decodedBytes, immutableDataProblems, maxDataBytes } from './config-map.ts'
import { ageColumn, column, defineKind, nameColumn } from './define-kind.ts'
import { fieldsAt, setDefault, textAt, textMapAt } from './fields.ts'

function foldStringData(draft: KubeObject): void {
  const texts = Object.entries(textMapAt(draft, 'stringData'))
  delete draft['stringData']
  if (texts.length === 0) return
  draft['data'] = Object.fromEntries([
    ...Object.entries(fieldsAt(draft, 'data')),
    ...texts.map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  ])
}

type Data = Readonly<Record<string, string>>

const requiredKeys = (data: Data, keys: readonly string[]): FieldProblem[] =>
  keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`))

function jsonObjectProblems(data: Data, key: string): FieldProblem[] {
  const encoded = data[key]
  if (encoded === undefined) return [required(`data[${key}]`)]
  const why = jsonProblem(Buffer.from(encoded, 'base64').toString())
  return why ? [invalidValue(`data[${key}]`, '<secret contents redacted>', why)] : []
}

function jsonProblem(text: string): string | undefined {
  if (text.trim() === '') return 'unexpected end of JSON input'
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && !Array.isArray(value)
    return isObject ? undefined : 'must be a JSON object'
  } catch {
    // The parser's own words would quote the secret.
    return 'must be a JSON object'
  }
}

const nameAnnotation = 'kubernetes.io/service-account.name'

/** What a Secret of a known type must have. */
const rulesOfTypes = new Map<string, (data: Data, draft: KubeObject) => FieldProblem[]>(
  Object.entries({
    'kubernetes.io/service-account-token': (_data, draft) =>
      draft.metadata.annotations?.[nameAnnotation]
        ? []
        : [required(`metadata.annotations[${nameAnnotation}]`)],
    'kubernetes.io/dockercfg': (data) => jsonObjectProblems(data, '.dockercfg'),
    'kubernetes.io/dockerconfigjson': (data) => jsonObjectProblems(data, '.dockerconfigjson'),
    'kubernetes.io/basic-auth': (data) =>
      Object.hasOwn(data, 'username') || Object.hasOwn(data, 'password')
        ? []
        : requiredKeys(data, ['username', 'password']),
    'kubernetes.io/ssh-auth': (data) =>
      data['ssh-privatekey'] ? [] : [required('data[ssh-privatekey]')],
    'kubernetes.io/tls': (data) => requiredKeys(data, ['tls.crt', 'tls.key']),
  }),
)

function validate(draft: KubeObject): FieldProblem[] {
  const data = textMapAt(draft, 'data')
  const problems = dataKeyProblems(data, 'data')
  let bytes = 0
  for (const value of Object.values(data)) bytes += decodedBytes(value)
  if (bytes > maxDataBytes) problems.push(tooLong('data', maxDataBytes))
  const rule = rulesOfTypes.get(textAt(draft, 'type'))
  return rule ? [...problems, ...rule(data, draft)] : problems
}

function validateUpdate(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const type = textAt(draft, 'type')
  return [
    ...(type === textAt(stored, 'type') ? [] : [invalidValue('type', type, fieldIsImmutable)]),
    ...immutableDataProblems(draft, stored, ['data']),
  ]
}

/** Bytes that only few may see. */
export const secret = defineKind({
  kind: { group: '', version: 'v1', kind: 'Secret', resource: 'secrets', namespaced: true },
  selectableFields: { type: (object) => textAt(object, 'type') },
  applyDefaults: (draft) => {
    foldStringData(draft)
    setDefault(draft, 'type', 'Opaque')
  },
  validate,
  validateUpdate,
  columns: [
    nameColumn,
    column('Type', 'What the data is for.', (object) => textAt(object, 'type')),
    column('Data', 'Number of keys.', (object) => Object.keys(fieldsAt(object, 'data')).length),
    ageColumn,
  ],
})
