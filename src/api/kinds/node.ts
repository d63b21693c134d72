import type { KubeObject } from '../../core/index.ts'
import {
  asGoStruct,
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
} from '../validation/field-problem.ts'
import { cidrProblems } from '../validation/ip.ts'
import { quantityProblems } from '../validation/quantities.ts'
import {
  ageColumn,
  type Column,
  column,
  defineKind,
  nameColumn,
  statusSubresource,
  wideColumn,
} from './define-kind.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  flagAt,
  isUnset,
  numberAt,
  recordsAt,
  textAt,
  textsAt,
} from './fields.ts'
import { taintProblems } from './taints.ts'

const rolePrefix = 'node-role.kubernetes.io/'
const roleLabel = 'kubernetes.io/role'

function statusOf(object: KubeObject): string {
  const conditions = recordsAt(fieldsAt(object, 'status'), 'conditions')
  const ready = conditions.findLast((condition) => condition['type'] === 'Ready')
  const readiness = ready ? (ready['status'] === 'True' ? 'Ready' : 'NotReady') : 'Unknown'
  const isCordoned = flagAt(fieldsAt(object, 'spec'), 'unschedulable')
  return isCordoned ? `${readiness},SchedulingDisabled` : readiness
}

function roleOf([label, value]: [string, string]): string {
  if (label.startsWith(rolePrefix)) return label.slice(rolePrefix.length)
  return label === roleLabel ? value : ''
}

function rolesOf(object: KubeObject): string {
  const roles = Object.entries(object.metadata.labels ?? {})
    .map(roleOf)
    .filter(Boolean)
  return [...new Set(roles)].sort().join(',') || '<none>'
}

function addressOf(object: KubeObject, type: string): string {
  const addresses = recordsAt(fieldsAt(object, 'status'), 'addresses')
  const found = addresses.find((address) => address['type'] === type)
  return found ? textAt(found, 'address') : '<none>'
}

const infoOf = (object: KubeObject, key: string): string =>
  textAt(fieldsAt(fieldsAt(object, 'status'), 'nodeInfo'), key)

function kernelOf(object: KubeObject): string {
  const kernel = infoOf(object, 'kernelVersion') || '<unknown>'
  const architecture = infoOf(object, 'architecture')
  return architecture ? `${kernel} (${architecture})` : kernel
}

/** What `kubectl get nodes` shows. */
const nodeColumns: readonly Column[] = [
  nameColumn,
  column('Status', 'Whether the node takes pods.', statusOf),
  column('Roles', 'What the node is for, by its labels.', rolesOf),
  ageColumn,
  column('Version', 'Version of the kubelet.', (object) => infoOf(object, 'kubeletVersion')),
  wideColumn('Internal-IP', 'Address inside the cluster.', (object) =>
    addressOf(object, 'InternalIP'),
  ),
  wideColumn('External-IP', 'Address for the outside.', (object) =>
    addressOf(object, 'ExternalIP'),
  ),
  wideColumn('OS-Image', 'Operating system.', (object) => infoOf(object, 'osImage') || '<unknown>'),
  wideColumn('Kernel-Version', 'Kernel and architecture.', kernelOf),
  wideColumn(
    'Container-Runtime',
    'What runs the containers.',
    (object) => infoOf(object, 'containerRuntimeVersion') || '<unknown>',
  ),
]

const featureName = /^[A-Z][A-Za-z0-9]*(\/[A-Za-z0-9]+)*$/
const featureWords =
  "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"

/** Problems of the features that a kubelet says it has: sorted, each once, well named. */
export function featureProblems(draft: KubeObject): FieldProblem[] {
  const all = textsAt(fieldsAt(draft, 'status'), 'declaredFeatures')
  return problemsOfEach(all, (name, index) => {
    const field = `status.declaredFeatures[${index}]`
    const before = all[index - 1] ?? ''
    return [
      ...(index > 0 && name === before ? [duplicateValue(field, name)] : []),
      ...(name < before ? [invalidValue(field, name, 'list must be sorted alphabetically')] : []),
      ...(featureName.test(name)
        ? []
        : [invalidValue(field, name, `invalid feature name "${name}": ${featureWords}`)]),
    ]
  })
}

/** Problems of the swap space of a new node. Kubernetes names the field so. */
export function swapProblems(draft: KubeObject): FieldProblem[] {
  const swap = fieldsAt(fieldsAt(fieldsAt(draft, 'status'), 'nodeInfo'), 'swap')
  const capacity = numberAt(swap, 'capacity') ?? 1
  const field = 'metadata.nodeSwapStatus.capacity'
  return capacity > 0 ? [] : [invalidValue(field, capacity, 'must be greater than zero')]
}

