import type { KubeObject } from '../../core/index.ts'
import { cidrProblems } from '../validation/cidr.ts'
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
} from '../validation/field-problem.ts'
import { asGoStruct } from '../validation/go-format.ts'
import { quantityProblems } from '../validation/resource-quantities.ts'
import { defineKind, statusSubresource } from './define-kind.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  flagAt,
  isUnset,
  recordsAt,
  textAt,
  textsAt,
} from './fields.ts'
import { nodeColumns } from './node-columns.ts'
import { featureProblems, swapProblems } from './node-status-rules.ts'
import { taintProblems } from './taints.ts'

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
