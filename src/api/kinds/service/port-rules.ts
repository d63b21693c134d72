import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { dns1123LabelProblems } from '../../validation/names.ts'
import { portNumberProblems, portOrNameProblems } from '../../validation/quantities.ts'
import { appProtocolProblems, protocolProblems } from '../endpoints.ts'
import { type Fields, numberAt, textAt } from '../fields.ts'

/** The ports that Kubernetes opens on nodes unless told otherwise. */
const nodePortRange = { low: 30_000, high: 32_767 } as const

function nameProblems(
  port: Fields,
  field: string,
  needed: boolean,
  seen: Set<string>,
): FieldProblem[] {
  const name = textAt(port, 'name')
  if (name === '') return needed ? [required(`${field}.name`)] : []
  const problems = invalidEach(`${field}.name`, name, dns1123LabelProblems(name))
  if (seen.has(name)) problems.push(duplicateValue(`${field}.name`, name))
  seen.add(name)
  return problems
}

/** Problems of each port by itself, and of names that repeat. */
export function portsProblems(ports: readonly Fields[]): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(ports, (port, index) => {
    const field = `spec.ports[${index}]`
    const number = numberAt(port, 'port') ?? 0
    return [
      ...nameProblems(port, field, ports.length > 1, seen),
      ...invalidEach(`${field}.port`, number, portNumberProblems(number)),
      ...protocolProblems(port, field),
      ...portOrNameProblems(port['targetPort'], `${field}.targetPort`),
      ...appProtocolProblems(port, field),
    ]
  })
}

/** The same key twice, at the field that repeats it. */
function repeats(
  ports: readonly Fields[],
  keyOf: (port: Fields) => string | undefined,
  problem: (port: Fields, index: number) => FieldProblem,
): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(ports, (port, index) => {
    const key = keyOf(port)
    if (key === undefined) return []
    const isRepeat = seen.has(key)
    seen.add(key)
    return isRepeat ? [problem(port, index)] : []
  })
}

const nodePortOf = (port: Fields): number => numberAt(port, 'nodePort') ?? 0

/** Problems of the ports on nodes. */
export function nodePortProblems(spec: Fields, ports: readonly Fields[]): FieldProblem[] {
  const { low, high } = nodePortRange
  const isInternal = textAt(spec, 'type') === 'ClusterIP'
  const at = (index: number): string => `spec.ports[${index}].nodePort`
  const misused = problemsOfEach(ports, (port, index) => {
    const number = nodePortOf(port)
    if (number === 0) return []
    if (isInternal) {
      return [forbiddenValue(at(index), "may not be used when `type` is 'ClusterIP'")]
    }
    if (number >= low && number <= high) return []
    const words = `provided port is not in the valid range. The range of valid ports is ${low}-${high}`
    return [invalidValue(at(index), number, words)]
  })
  const doubled = repeats(
    ports,
    (port) => (nodePortOf(port) ? `${textAt(port, 'protocol')} ${nodePortOf(port)}` : undefined),
    (port, index) => duplicateValue(at(index), nodePortOf(port)),
  )
  return [...misused, ...doubled]
}

/** Problems of ports that are the same in number and protocol. */
export const duplicatePortProblems = (ports: readonly Fields[]): FieldProblem[] =>
  repeats(
    ports,
    (port) => `${textAt(port, 'protocol')} ${numberAt(port, 'port')}`,
    (port, index) =>
      // Kubernetes shows its internal form of the two fields that it compares.
      duplicateValue(`spec.ports[${index}]`, {
        Name: '',
        Protocol: port['protocol'],
        AppProtocol: null,
        Port: port['port'],
        TargetPort: 0,
        NodePort: 0,
      }),
  )
