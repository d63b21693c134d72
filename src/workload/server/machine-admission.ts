import { isDeepStrictEqual } from 'node:util'
import { endpointIpProblems } from '../../api/index.ts'
import {
  type Admission,
  type ClusterView,
  forbidden,
  goQuote,
  isRecord,
  type KubeObject,
  machineIdentity,
  machineNameOf,
  machineOf,
  type ResourceAttributes,
  type WriteAttempt,
  wellKnownKinds,
} from '../../core/index.ts'
import { CsrInvalid, parseCsr } from '../../pki/index.ts'

const { group, resource } = wellKnownKinds.certificateSigningRequest

/** Whether it is about requests for certificates themselves, and not about their approval. */
export const isCertificateRequest = (
  asked: Pick<ResourceAttributes, 'group' | 'resource' | 'subresource'>,
): boolean => asked.group === group && asked.resource === resource && asked.subresource === ''

/** Why a machine may not write this request for a certificate; undefined if it renews its own. */
function problemOfCertificate({
  kind,
  operation,
  subresource,
  object,
  user,
}: WriteAttempt): string | undefined {
  if (operation !== 'create' || !object || !isCertificateRequest({ ...kind, subresource }))
    return 'a machine can only ask for certificates'
  const subject = subjectOf(object)
  const isOwn =
    subject?.commonName === user.username &&
    subject.organizations.length === 1 &&
    subject.organizations[0] === machineIdentity.group
  return isOwn ? undefined : 'a machine can only ask for a certificate of its own name and group'
}

function subjectOf({ spec }: KubeObject) {
  const request = isRecord(spec) ? spec['request'] : undefined
  if (typeof request !== 'string') return undefined
  try {
    return parseCsr(Buffer.from(request, 'base64').toString()).subject
  } catch (error) {
    if (error instanceof CsrInvalid) return undefined
    throw error
  }
}

/** The addresses in a Pod's status, each once. */
function podAddresses(pod: KubeObject | undefined): string[] {
  const status = pod?.['status']
  if (!isRecord(status)) return []
  const listed = Array.isArray(status['podIPs']) ? status['podIPs'].filter(isRecord) : []
  const all = [status['podIP'], ...listed.map(({ ip }) => ip)]
  return [...new Set(all.filter((ip) => typeof ip === 'string' && ip !== ''))].map(String)
}

/**
 * Why these cannot be the addresses of a Pod. Loopback is refused to all but those whose loopback is the
 * server's; the strict rule also refuses what no process can be reached at, such as link-local addresses.
 */
function problemOfAddresses(
  addresses: readonly string[],
  rule: { readonly mayLoopback: boolean; readonly isStrict: boolean },
): string | undefined {
  for (const ip of addresses) {
    const anyway = endpointIpProblems(ip, true)
    const isLoopback = endpointIpProblems(ip, false).length > anyway.length
    if (isLoopback && !rule.mayLoopback)
      return `pod IP ${ip} is on loopback, which is for \`workload run\` on the server's own machine only`
    if (rule.isStrict && anyway.length > 0) return `pod IP ${ip} ${anyway[0]}`
  }
  return undefined
}

/**
 * Holds the identity of a machine to its own Pods, their Leases and its own certificate, whatever rights it was given besides,
 * and everybody else off the mark and off what carries it. Deleting such a Pod is left to RBAC:
 * that ends the process, as it does in Kubernetes.
 */