/** The older single field and the list agree; the single one counts when they differ. */
function alignPodCidrs(spec: Fields): void {
  const [single, list] = [textAt(spec, 'podCIDR'), textsAt(spec, 'podCIDRs')]
  if (single && single !== list[0]) spec['podCIDRs'] = [single]
  else if (list[0]) spec['podCIDR'] = list[0]
}

function applyDefaults(draft: KubeObject): void {
  alignPodCidrs(ensureFields(draft, 'spec'))
  const status = ensureFields(draft, 'status')
  if (isUnset(status['allocatable']) && !isUnset(status['capacity'])) {
    status['allocatable'] = { ...fieldsAt(status, 'capacity') }
  }
}

const resourceProblems = (draft: KubeObject): FieldProblem[] =>
  ['capacity', 'allocatable'].flatMap((list) =>
    problemsOfEach(Object.entries(fieldsAt(fieldsAt(draft, 'status'), list)), ([name, value]) =>
      quantityProblems(name, value, `status.${list}.${name}`),
    ),
  )

function podCidrProblems(draft: KubeObject): FieldProblem[] {
  const field = 'spec.podCIDRs'
  const ranges = textsAt(fieldsAt(draft, 'spec'), 'podCIDRs')
  const families = new Set(ranges.map((range) => range.includes(':')))
  const words = 'may specify no more than one CIDR for each IP family'
  return [
    ...problemsOfEach(ranges, (range, index) =>
      invalidEach(`${field}[${index}]`, range, cidrProblems(range)),
    ),
    ...(families.size < ranges.length ? [invalidValue(field, ranges, words)] : []),
  ]
}

// Kubernetes reports taints under metadata, where they once were an annotation.
const taintsOf = (draft: KubeObject): FieldProblem[] =>
  taintProblems(recordsAt(fieldsAt(draft, 'spec'), 'taints'), 'metadata.taints')

function addressProblems(draft: KubeObject): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(recordsAt(fieldsAt(draft, 'status'), 'addresses'), (address, index) => {
    const key = `${textAt(address, 'type')}\n${textAt(address, 'address')}`
    const repeated = seen.has(key)
    seen.add(key)
    const shown = asGoStruct(address, { Type: 'type', Address: 'address' })
    return repeated ? [duplicateValue(`status.addresses[${index}]`, shown)] : []
  })
}

function validateUpdate(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [spec, old] = [fieldsAt(draft, 'spec'), fieldsAt(stored, 'spec')]
  const ranges = textsAt(old, 'podCIDRs')
  const rangesChanged = ranges.length > 0 && ranges.join() !== textsAt(spec, 'podCIDRs').join()
  const provider = textAt(old, 'providerID')
  const words = (field: string): string =>
    `node updates may not change ${field} except from "" to valid`
  return [
    ...resourceProblems(draft),
    ...featureProblems(draft),
    ...addressProblems(draft),
    ...(rangesChanged ? [forbiddenValue('spec.podCIDRs', words('podCIDR'))] : []),
    ...(provider && provider !== textAt(spec, 'providerID')
      ? [forbiddenValue('spec.providerID', words('providerID'))]
      : []),
    ...taintsOf(draft),
    ...(textAt(old, 'externalID') === textAt(spec, 'externalID')
      ? []
      : [forbiddenValue('spec.externalID', 'may not be updated')]),
  ]
}

/** Configuration from the API is gone from Kubernetes; its fields are dropped. */
function dropConfig(draft: KubeObject): void {
  delete ensureFields(draft, 'spec')['configSource']
  delete ensureFields(draft, 'status')['config']
}

/** A machine that pods can run on. */
export const node = defineKind({
  kind: { group: '', version: 'v1', kind: 'Node', resource: 'nodes', namespaced: false },
  shortNames: ['no'],
  subresources: [statusSubresource({ validate: validateUpdate })],
  selectableFields: {
    'spec.unschedulable': (object) => String(flagAt(fieldsAt(object, 'spec'), 'unschedulable')),
  },
  applyDefaults,
  // Unlike other kinds a node may come with its status: the kubelet registers itself whole.
  prepareCreate: dropConfig,
  prepareUpdate: (draft, stored) => {
    dropConfig(draft)
    draft['status'] = stored['status'] ?? {}
  },
  validate: (draft) => [
    ...taintsOf(draft),
    ...resourceProblems(draft),
    ...swapProblems(draft),
    ...featureProblems(draft),
    ...podCidrProblems(draft),
  ],
  validateUpdate,
  warnings: (draft) =>
    textAt(fieldsAt(draft, 'spec'), 'externalID')
      ? ['spec.externalID: this field is deprecated, and is unused by Kubernetes']
      : [],
  columns: nodeColumns,
})
