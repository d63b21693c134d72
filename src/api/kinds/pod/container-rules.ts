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
import { qualifiedNameProblems } from '../../validation/metadata.ts'
import { dns1123LabelProblems, patternProblem } from '../../validation/names.ts'
import {
  isExtendedResource,
  portNameProblems,
  portNumberProblems,
  portOrNameProblems,
  quantityNanos,
  quantityProblems,
} from '../../validation/quantities.ts'
import { protocolProblems } from '../endpoints.ts'
import { type Fields, fieldsAt, numberAt, recordsAt, textAt, textsAt } from '../fields.ts'
import { envFromProblems, envProblems } from './env-rules.ts'
import { containerSecurityProblems } from './security-rules.ts'
import { mountProblems } from './volume-rules.ts'

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
const runningOnly = ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const

/** Problems of the hooks and probes of a container that keeps running. */
function probeProblems(container: Fields, field: string): FieldProblem[] {
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
function resourceProblems(container: Fields, field: string): FieldProblem[] {
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