export function machineAdmission(view: Pick<ClusterView, 'get'>): Admission {
  return (attempt, signal) => {
    const machine = machineNameOf(attempt.user)
    if (machine === undefined) return admitOther(attempt)
    if (machine === '')
      throw refusal(attempt, `${goQuote(attempt.user.username)} is no name of a machine`)
    const { group } = attempt.kind
    if (isPod(attempt)) return admitPod(machine, attempt)
    if (isLease(attempt)) return admitLease(view, machine, attempt, signal)
    // Reviews are questions; a token is bound to a Pod of the machine by whoever issues it.
    if (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return
    if (group === wellKnownKinds.certificateSigningRequest.group) return admitCertificate(attempt)
    throw refusal(attempt, `machine ${goQuote(machine)} can only write its own Pods and Leases`)
  }
}

const refusal = (attempt: WriteAttempt, why: string) => forbidden(attempt.kind, attempt.name, why)

const isPod = ({ kind }: WriteAttempt): boolean => kind.group === '' && kind.resource === 'pods'

const isLease = ({ kind }: WriteAttempt): boolean =>
  kind.group === wellKnownKinds.lease.group && kind.resource === wellKnownKinds.lease.resource

const markOf = (object: KubeObject | undefined) => object && machineOf(object)

function admitOther(attempt: WriteAttempt): void {
  const { operation, object, oldObject, subresource } = attempt
  if (operation === 'delete' || !(isPod(attempt) || isLease(attempt))) return
  const marked = markOf(oldObject)
  if (markOf(object) !== marked)
    throw refusal(attempt, 'the label sallyport.dev/workload is written by `workload run` only')
  // Others may touch metadata: collectors of garbage take finalizers away.
  const isState = isLease(attempt)
    ? !isDeepStrictEqual(object?.['spec'], oldObject?.['spec'])
    : subresource !== ''
  if (marked !== undefined && isState)
    throw refusal(attempt, `only machine ${goQuote(marked)} can write the state of its workloads`)
  if (isPod(attempt)) requireAddresses(attempt, false)
}

function admitCertificate(attempt: WriteAttempt): void {
  const problem = problemOfCertificate(attempt)
  if (problem !== undefined) throw refusal(attempt, problem)
}

function admitPod(machine: string, attempt: WriteAttempt): void {
  requireOwn(machine, attempt)
  const { operation, object } = attempt
  if (operation === 'delete' || object === undefined) return
  const spec = object['spec']
  if (!isRecord(spec) || spec['nodeName'] !== machine)
    throw refusal(attempt, `spec.nodeName must be ${goQuote(machine)}`)
  if (operation === 'create' && (object.metadata.ownerReferences ?? []).length > 0)
    throw refusal(attempt, 'a workload of a machine has no owner')
  requireAddresses(attempt, attempt.user.groups.includes(machineIdentity.loopbackGroup))
}

/** What is there and what is to be there must both carry the machine's mark. */
function requireOwn(machine: string, attempt: WriteAttempt): void {
  const { operation, object, oldObject } = attempt
  const isOwn =
    (operation === 'create' || markOf(oldObject) === machine) &&
    (operation === 'delete' || markOf(object) === machine)
  if (isOwn) return
  const what = isPod(attempt) ? 'Pods' : 'Leases'
  throw refusal(
    attempt,
    `machine ${goQuote(machine)} can only write ${what} with the label sallyport.dev/workload=${machine}`,
  )
}

/** Addresses that stay as they are were judged before. */
function requireAddresses(attempt: WriteAttempt, mayLoopback: boolean): void {
  const addresses = podAddresses(attempt.object)
  if (isDeepStrictEqual(addresses, podAddresses(attempt.oldObject))) return
  const isMachine = machineNameOf(attempt.user) !== undefined
  const problem = problemOfAddresses(addresses, { mayLoopback, isStrict: isMachine })
  if (problem !== undefined) throw refusal(attempt, problem)
}

/** A Lease is named as its Pod, so that no machine can take one that others agree upon. */
async function admitLease(
  view: Pick<ClusterView, 'get'>,
  machine: string,
  attempt: WriteAttempt,
  signal: AbortSignal,
): Promise<void> {
  requireOwn(machine, attempt)
  if (attempt.operation !== 'create') return
  const { namespace, name } = attempt
  const pod = await view.get(wellKnownKinds.pod, { namespace, name }, signal)
  if (markOf(pod) === machine) return
  throw refusal(attempt, `there is no Pod ${goQuote(name)} of machine ${goQuote(machine)}`)
}
