import type { KubeObject } from '../../../core/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
} from '../../validation/field-problem.ts'
import { ipProblems } from '../../validation/ip.ts'
import { fieldIsImmutable, qualifiedNameProblems } from '../../validation/metadata.ts'
import { nameIsDnsSubdomain } from '../../validation/names.ts'
import { sameMeaning } from '../define-kind.ts'
import { type Fields, fieldsAt, numberAt, recordsAt, textAt } from '../fields.ts'

const updatableFields = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
]

function deadlineProblems(spec: Fields, old: Fields): FieldProblem[] {
  const field = 'spec.activeDeadlineSeconds'
  const [now, before] = [
    numberAt(spec, 'activeDeadlineSeconds'),
    numberAt(old, 'activeDeadlineSeconds'),
  ]
  if (before === undefined) return []
  if (now === undefined) {
    return [invalidValue(field, null, 'must not update from a positive integer to nil value')]
  }
  return before < now
    ? [invalidValue(field, now, 'must be less than or equal to previous value')]
    : []
}

const without = (fields: Fields, ...keys: string[]): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)))

/** What a toleration says but for its seconds, in one form only. */
const meaningOf = (toleration: Fields): string =>
  JSON.stringify(['key', 'operator', 'value', 'effect'].map((part) => textAt(toleration, part)))

function tolerationProblems(spec: Fields, old: Fields): FieldProblem[] {
  const now = new Set(recordsAt(spec, 'tolerations').map(meaningOf))
  const isKept = recordsAt(old, 'tolerations').every((one) => now.has(meaningOf(one)))
  const words = 'existing toleration can not be modified except its tolerationSeconds'
  return isKept ? [] : [forbiddenValue('spec.tolerations', words)]
}

function gateProblems(spec: Fields, old: Fields): FieldProblem[] {
  const before = new Set(recordsAt(old, 'schedulingGates').map((gate) => textAt(gate, 'name')))
  return problemsOfEach(recordsAt(spec, 'schedulingGates'), (gate, index) => {
    const name = textAt(gate, 'name')
    const words = `only deletion is allowed, but found new scheduling gate '${name}'`
    return before.has(name) ? [] : [forbiddenValue(`spec.schedulingGates[${index}].name`, words)]
  })
}

const withoutImages = (spec: Fields, list: string): Fields[] =>
  recordsAt(spec, list).map((container) => without(container, 'image'))

const mayChange = [
  'containers',
  'initContainers',
  'activeDeadlineSeconds',
  'schedulingGates',
  'tolerations',
]

/** The spec without what an update may change; gated pods may still be told where to run. */
function fixedPart(spec: Fields, isGated: boolean): Fields {
  const free = isGated ? [...mayChange, 'nodeSelector', 'affinity'] : mayChange
  return {
    ...without(spec, ...free),
    containers: withoutImages(spec, 'containers'),
    initContainers: withoutImages(spec, 'initContainers'),
  }
}

/** Problems of a change of a pod: nearly everything in its spec is settled when it is made. */
export function podChangeProblems(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [spec, old] = [fieldsAt(draft, 'spec'), fieldsAt(stored, 'spec')]
  for (const list of ['containers', 'initContainers']) {
    if (recordsAt(spec, list).length === recordsAt(old, list).length) continue
    return [forbiddenValue(`spec.${list}`, 'pod updates may not add or remove containers')]
  }
  const isGated = recordsAt(old, 'schedulingGates').length > 0
  const isSame = sameMeaning(fixedPart(spec, isGated), fixedPart(old, isGated))
  const words = `pod updates may not change fields other than ${updatableFields.join(',')}`
  return [
    ...deadlineProblems(spec, old),
    ...tolerationProblems(spec, old),
    ...gateProblems(spec, old),
    ...(isSame ? [] : [forbiddenValue('spec', words)]),
  ]
}

const ownConditions = ['PodScheduled', 'Ready', 'Initialized']

/** Problems of a change of a pod's status. */
export function podStatusProblems(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [status, old] = [fieldsAt(draft, 'status'), fieldsAt(stored, 'status')]
  const nominated = textAt(status, 'nominatedNodeName')
  const quality = textAt(status, 'qosClass')
  const ips = recordsAt(status, 'podIPs').map((one) => textAt(one, 'ip'))
  const families = new Set(ips.map((ip) => ip.includes(':')))
  const twoOfAKind = 'may specify no more than one IP for each IP family'
  return [
    ...problemsOfEach(recordsAt(status, 'conditions'), (condition, index) => {
      const type = textAt(condition, 'type')
      if (ownConditions.includes(type)) return []
      return invalidEach(`status.conditions[${index}].Type`, type, qualifiedNameProblems(type))
    }),
    ...(nominated && nominated !== textAt(old, 'nominatedNodeName')
      ? invalidEach('status.nominatedNodeName', nominated, nameIsDnsSubdomain(nominated, false))
      : []),
    ...(quality === textAt(old, 'qosClass')
      ? []
      : [invalidValue('status.qosClass', quality, fieldIsImmutable)]),
    ...problemsOfEach(ips, (ip, index) =>
      invalidEach(`status.podIPs[${index}]`, ip, ipProblems(ip)),
    ),
    ...(ips.length > families.size
      ? [invalidValue('status.podIPs', status['podIPs'], twoOfAKind)]
      : []),
  ]
}
