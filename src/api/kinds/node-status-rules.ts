import type { KubeObject } from '../../core/index.ts'
import { duplicateValue, type FieldProblem, invalidValue } from '../validation/field-problem.ts'
import { fieldsAt, numberAt, textsAt } from './fields.ts'

const featureName = /^[A-Z][A-Za-z0-9]*(\/[A-Za-z0-9]+)*$/
const featureWords =
  "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"

/** Problems of the features that a kubelet says it has: sorted, each once, well named. */
export function featureProblems(draft: KubeObject): FieldProblem[] {
  return textsAt(fieldsAt(draft, 'status'), 'declaredFeatures').flatMap((name, index, all) => {
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
