import { isRecord } from '../../../core/index.ts'
import {
  asGoStruct,
  type FieldProblem,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
} from '../../validation/field-problem.ts'
import { rangeProblem } from '../../validation/names.ts'
import { type Fields, fieldsAt, flagAt, numberAt, textAt, textsAt } from '../fields.ts'
import { descendingPathProblems } from './volume-rules.ts'

const maxId = 2 ** 31 - 1

function idProblems(value: unknown, field: string): FieldProblem[] {
  if (typeof value !== 'number' || (value >= 0 && value <= maxId)) return []
  return [invalidValue(field, value, rangeProblem(0, maxId))]
}

const profileTypes = ['Localhost', 'RuntimeDefault', 'Unconfined']

function seccompProblems(context: Fields, field: string): FieldProblem[] {
  if (!isRecord(context['seccompProfile'])) return []
  const profile = fieldsAt(context, 'seccompProfile')
  const [type, local] = [textAt(profile, 'type'), textAt(profile, 'localhostProfile')]
  const at = `${field}.seccompProfile`
  if (type === '') return [required(`${at}.type`, 'type is required when seccompProfile is set')]
  const typeProblems = profileTypes.includes(type)
    ? []
    : [notSupported(`${at}.type`, type, profileTypes)]
  if (type === 'Localhost') {
    return local
      ? descendingPathProblems(local, `${at}.localhostProfile`)
      : [required(`${at}.localhostProfile`, 'must be set when seccomp type is Localhost')]
  }
  const words = 'can only be set when seccomp type is Localhost'
  return local
    ? [...typeProblems, invalidValue(`${at}.localhostProfile`, profile, words)]
    : typeProblems
}

const contextNames = {
  Capabilities: 'capabilities',
  Privileged: 'privileged',
  SELinuxOptions: 'seLinuxOptions',
  WindowsOptions: 'windowsOptions',
  RunAsUser: 'runAsUser',
  RunAsGroup: 'runAsGroup',
  RunAsNonRoot: 'runAsNonRoot',
  ReadOnlyRootFilesystem: 'readOnlyRootFilesystem',
  AllowPrivilegeEscalation: 'allowPrivilegeEscalation',
  ProcMount: 'procMount',
  SeccompProfile: 'seccompProfile',
  AppArmorProfile: 'appArmorProfile',
}
const noContext = Object.fromEntries(Object.values(contextNames).map((name) => [name, null]))

/** Problems of the rights of one container. */
export function containerSecurityProblems(container: Fields, field: string): FieldProblem[] {
  const context = fieldsAt(container, 'securityContext')
  const at = `${field}.securityContext`
  const isContained = context['allowPrivilegeEscalation'] === false
  const added = textsAt(fieldsAt(context, 'capabilities'), 'add')
  const shown = asGoStruct(context, contextNames, noContext)
  const words = (what: string): string =>
    `cannot set \`allowPrivilegeEscalation\` to false and ${what}`
  return [
    ...idProblems(context['runAsUser'], `${at}.runAsUser`),
    ...idProblems(context['runAsGroup'], `${at}.runAsGroup`),
    ...seccompProblems(context, at),
    ...(isContained && flagAt(context, 'privileged')
      ? [invalidValue(at, shown, words('`privileged` to true'))]
      : []),
    ...(isContained && added.includes('CAP_SYS_ADMIN')
      ? [invalidValue(at, shown, words('`capabilities.Add` CAP_SYS_ADMIN'))]
      : []),
  ]
}

/** Problems of the rights of a whole pod. */
export function podSecurityProblems(spec: Fields): FieldProblem[] {
  const context = fieldsAt(spec, 'securityContext')
  const at = 'spec.securityContext'
  const groups = Array.isArray(context['supplementalGroups']) ? context['supplementalGroups'] : []
  const policies = ['Always', 'OnRootMismatch']
  const policy = textAt(context, 'fsGroupChangePolicy')
  const sharesTwice = flagAt(spec, 'shareProcessNamespace') && flagAt(spec, 'hostPID')
  const words = 'ShareProcessNamespace and HostPID cannot both be enabled'
  return [
    ...idProblems(context['fsGroup'], `${at}.fsGroup`),
    ...idProblems(context['runAsUser'], `${at}.runAsUser`),
    ...idProblems(context['runAsGroup'], `${at}.runAsGroup`),
    ...problemsOfEach(groups, (id, index) => idProblems(id, `${at}.supplementalGroups[${index}]`)),
    ...(sharesTwice ? [invalidValue(`${at}.shareProcessNamespace`, true, words)] : []),
    ...(policy && !policies.includes(policy)
      ? [notSupported(`${at}.fsGroupChangePolicy`, policy, policies)]
      : []),
    ...seccompProblems(context, at),
  ]
}

/** Problems of ports that a pod on the network of its node must share with it. */
export function hostNetworkProblems(containers: readonly Fields[], spec: Fields): FieldProblem[] {
  if (!flagAt(spec, 'hostNetwork')) return []
  const words = 'must match `containerPort` when `hostNetwork` is true'
  return problemsOfEach(containers, (container, index) =>
    (Array.isArray(container['ports']) ? container['ports'].filter(isRecord) : []).flatMap(
      (port, at) => {
        const host = numberAt(port, 'hostPort') ?? 0
        if (host === (numberAt(port, 'containerPort') ?? 0)) return []
        return [invalidValue(`spec.containers[${index}].ports[${at}].hostPort`, host, words)]
      },
    ),
  )
}
