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
import { portNameProblems, portNumberProblems } from '../../validation/port-rules.ts'
import { protocolProblems } from '../endpoint-address.ts'
import { type Fields, numberAt, recordsAt, textAt } from '../fields.ts'
import { envFromProblems, envProblems } from './env-rules.ts'
import { probeProblems, runningOnly } from './probe-rules.ts'
import { resourceProblems } from './resource-rules.ts'
import { containerSecurityProblems } from './security-rules.ts'
import { mountProblems } from './volume-rules.ts'

function choice(
  container: Fields,
  key: string,
  allowed: readonly string[],
  field: string,
): FieldProblem[] {
  const value = textAt(container, key)
  if (value === '') return [required(`${field}.${key}`)]
  return allowed.includes(value) ? [] : [notSupported(`${field}.${key}`, value, allowed)]
}

function portNameProblemsOf(port: Fields, seen: Set<string>, field: string): FieldProblem[] {
  const name = textAt(port, 'name')
  if (name === '') return []
  const problems = portNameProblems(name)
  if (problems.length > 0) return invalidEach(`${field}.name`, name, problems)
  if (seen.has(name)) return [duplicateValue(`${field}.name`, name)]
  seen.add(name)
  return []
}

function portProblems(container: Fields, field: string): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(recordsAt(container, 'ports'), (port, index) => {
    const at = `${field}.ports[${index}]`
    const [inner, host] = [numberAt(port, 'containerPort') ?? 0, numberAt(port, 'hostPort') ?? 0]
    return [
      ...portNameProblemsOf(port, seen, at),
      ...(inner === 0
        ? [required(`${at}.containerPort`)]
        : invalidEach(`${at}.containerPort`, inner, portNumberProblems(inner))),
      ...(host === 0 ? [] : invalidEach(`${at}.hostPort`, host, portNumberProblems(host))),
      ...protocolProblems(port, at),
    ]
  })
}

function commonProblems(
  container: Fields,
  volumes: ReadonlySet<string>,
  field: string,
): FieldProblem[] {
  const name = textAt(container, 'name')
  return [
    ...(name
      ? invalidEach(`${field}.name`, name, dns1123LabelProblems(name))
      : [required(`${field}.name`)]),
    ...(textAt(container, 'image') ? [] : [required(`${field}.image`)]),
    ...choice(container, 'terminationMessagePolicy', ['File', 'FallbackToLogsOnError'], field),
    ...portProblems(container, field),
    ...envProblems(container, field),
    ...envFromProblems(container, field),
    ...mountProblems(container, volumes, field),
    ...choice(container, 'imagePullPolicy', ['Always', 'IfNotPresent', 'Never'], field),
    ...resourceProblems(container, field),
    ...containerSecurityProblems(container, field),
  ]
}

function hostPortConflicts(containers: readonly Fields[]): FieldProblem[] {
  const seen = new Set<string>()
  return problemsOfEach(containers, (container, index) =>
    problemsOfEach(recordsAt(container, 'ports'), (port, at) => {
      const host = numberAt(port, 'hostPort') ?? 0
      if (host === 0) return []
      const key = `${textAt(port, 'protocol')}/${textAt(port, 'hostIP')}/${host}`
      const isTaken = seen.has(key)
      seen.add(key)
      const field = `spec.containers[${index}].ports[${at}].hostPort`
      return isTaken ? [duplicateValue(field, key)] : []
    }),
  )
}

/** Problems of the containers that keep running. */
export function containersProblems(
  containers: readonly Fields[],
  volumes: ReadonlySet<string>,
): FieldProblem[] {
  if (containers.length === 0) return [required('spec.containers')]
  const seen = new Set<string>()
  const problems = problemsOfEach(containers, (container, index) => {
    const field = `spec.containers[${index}]`
    const name = textAt(container, 'name')
    const isTaken = seen.has(name)
    seen.add(name)
    return [
      ...commonProblems(container, volumes, field),
      ...(isTaken ? [duplicateValue(`${field}.name`, name)] : []),
      ...probeProblems(container, field),
    ]
  })
  return [...problems, ...hostPortConflicts(containers)]
}

/** Problems of the containers that run before the others. */
export function initContainersProblems(spec: Fields, volumes: ReadonlySet<string>): FieldProblem[] {
  const seen = new Set(recordsAt(spec, 'containers').map((container) => textAt(container, 'name')))
  const words = 'may not be set for init containers without restartPolicy=Always'
  return problemsOfEach(recordsAt(spec, 'initContainers'), (container, index) => {
    const field = `spec.initContainers[${index}]`
    const name = textAt(container, 'name')
    const isTaken = seen.has(name)
    if (name) seen.add(name)
    const ofRunning =
      container['restartPolicy'] === 'Always'
        ? probeProblems(container, field)
        : runningOnly
            .filter((key) => isRecord(container[key]))
            .map((key) => forbiddenValue(`${field}.${key}`, words))
    return [
      ...commonProblems(container, volumes, field),
      ...(isTaken ? [duplicateValue(`${field}.name`, name)] : []),
      ...ofRunning,
    ]
  })
}

/** Problems of images that only a pod itself has, not the template of one. */
export const imageProblems = (spec: Fields): FieldProblem[] =>
  ['containers', 'initContainers'].flatMap((list) =>
    problemsOfEach(recordsAt(spec, list), (container, index) => {
      const image = textAt(container, 'image')
      if (image === image.trim()) return []
      const words = 'must not have leading or trailing whitespace'
      return [invalidValue(`spec.${list}[${index}].image`, image, words)]
    }),
  )
