import { isRecord } from '../../../core/index.ts'
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { dns1123LabelProblems } from '../../validation/names.ts'
import { quantityNanos } from '../../validation/quantities.ts'
import { type Fields, isUnset, numberAt, recordsAt, textAt } from '../fields.ts'

const modeWords = 'must be a number between 0 and 0777 (octal), both inclusive'

function modeProblems(source: Fields, key: string, field: string): FieldProblem[] {
  const mode = numberAt(source, key)
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return []
  return [invalidValue(`${field}.${key}`, mode, modeWords)]
}

const backstepProblems = (path: string, field: string): FieldProblem[] =>
  path.split('/').includes('..') ? [invalidValue(field, path, "must not contain '..'")] : []

/** Problems of a path that must stay below where it starts. */
export const descendingPathProblems = (path: string, field: string): FieldProblem[] => [
  ...(path.startsWith('/') ? [invalidValue(field, path, 'must be a relative path')] : []),
  ...backstepProblems(path, field),
]

const ownPathProblems = (path: string, field: string): FieldProblem[] => [
  ...descendingPathProblems(path, field),
  ...(path.startsWith('..') && !path.startsWith('../')
    ? [invalidValue(field, path, "must not start with '..'")]
    : []),
]

const itemProblems = (item: Fields, field: string): FieldProblem[] => [
  ...(textAt(item, 'key') ? [] : [required(`${field}.key`)]),
  ...(textAt(item, 'path') ? [] : [required(`${field}.path`)]),
  ...ownPathProblems(textAt(item, 'path'), `${field}.path`),
  ...modeProblems(item, 'mode', field),
]

const filesProblems =
  (nameKey: string) =>
  (source: Fields, field: string): FieldProblem[] => [
    ...(textAt(source, nameKey) ? [] : [required(`${field}.${nameKey}`)]),
    ...modeProblems(source, 'defaultMode', field),
    ...problemsOfEach(recordsAt(source, 'items'), (item, index) =>
      itemProblems(item, `${field}.items[${index}]`),
    ),
  ]

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]

function hostPathProblems(source: Fields, field: string): FieldProblem[] {
  const [path, type] = [textAt(source, 'path'), textAt(source, 'type')]
  if (!path) return [required(`${field}.path`)]
  return [
    ...backstepProblems(path, `${field}.path`),
    ...(hostPathTypes.includes(type) ? [] : [notSupported(`${field}.type`, type, hostPathTypes)]),
  ]
}

function emptyDirProblems(source: Fields, field: string): FieldProblem[] {
  if ((quantityNanos(source['sizeLimit']) ?? 0n) >= 0n) return []
  const words = 'SizeLimit field must be a valid resource quantity'
  return [forbiddenValue(`${field}.sizeLimit`, words)]
}

const needs =
  (...keys: string[]) =>
  (source: Fields, field: string): FieldProblem[] =>
    keys.filter((key) => textAt(source, key) === '').map((key) => required(`${field}.${key}`))

const tokenProblems = (token: Fields, field: string): FieldProblem[] => {
  const seconds = numberAt(token, 'expirationSeconds') ?? 3600
  const path = textAt(token, 'path')
  return [
    ...(seconds < 600
      ? [
          invalidValue(
            `${field}.expirationSeconds`,
            seconds,
            'may not specify a duration less than 10 minutes',
          ),
        ]
      : []),
    ...(seconds > 2 ** 32
      ? [
          invalidValue(
            `${field}.expirationSeconds`,
            seconds,
            'may not specify a duration larger than 2^32 seconds',
          ),
        ]
      : []),
    ...(path ? ownPathProblems(path, `${field}.path`) : [required(`${field}.path`)]),
  ]
}

function projectionProblems(source: Fields, field: string): FieldProblem[] {
  const kinds = Object.keys(source).filter((key) => isRecord(source[key]))
  const items = (key: string): FieldProblem[] =>
    problemsOfEach(recordsAt(isRecord(source[key]) ? source[key] : {}, 'items'), (item, index) =>
      itemProblems(item, `${field}.${key}.items[${index}]`),
    )
  const token = source['serviceAccountToken']
  return [
    ...items('secret'),
    ...items('configMap'),
    ...(isRecord(token) ? tokenProblems(token, `${field}.serviceAccountToken`) : []),
    ...(kinds.length > 1
      ? [forbiddenValue(field, 'may not specify more than 1 volume type per source')]
      : []),
    ...(kinds.length === 0 ? [required(field, 'must specify a volume type')] : []),
  ]
}

