import { isRecord } from '../../../core/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { patternProblem } from '../../validation/names.ts'
import { portOrNameProblems } from '../../validation/port-rules.ts'
import { type Fields, fieldsAt, numberAt, recordsAt, textAt, textsAt } from '../fields.ts'

const headerName = '[-A-Za-z0-9]+'

function httpGetProblems(action: Fields, field: string): FieldProblem[] {
  const scheme = textAt(action, 'scheme')
  const schemes = ['HTTP', 'HTTPS']
  const words = "a valid HTTP header must consist of alphanumeric characters or '-'"
  return [
    ...(textAt(action, 'path') ? [] : [required(`${field}.path`)]),
    ...portOrNameProblems(action['port'], `${field}.port`),
    ...(schemes.includes(scheme) ? [] : [notSupported(`${field}.scheme`, scheme, schemes)]),
    ...problemsOfEach(recordsAt(action, 'httpHeaders'), (header) => {
      const name = textAt(header, 'name')
      const isName = new RegExp(`^${headerName}$`).test(name)
      const problem = patternProblem(words, headerName, 'X-Header-Name')
      return isName ? [] : invalidEach(`${field}.httpHeaders`, name, [problem])
    }),
  ]
}

const actions = new Map<string, (action: Fields, field: string) => FieldProblem[]>([
  [
    'exec',
    (action, field) =>
      textsAt(action, 'command').length > 0 ? [] : [required(`${field}.command`)],
  ],
  ['httpGet', httpGetProblems],
  ['tcpSocket', (action, field) => portOrNameProblems(action['port'], `${field}.port`)],
  ['grpc', (action, field) => portOrNameProblems(action['port'], `${field}.port`)],
  ['sleep', () => []],
])

function handlerProblems(handler: Fields, field: string): FieldProblem[] {
  const given = [...actions.keys()].filter((action) => isRecord(handler[action]))
  const [first, ...more] = given
  if (first === undefined) return [required(field, 'must specify a handler type')]
  return [
    ...(actions.get(first)?.(fieldsAt(handler, first), `${field}.${first}`) ?? []),
    ...more.map((action) =>
      forbiddenValue(`${field}.${action}`, 'may not specify more than 1 handler type'),
    ),
  ]
}

const counts = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
]

function graceProblems(probe: Fields, key: string, field: string): FieldProblem[] {
  const seconds = numberAt(probe, 'terminationGracePeriodSeconds')
  const at = `${field}.terminationGracePeriodSeconds`
  if (seconds === undefined) return []
  const isReadiness = key === 'readinessProbe'
  return [
    ...(seconds > 0 ? [] : [invalidValue(at, seconds, 'must be greater than 0')]),
    ...(isReadiness ? [invalidValue(at, seconds, 'must not be set for readinessProbes')] : []),
  ]
}

function oneProbeProblems(container: Fields, key: string, field: string): FieldProblem[] {
  const probe = container[key]
  if (!isRecord(probe)) return []
  const at = `${field}.${key}`
  const successes = numberAt(probe, 'successThreshold') ?? 0
  return [
    ...handlerProblems(probe, at),
    ...problemsOfEach(counts, (count) => {
      const value = numberAt(probe, count) ?? 0
      const words = 'must be greater than or equal to 0'
      return value < 0 ? [invalidValue(`${at}.${count}`, value, words)] : []
    }),
    ...graceProblems(probe, key, at),
    ...(key === 'readinessProbe' || successes === 1
      ? []
      : [invalidValue(`${at}.successThreshold`, successes, 'must be 1')]),
  ]
}

/** Fields of a container that only one that keeps running can have. */
export const runningOnly = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const

/** Problems of the hooks and probes of a container that keeps running. */
export function probeProblems(container: Fields, field: string): FieldProblem[] {
  const lifecycle = fieldsAt(container, 'lifecycle')
  return [
    ...['postStart', 'preStop'].flatMap((hook) =>
      isRecord(lifecycle[hook])
        ? handlerProblems(fieldsAt(lifecycle, hook), `${field}.lifecycle.${hook}`)
        : [],
    ),
    ...runningOnly.slice(1).flatMap((key) => oneProbeProblems(container, key, field)),
  ]
}
