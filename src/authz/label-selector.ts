import { isRecord } from '../core/index.ts'

type Labels = ReadonlyMap<string, string>
type Requirement = (labels: Labels) => boolean

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

function requirement(expression: unknown): Requirement {
  const { key, operator, values } = isRecord(expression) ? expression : {}
  if (typeof key !== 'string') throw new TypeError('a match expression needs a key')
  const among = (labels: Labels) => labels.has(key) && items(values).includes(labels.get(key))
  switch (operator) {
    case 'In':
      return among
    case 'NotIn':
      return (labels) => !among(labels)
    case 'Exists':
      return (labels) => labels.has(key)
    case 'DoesNotExist':
      return (labels) => !labels.has(key)
    default:
      throw new TypeError(`"${String(operator)}" is not a valid label selector operator`)
  }
}

/** Compiles a LabelSelector; an empty one matches everything. Throws when it cannot be understood. */
export function labelSelector(
  selector: unknown,
): (labels: Readonly<Record<string, string>> | undefined) => boolean {
  const { matchLabels, matchExpressions } = isRecord(selector) ? selector : {}
  const requirements = [
    ...Object.entries(isRecord(matchLabels) ? matchLabels : {}).map(
      ([key, value]): Requirement =>
        (labels) =>
          labels.get(key) === value,
    ),
    ...items(matchExpressions).map(requirement),
  ]
  return (labels) => {
    const known = new Map(Object.entries(labels ?? {}))
    return requirements.every((holds) => holds(known))
  }
}
