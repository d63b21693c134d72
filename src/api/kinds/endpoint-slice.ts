import { type KubeObject, wellKnownKinds } from '../../core/index.ts'
import {
  duplicateValue,
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
  tooMany,
} from '../validation/field-problem.ts'
import {
  canonicalIpProblems,
  endpointIpProblems,
  ipProblems,
  ipWarnings,
  parseIp,
} from '../validation/ip.ts'
import { fieldIsImmutable, labelValueProblems } from '../validation/metadata.ts'
import { domainNameProblems, nameIsDnsSubdomain, type TextRule } from '../validation/names.ts'
import {
  type Allowances,
  ageColumn,
  column,
  defineKind,
  nameColumn,
  sameMeaning,
  withMore,
} from './define-kind.ts'
import { appProtocolProblems, optionalLabelProblems, protocolProblems } from './endpoints.ts'
import { type Fields, fieldsAt, isUnset, recordsAt, setDefault, textAt, textsAt } from './fields.ts'

const addressTypes = ['FQDN', 'IPv4', 'IPv6']
const max = { endpoints: 1000, addresses: 100, ports: 20_000, hints: 8 } as const

function addressProblems(
  address: string,
  type: string,
  field: string,
  allowances: Allowances,
): FieldProblem[] {
  if (type === 'FQDN') return domainNameProblems(address, field)
  if (type !== 'IPv4' && type !== 'IPv6') return []
  const spelling = type === 'IPv4' ? ipProblems(address) : canonicalIpProblems(address)
  if (spelling.length > 0) return invalidEach(field, address, spelling)
  const family = type === 'IPv4' ? 4 : 6
  return [
    ...(parseIp(address)?.family === family
      ? []
      : // Kubernetes points at the whole list here.
        [invalidValue(field.replace(/\[\d+\]$/, ''), address, `must be an ${type} address`)]),
    ...invalidEach(
      field,
      address,
      endpointIpProblems(address, allowances.loopbackEndpoints ?? false),
    ),
  ]
}

function hintProblems(hints: Fields, list: string, rule: TextRule, field: string): FieldProblem[] {
  const names = recordsAt(hints, list).map((hint) => textAt(hint, 'name'))
  if (names.length > max.hints) return [tooMany(`${field}.${list}`, names.length, max.hints)]
  return problemsOfEach(names, (name, index) => {
    const at = `${field}.${list}[${index}].name`
    const repeated = names.indexOf(name) < index ? [duplicateValue(at, name)] : []
    return [...repeated, ...invalidEach(at, name, rule(name))]
  })
}

const nodeName: TextRule = (name) => nameIsDnsSubdomain(name, false)

function endpointProblems(
  endpoint: Fields,
  type: string,
  field: string,
  allowances: Allowances,
): FieldProblem[] {
  const addresses = textsAt(endpoint, 'addresses')
  const at = `${field}.addresses`
  const hints = fieldsAt(endpoint, 'hints')
  const node = endpoint['nodeName']
  const zones = hintProblems(hints, 'forZones', labelValueProblems, `${field}.hints`)
  return [
    ...(addresses.length === 0 ? [required(at, 'must contain at least 1 address')] : []),
    ...(addresses.length > max.addresses ? [tooMany(at, addresses.length, max.addresses)] : []),
    ...problemsOfEach(addresses, (address, index) =>
      addressProblems(address, type, `${at}[${index}]`, allowances),
    ),
    ...(typeof node === 'string' ? invalidEach(`${field}.nodeName`, node, nodeName(node)) : []),
    ...optionalLabelProblems(endpoint, 'hostname', field),
    ...zones,
    ...hintProblems(hints, 'forNodes', nodeName, `${field}.hints`),
  ]
}

function portProblems(ports: readonly Fields[]): FieldProblem[] {
  if (ports.length > max.ports) return [tooMany('ports', ports.length, max.ports)]
  const seen = new Set<string>()
  return problemsOfEach(ports, (port, index) => {
    const field = `ports[${index}]`
    const name = textAt(port, 'name')
    const repeated = seen.has(name) ? [duplicateValue(`${field}.name`, name)] : []
    seen.add(name)
    return [
      ...optionalLabelProblems(port, 'name', field),
      ...repeated,
      ...protocolProblems(port, field),
      ...appProtocolProblems(port, field),
    ]
  })
}

function typeProblems(type: string): FieldProblem[] {
  if (!type) return [required('addressType')]
  return addressTypes.includes(type) ? [] : [notSupported('addressType', type, addressTypes)]
}

function validate(draft: KubeObject, allowances: Allowances = {}): FieldProblem[] {
  const type = textAt(draft, 'addressType')
  const endpoints = recordsAt(draft, 'endpoints')
  return [
    ...typeProblems(type),
    ...portProblems(recordsAt(draft, 'ports')),
    ...(endpoints.length > max.endpoints
      ? [tooMany('endpoints', endpoints.length, max.endpoints)]
      : problemsOfEach(endpoints, (endpoint, index) =>
          endpointProblems(endpoint, type, `endpoints[${index}]`, allowances),
        )),
  ]
}

function shownPort(port: Fields): string {
  if (typeof port['port'] === 'number') return String(port['port'])
  return typeof port['name'] === 'string' ? port['name'] : '*'
}

function warnings(draft: KubeObject): string[] {
  const isNamed = textAt(draft, 'addressType') === 'FQDN'
  if (isNamed) return ['spec.addressType: FQDN endpoints are deprecated']
  return recordsAt(draft, 'endpoints').flatMap((endpoint, index) =>
    textsAt(endpoint, 'addresses').flatMap((ip, at) =>
      ipWarnings(ip, `endpoints[${index}].addresses[${at}]`),
    ),
  )
}

const shown = (items: string[]): string => (items.length === 0 ? '<unset>' : withMore(items))

/** Addresses behind a Service. */
export const endpointSlice = defineKind({
  kind: wellKnownKinds.endpointSlice,
  hasGeneration: true,
  isNewGeneration: (draft, stored) =>
    ['addressType', 'endpoints', 'ports'].some((part) => !sameMeaning(draft[part], stored[part])) ||
    !sameMeaning(draft.metadata.labels, stored.metadata.labels),
  warnings,
  applyDefaults: (draft) => {
    for (const port of recordsAt(draft, 'ports')) {
      if (isUnset(port['name'])) port['name'] = ''
      setDefault(port, 'protocol', 'TCP')
    }
  },
  // The field belongs to an older version of the API.
  prepareCreate: (draft) => {
    for (const endpoint of recordsAt(draft, 'endpoints')) delete endpoint['deprecatedTopology']
  },
  prepareUpdate: (draft) => {
    for (const endpoint of recordsAt(draft, 'endpoints')) delete endpoint['deprecatedTopology']
  },
  validate,
  validateUpdate: (draft, stored) => {
    const type = textAt(draft, 'addressType')
    if (type === textAt(stored, 'addressType')) return []
    return [invalidValue('addressType', type, fieldIsImmutable)]
  },
  columns: [
    nameColumn,
    column('AddressType', 'IPv4, IPv6 or FQDN.', (object) => textAt(object, 'addressType')),
    column('Ports', 'Port numbers.', (object) => shown(recordsAt(object, 'ports').map(shownPort))),
    column('Endpoints', 'Addresses.', (object) =>
      shown(recordsAt(object, 'endpoints').flatMap((endpoint) => textsAt(endpoint, 'addresses'))),
    ),
    ageColumn,
  ],
})
