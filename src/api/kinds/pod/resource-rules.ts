import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { qualifiedNameProblems } from '../../validation/label-rules.ts'
import { quantityNanos } from '../../validation/quantity.ts'
import { isExtendedResource, quantityProblems } from '../../validation/resource-quantities.ts'
import { type Fields, fieldsAt } from '../fields.ts'

const containerResources = ['cpu', 'memory', 'ephemeral-storage']
const otherStandardResources = ['storage', 'pods', 'services', 'secrets', 'configmaps']

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')
const canBeOvercommitted = (name: string): boolean => isNative(name) && !isHugePages(name)

function nameProblems(name: string, field: string): FieldProblem[] {
  const spelling = qualifiedNameProblems(name)
  if (spelling.length > 0) return invalidEach(field, name, spelling)
  if (name.includes('/')) {
    const isFine = isNative(name) || isExtendedResource(name)
    return isFine
      ? []
      : [invalidValue(field, name, "doesn't follow extended resource name standard")]
  }
  if (containerResources.includes(name) || isHugePages(name)) return []
  const words = 'must be a standard resource for containers'
  const isKnown = otherStandardResources.includes(name)
  return [
    ...(isKnown
      ? []
      : [invalidValue(field, name, 'must be a standard resource type or fully qualified')]),
    invalidValue(field, name, words),
  ]
}

function requestProblems(
  name: string,
  request: unknown,
  limit: unknown,
  field: string,
): FieldProblem[] {
  const overcommit = canBeOvercommitted(name)
  const [asked, most] = [quantityNanos(request), quantityNanos(limit)]
  if (asked === undefined) return []
  if (most === undefined) {
    const words = 'Limit must be set for non overcommitable resources'
    return overcommit ? [] : [required(`${field}.limits`, words)]
  }
  const bound = overcommit ? 'less than or equal to' : 'equal to'
  if (overcommit ? asked <= most : asked === most) return []
  const words = `must be ${bound} ${name} limit of ${String(limit)}`
  return [invalidValue(`${field}.requests`, request, words)]
}

/** Problems of what a container asks for and what it may use at most. */
export function resourceProblems(container: Fields, field: string): FieldProblem[] {
  const resources = fieldsAt(container, 'resources')
  const [limits, requests] = [fieldsAt(resources, 'limits'), fieldsAt(resources, 'requests')]
  const names = new Set([...Object.keys(limits), ...Object.keys(requests)])
  const at = `${field}.resources`
  const own = (list: string, name: string, value: unknown): FieldProblem[] => [
    ...nameProblems(name, `${at}.${list}[${name}]`),
    ...quantityProblems(name, value, `${at}.${list}[${name}]`),
  ]
  const hasHugePages = [...names].some(isHugePages)
  const hasCompute = names.has('cpu') || names.has('memory')
  return [
    ...problemsOfEach(Object.entries(limits), ([name, value]) => own('limits', name, value)),
    ...problemsOfEach(Object.entries(requests), ([name, value]) => [
      ...own('requests', name, value),
      ...requestProblems(name, value, limits[name], at),
    ]),
    ...(hasHugePages && !hasCompute ? [forbiddenValue(at, 'HugePages require cpu or memory')] : []),
  ]
}
