import { type FieldProblem, invalidValue } from './field-problem.ts'
import { qualifiedNameProblems } from './label-rules.ts'
import { isWhole, quantityNanos } from './quantity.ts'

const integerResources = new Set([
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
])

const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/')

/** True for a resource that a device plugin or an operator brings, such as `example.com/gpu`. */
export function isExtendedResource(name: string): boolean {
  if (isNative(name) || name.startsWith('requests.')) return false
  return qualifiedNameProblems(`requests.${name}`).length === 0
}

const comesInWholes = (name: string): boolean =>
  integerResources.has(name) || isExtendedResource(name)

/** Problems of one amount of a named resource. */
export function quantityProblems(name: string, value: unknown, field: string): FieldProblem[] {
  const nanos = quantityNanos(value)
  if (nanos === undefined) return [invalidValue(field, value, 'must be a valid resource quantity')]
  return [
    ...(nanos < 0n ? [invalidValue(field, value, 'must be greater than or equal to 0')] : []),
    ...(comesInWholes(name) && !isWhole(nanos)
      ? [invalidValue(field, value, 'must be an integer')]
      : []),
  ]
}