const projectedProblems = (source: Fields, field: string): FieldProblem[] => [
  ...modeProblems(source, 'defaultMode', field),
  ...problemsOfEach(recordsAt(source, 'sources'), (one, index) =>
    projectionProblems(one, `${field}.sources[${index}]`),
  ),
]

/** What Kubernetes checks of the sources that matter where no kubelet mounts them. */
const sourceRules = new Map<string, (source: Fields, field: string) => FieldProblem[]>([
  ['emptyDir', emptyDirProblems],
  ['hostPath', hostPathProblems],
  ['secret', filesProblems('secretName')],
  ['configMap', filesProblems('name')],
  ['persistentVolumeClaim', needs('claimName')],
  ['nfs', needs('server', 'path')],
  ['csi', needs('driver')],
  ['projected', projectedProblems],
])

/** The order in which Kubernetes looks; the first source it finds counts. */
const sourceOrder =
  'emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected scaleIO csi ephemeral image'.split(
    ' ',
  )

function sourceProblems(volume: Fields, field: string): FieldProblem[] {
  const sources = Object.keys(volume)
    .filter((key) => key !== 'name' && isRecord(volume[key]))
    .sort((a, b) => sourceOrder.indexOf(a) - sourceOrder.indexOf(b))
  const [first] = sources
  if (first === undefined) return [required(field, 'must specify a volume type')]
  const rule = sourceRules.get(first)
  const source = volume[first]
  return [
    ...(rule && isRecord(source) ? rule(source, `${field}.${first}`) : []),
    ...sources
      .slice(1)
      .map((key) => forbiddenValue(`${field}.${key}`, 'may not specify more than 1 volume type')),
  ]
}

/** Problems of the volumes of a pod, and the names of those without any. */
export function volumeProblems(spec: Fields): { problems: FieldProblem[]; names: Set<string> } {
  const names = new Set<string>()
  const problems = problemsOfEach(recordsAt(spec, 'volumes'), (volume, index) => {
    const field = `spec.volumes[${index}]`
    const name = textAt(volume, 'name')
    const found = [
      ...sourceProblems(volume, field),
      ...(name
        ? invalidEach(`${field}.name`, name, dns1123LabelProblems(name))
        : [required(`${field}.name`)]),
      ...(names.has(name) ? [duplicateValue(`${field}.name`, name)] : []),
    ]
    if (found.length === 0) names.add(name)
    return found
  })
  return { problems, names }
}

/** Problems of where a container mounts volumes. */
export function mountProblems(
  container: Fields,
  volumes: ReadonlySet<string>,
  field: string,
): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(recordsAt(container, 'volumeMounts'), (mount, index) => {
    const at = `${field}.volumeMounts[${index}]`
    const [name, path, subPath] = [
      textAt(mount, 'name'),
      textAt(mount, 'mountPath'),
      textAt(mount, 'subPath'),
    ]
    const isRepeated = seen.has(path)
    seen.add(path)
    return [
      ...(name ? [] : [required(`${at}.name`)]),
      ...(volumes.has(name)
        ? []
        : [{ type: 'FieldValueNotFound', field: `${at}.name`, badValue: name } as const]),
      ...(path ? [] : [required(`${at}.mountPath`)]),
      ...(isRepeated ? [invalidValue(`${at}.mountPath`, path, 'must be unique')] : []),
      // Kubernetes leaves the index out of these two paths.
      ...(subPath ? descendingPathProblems(subPath, `${field}.volumeMounts.subPath`) : []),
      ...subPathExprProblems(mount, subPath, field, at),
    ]
  })
}

function subPathExprProblems(
  mount: Fields,
  subPath: string,
  field: string,
  at: string,
): FieldProblem[] {
  const expression = mount['subPathExpr']
  if (isUnset(expression) || typeof expression !== 'string') return []
  const words = 'subPathExpr and subPath are mutually exclusive'
  return [
    ...(subPath ? [invalidValue(`${at}.subPathExpr`, expression, words)] : []),
    ...descendingPathProblems(expression, `${field}.volumeMounts.subPathExpr`),
  ]
}
