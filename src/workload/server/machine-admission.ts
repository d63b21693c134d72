import { isDeepStrictEqual } from 'node:util'
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
  type WriteAttempt,
  wellKnownKinds,
} from '../../core/index.ts'
import { problemOfCertificate } from './own-certificate.ts'
import { podAddresses, problemOfAddresses } from './pod-addresses.ts'

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
