import { isRecord, type KubeObject } from '../../../core/index.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidEach,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { ipProblems } from '../../validation/ip.ts'
import { labelProblems } from '../../validation/metadata.ts'
import {
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  nameIsDnsSubdomain,
  rangeProblem,
} from '../../validation/names.ts'
import {
  type Fields,
  fieldsAt,
  numberAt,
  recordsAt,
  textAt,
  textMapAt,
  textsAt,
} from '../fields.ts'
import { containersProblems, imageProblems, initContainersProblems } from './container-rules.ts'
import {
  affinityProblems,
  gateProblems,
  spreadProblems,
  tolerationProblems,
} from './scheduling-rules.ts'
import { hostNetworkProblems, podSecurityProblems } from './security-rules.ts'
import { volumeProblems } from './volume-rules.ts'

const maxSeconds = 2 ** 31 - 1

function choice(spec: Fields, key: string, allowed: readonly string[]): FieldProblem[] {
  const value = textAt(spec, key)
  if (value === '') return [required(`spec.${key}`)]
  return allowed.includes(value) ? [] : [notSupported(`spec.${key}`, value, allowed)]
}

/** Fields with a name in them, and what the name must be. */
const names: readonly [string, (name: string) => string[]][] = [
  ['serviceAccountName', (name) => nameIsDnsSubdomain(name, false)],
  ['nodeName', (name) => nameIsDnsSubdomain(name, false)],
]
const hostNames: readonly [string, (name: string) => string[]][] = [
  ['hostname', dns1123LabelProblems],
  ['subdomain', dns1123LabelProblems],
]
const classNames: readonly [string, (name: string) => string[]][] = [
  ['priorityClassName', dns1123SubdomainProblems],
  ['runtimeClassName', dns1123SubdomainProblems],
]

const namesProblems = (spec: Fields, rules: typeof names): FieldProblem[] =>
  problemsOfEach(rules, ([key, rule]) => {
    const name = textAt(spec, key)
    return name ? invalidEach(`spec.${key}`, name, rule(name)) : []
  })

function deadlineProblems(spec: Fields): FieldProblem[] {
  const seconds = numberAt(spec, 'activeDeadlineSeconds')
  if (seconds === undefined || (seconds >= 1 && seconds <= maxSeconds)) return []
  return [invalidValue('spec.activeDeadlineSeconds', seconds, rangeProblem(1, maxSeconds))]
}

const hostAliasProblems = (spec: Fields): FieldProblem[] =>
  problemsOfEach(recordsAt(spec, 'hostAliases'), (alias, index) => {
    const ip = textAt(alias, 'ip')
    const field = `spec.hostAliases[${index}]`
    return [
      ...invalidEach(`${field}.ip`, ip, ipProblems(ip)),
      ...problemsOfEach(textsAt(alias, 'hostnames'), (host, at) =>
        invalidEach(`${field}.hostnames[${at}]`, host, dns1123SubdomainProblems(host)),
      ),
    ]
  })

function dnsConfigProblems(spec: Fields): FieldProblem[] {
  const config = fieldsAt(spec, 'dnsConfig')
  const servers = textsAt(config, 'nameservers')
  const at = 'spec.dnsConfig'
  if (textAt(spec, 'dnsPolicy') === 'None' && servers.length === 0) {
    return isRecord(spec['dnsConfig'])
      ? [
          required(
            `${at}.nameservers`,
            'must provide at least one DNS nameserver when `dnsPolicy` is None',
          ),
        ]
      : [required(at, 'must provide `dnsConfig` when `dnsPolicy` is None')]
  }
  return [
    ...(servers.length > 3
      ? [invalidValue(`${at}.nameservers`, servers, 'must not have more than 3 nameservers')]
      : []),
    ...problemsOfEach(servers, (ip, index) =>
      invalidEach(`${at}.nameservers[${index}]`, ip, ipProblems(ip)),
    ),
    ...problemsOfEach(recordsAt(config, 'options'), (option, index) =>
      textAt(option, 'name') ? [] : [required(`${at}.options[${index}]`, 'must not be empty')],
    ),
  ]
}

function osProblems(spec: Fields): FieldProblem[] {
  if (!isRecord(spec['os'])) return []
  const name = textAt(fieldsAt(spec, 'os'), 'name')
  if (!name) return [required('spec.os.name')]
  const known = ['linux', 'windows']
  return known.includes(name) ? [] : [notSupported('spec.os', name, known)]
}

const tokenProblems = (spec: Fields): FieldProblem[] =>
  textAt(spec, 'serviceAccountName')
    ? []
    : problemsOfEach(recordsAt(spec, 'volumes'), (volume, index) =>
        problemsOfEach(recordsAt(fieldsAt(volume, 'projected'), 'sources'), (source, at) => {
          if (!isRecord(source['serviceAccountToken'])) return []
          const field = `spec.volumes[${index}].projected.sources[${at}].serviceAccountToken`
          const words = 'must not be specified when serviceAccountName is not set'
          return [forbiddenValue(field, words)]
        }),
      )

/** Every problem of a pod, in Kubernetes' order. */
export function validatePod(draft: KubeObject): FieldProblem[] {
  const spec = fieldsAt(draft, 'spec')
  const volumes = volumeProblems(spec)
  const containers = recordsAt(spec, 'containers')
  const preemption = textAt(spec, 'preemptionPolicy')
  return [
    ...volumes.problems,
    ...containersProblems(containers, volumes.names),
    ...initContainersProblems(spec, volumes.names),
    ...hostNetworkProblems(containers, spec),
    ...choice(spec, 'restartPolicy', ['Always', 'OnFailure', 'Never']),
    ...choice(spec, 'dnsPolicy', ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    ...labelProblems(textMapAt(spec, 'nodeSelector'), 'spec.nodeSelector'),
    ...podSecurityProblems(spec),
    ...affinityProblems(spec),
    ...dnsConfigProblems(spec),
    ...gateProblems(spec),
    ...spreadProblems(spec),
    ...namesProblems(spec, names),
    ...deadlineProblems(spec),
    ...namesProblems(spec, hostNames),
    ...tolerationProblems(spec),
    ...hostAliasProblems(spec),
    ...namesProblems(spec, classNames),
    ...(preemption ? choice(spec, 'preemptionPolicy', ['PreemptLowerPriority', 'Never']) : []),
    ...osProblems(spec),
    ...tokenProblems(spec),
    ...imageProblems(spec),
  ]
}

/** What is wrong with a pod only while it is new. */
export function newPodProblems(draft: KubeObject): FieldProblem[] {
  if (draft.metadata.resourceVersion) return []
  const spec = fieldsAt(draft, 'spec')
  const isGated = recordsAt(spec, 'schedulingGates').length > 0
  const words = 'cannot be set until all schedulingGates have been cleared'
  return [
    ...(recordsAt(spec, 'ephemeralContainers').length > 0
      ? [forbiddenValue('spec.ephemeralContainers', 'cannot be set on create')]
      : []),
    ...(isGated && textAt(spec, 'nodeName') ? [forbiddenValue('spec.nodeName', words)] : []),
  ]
}
