import { type FieldProblem, invalidValue } from './field-problem.ts'
import { qualifiedNameProblems } from './label-rules.ts'
import { isWholeQuantity, parseQuantity } from './quantity.ts'

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
  const isScalar = typeof value === 'string' || typeof value === 'number'
  const quantity = isScalar ? parseQuantity(value) : undefined
  if (!quantity) return [invalidValue(field, value, 'must be a valid resource quantity')]
  const problems =
    quantity.nanos < 0n
      ? [invalidValue(field, quantity.canonical, 'must be greater than or equal to 0')]
      : []
  if (!comesInWholes(name) || isWholeQuantity(quantity)) return problems
  return [...problems, invalidValue(field, quantity.canonical, 'must be an integer')]
}
