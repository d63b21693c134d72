import { type KubeObject, wellKnownKinds } from '../../core/index.ts'
import {
  type FieldProblem,
  invalidEach,
  notSupported,
  problemsOfEach,
  required,
} from '../validation/field-problem.ts'
import { endpointIpProblems, ipProblems, ipWarnings } from '../validation/ip.ts'
import { qualifiedNameProblems } from '../validation/metadata.ts'
import { dns1123LabelProblems, nameIsDnsSubdomain } from '../validation/names.ts'
import { portNumberProblems, protocols } from '../validation/quantities.ts'
import {
  type Allowances,
  ageColumn,
  column,
  defineKind,
  nameColumn,
  shownItems,
  withMore,
} from './define-kind.ts'
import { type Fields, numberAt, recordsAt, setDefault, textAt } from './fields.ts'

/** Problems of a label-like name that may be absent. */
export function optionalLabelProblems(parent: Fields, key: string, field: string): FieldProblem[] {
  const value = textAt(parent, key)
  return value ? invalidEach(`${field}.${key}`, value, dns1123LabelProblems(value)) : []
}

/** Problems of the transport protocol of a port. */
export function protocolProblems(port: Fields, field: string): FieldProblem[] {
  const protocol = textAt(port, 'protocol')
  if (!protocol) return [required(`${field}.protocol`)]
  return protocols.includes(protocol)
    ? []
    : [notSupported(`${field}.protocol`, protocol, protocols)]
}

/** Problems of the application protocol of a port. */
export function appProtocolProblems(port: Fields, field: string): FieldProblem[] {
  const name = port['appProtocol']
  if (typeof name !== 'string') return []
  return invalidEach(`${field}.appProtocol`, name, qualifiedNameProblems(name))
}

const addressLists = ['addresses', 'notReadyAddresses'] as const

function addressProblems(address: Fields, field: string, allowances: Allowances): FieldProblem[] {
  const ip = textAt(address, 'ip')
  const nodeName = address['nodeName']
  const allowLoopback = allowances.loopbackEndpoints ?? false
  return [
    ...invalidEach(`${field}.ip`, ip, ipProblems(ip)),
    ...optionalLabelProblems(address, 'hostname', field),
    ...(typeof nodeName === 'string'
      ? invalidEach(`${field}.nodeName`, nodeName, nameIsDnsSubdomain(nodeName, false))
      : []),
    ...invalidEach(`${field}.ip`, ip, endpointIpProblems(ip, allowLoopback)),
  ]
}

function portProblems(port: Fields, nameNeeded: boolean, field: string): FieldProblem[] {
  const number = numberAt(port, 'port') ?? 0
  return [
    ...(nameNeeded && !textAt(port, 'name')
      ? [required(`${field}.name`)]
      : optionalLabelProblems(port, 'name', field)),
    ...invalidEach(`${field}.port`, number, portNumberProblems(number)),
    ...protocolProblems(port, field),
    ...appProtocolProblems(port, field),
  ]
}

function subsetProblems(subset: Fields, field: string, allowances: Allowances): FieldProblem[] {
  const ports = recordsAt(subset, 'ports')
  const isEmpty = addressLists.every((list) => recordsAt(subset, list).length === 0)
  return [
    ...(isEmpty ? [required(field, 'must specify `addresses` or `notReadyAddresses`')] : []),
    ...problemsOfEach(addressLists, (list) =>
      problemsOfEach(recordsAt(subset, list), (address, index) =>
        addressProblems(address, `${field}.${list}[${index}]`, allowances),
      ),
    ),
    ...problemsOfEach(ports, (port, index) =>
      portProblems(port, ports.length > 1, `${field}.ports[${index}]`),
    ),
  ]
}

const hostPort = (ip: string, port: number): string =>
  ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`

/** Every address with every port: few are shown, and only those are put together. */
function* pairsOf(subset: Fields): Generator<string> {
  const ports = recordsAt(subset, 'ports')
  for (const port of ports.length === 0 ? [undefined] : ports) {
    for (const address of recordsAt(subset, 'addresses')) {
      const ip = textAt(address, 'ip')
      yield port ? hostPort(ip, numberAt(port, 'port') ?? 0) : ip
    }
  }
}

function shownEndpoints(object: KubeObject): string {
  const subsets = recordsAt(object, 'subsets')
  if (subsets.length === 0) return '<none>'
  const count = subsets.reduce(
    (sum, subset) =>
      sum + recordsAt(subset, 'addresses').length * Math.max(1, recordsAt(subset, 'ports').length),
    0,
  )
  const first: string[] = []
  for (const subset of subsets) {
    for (const pair of pairsOf(subset)) if (first.push(pair) === shownItems) break
    if (first.length >= shownItems) break
  }
  return withMore(first, count)
}

/** Addresses behind a Service, in the older form. */
export const endpoints = defineKind({
  kind: wellKnownKinds.endpoints,
  shortNames: ['ep'],
  createOnUpdate: true,
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  applyDefaults: (draft) => {
    for (const subset of recordsAt(draft, 'subsets')) {
      for (const port of recordsAt(subset, 'ports')) setDefault(port, 'protocol', 'TCP')
    }
  },
  warnings: (draft) =>
    recordsAt(draft, 'subsets').flatMap((subset, index) =>
      addressLists.flatMap((list) =>
        recordsAt(subset, list).flatMap((address, at) =>
          ipWarnings(textAt(address, 'ip'), `subsets[${index}].${list}[${at}].ip`),
        ),
      ),
    ),
  validate: (draft, allowances = {}) =>
    problemsOfEach(recordsAt(draft, 'subsets'), (subset, index) =>
      subsetProblems(subset, `subsets[${index}]`, allowances),
    ),
  columns: [
    nameColumn,
    column('Endpoints', 'Addresses and ports that are ready.', shownEndpoints),
    ageColumn,
  ],
})
