import type { KubeObject } from '../../../core/index.ts'
import {
  duplicateValue,
  type FieldProblem,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { ipProblems, parseIp } from '../../validation/ip.ts'
import { type Fields, fieldsAt, repeatedAt, textAt, textsAt } from '../fields.ts'

const families = ['IPv4', 'IPv6']
const policies = ['PreferDualStack', 'RequireDualStack', 'SingleStack']
const ipsField = 'spec.clusterIPs'

/** True when two lists hold the same texts in the same order. */
export const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, index) => text === b[index])

/** True for a Service that has endpoints but no address of its own. */
export function isHeadless(spec: Fields): boolean {
  const ips = textsAt(spec, 'clusterIPs')
  return ips.length === 1 && ips[0] === 'None'
}

/** True for every Service but a mere alias of a DNS name. */
export const needsClusterIp = (spec: Fields): boolean => textAt(spec, 'type') !== 'ExternalName'

function singularProblems(spec: Fields): FieldProblem[] {
  const single = textAt(spec, 'clusterIP')
  const ips = textsAt(spec, 'clusterIPs')
  if (single === '') {
    if (ips.length === 0) return []
    return [invalidValue(ipsField, ips, 'must be empty when `clusterIP` is not specified')]
  }
  if (ips.length === 0) return [required(ipsField)]
  return ips[0] === single
    ? []
    : [invalidValue(ipsField, ips, 'first value must match `clusterIP`')]
}

function familyProblems(spec: Fields): FieldProblem[] {
  const asked = textsAt(spec, 'ipFamilies')
  const policy = textAt(spec, 'ipFamilyPolicy')
  const repeated = new Set(repeatedAt(asked))
  return [
    ...problemsOfEach(asked, (family, index) => {
      const field = `spec.ipFamilies[${index}]`
      return [
        ...(families.includes(family) ? [] : [notSupported(field, family, families)]),
        ...(repeated.has(index) ? [duplicateValue(field, family)] : []),
      ]
    }),
    ...(policy === '' || policies.includes(policy)
      ? []
      : [notSupported('spec.ipFamilyPolicy', policy, policies)]),
  ]
}

function spellingProblems(ips: readonly string[]): FieldProblem[] {
  return problemsOfEach(ips, (ip, index) => {
    if (index > 0 || ip !== 'None') return invalidEach(`${ipsField}[${index}]`, ip, ipProblems(ip))
    if (ips.length === 1) return []
    return [invalidValue(ipsField, ips, "'None' must be the first and only value")]
  })
}

function pairingProblems(spec: Fields): FieldProblem[] {
  const ips = textsAt(spec, 'clusterIPs')
  const asked = textsAt(spec, 'ipFamilies')
  const found = new Set(ips.map((ip) => parseIp(ip)?.family))
  const words = 'may specify no more than one IP for each IP family'
  const double =
    ips.length > 1 && found.size < ips.length ? [invalidValue(ipsField, ips, words)] : []
  if (isHeadless(spec)) return double
  return [
    ...double,
    ...problemsOfEach(ips, (ip, index) => {
      const family = asked[index]
      if (family === undefined || !families.includes(family)) return []
      if (`IPv${parseIp(ip)?.family}` === family) return []
      const expected = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``
      return [invalidValue(`${ipsField}[${index}]`, ip, expected)]
    }),
  ]
}

/** Problems of `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` among themselves. */
export function clusterIpProblems(spec: Fields): FieldProblem[] {
  if (!needsClusterIp(spec)) return []
  const ips = textsAt(spec, 'clusterIPs')
  const spelling = spellingProblems(ips)
  return [
    ...singularProblems(spec),
    ...familyProblems(spec),
    ...spelling,
    ...(ips.length > 2 ? [invalidValue(ipsField, ips, 'may only hold up to 2 values')] : []),
    // What is compared next would only repeat that an address is none.
    ...(spelling.length > 0 ? [] : pairingProblems(spec)),
  ]
}

function addressChangeProblems(spec: Fields, old: Fields): FieldProblem[] {
  const [ips, before] = [textsAt(spec, 'clusterIPs'), textsAt(old, 'clusterIPs')]
  const changed = (index: number) =>
    invalidValue(`${ipsField}[${index}]`, ips, 'may not change once set')
  if (ips.length === before.length) {
    return problemsOfEach(before, (ip, index) => (ip === ips[index] ? [] : [changed(index)]))
  }
  const words = "must be set to 'SingleStack' when releasing the secondary clusterIP"
  const policy = spec['ipFamilyPolicy'] ?? null
  const isReleasing = before.length > ips.length && ips.length === 1
  return [
    ...(ips.length === 0
      ? [invalidValue(`${ipsField}[0]`, ips, 'primary clusterIP can not be unset')]
      : []),
    ...(ips.length > 0 && before.length > 0 && ips[0] !== before[0] ? [changed(0)] : []),
    ...(isReleasing && policy !== 'SingleStack'
      ? [invalidValue('spec.ipFamilyPolicy', policy, words)]
      : []),
  ]
}

function familyChangeProblems(spec: Fields, old: Fields): FieldProblem[] {
  const [now, before] = [textsAt(spec, 'ipFamilies'), textsAt(old, 'ipFamilies')]
  if (now[0] === undefined || before[0] === undefined) return []
  const hasChanged = now.length === before.length ? !sameTexts(now, before) : now[0] !== before[0]
  return hasChanged ? [invalidValue('spec.ipFamilies[0]', now, 'may not change once set')] : []
}

/** Problems of a change of addresses and families. */
export function clusterIpChangeProblems(draft: KubeObject, stored: KubeObject): FieldProblem[] {
  const [spec, old] = [fieldsAt(draft, 'spec'), fieldsAt(stored, 'spec')]
  if (!needsClusterIp(spec) || !needsClusterIp(old)) return []
  const [headless, wasHeadless] = [isHeadless(spec), isHeadless(old)]
  return [
    ...(headless && wasHeadless ? [] : addressChangeProblems(spec, old)),
    ...(headless || wasHeadless ? [] : familyChangeProblems(spec, old)),
  ]
}
