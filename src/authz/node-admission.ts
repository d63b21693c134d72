import { isDeepStrictEqual } from 'node:util'
import {
  type Admission,
  forbidden,
  goQuote,
  isRecord,
  type KubeObject,
  type WriteAttempt,
} from '../core/index.ts'
import {
  isCertificateRequest,
  requestedSubject,
  type SubjectReader,
  signerOf,
  signers,
} from './certificate-admission.ts'
import { forbiddenNodeLabels, nodeLeaseNamespace, nodeNameOf } from './node-authorizer.ts'

/**
 * Holds a node identity to its own Node, its own Lease and requests for its own certificates,
 * whatever rights it was given besides.
 */
export function nodeAdmission(readSubject: SubjectReader): Admission {
  return (attempt) => {
    const node = nodeNameOf(attempt.user)
    if (node === undefined) return
    if (node === '') {
      throw refusal(attempt, `could not determine node from user ${goQuote(attempt.user.username)}`)
    }
    const { group, resource } = attempt.kind
    if (group === '' && resource === 'nodes') return admitNode(node, attempt)
    if (group === 'coordination.k8s.io' && resource === 'leases') return admitLease(node, attempt)
    if (isCertificateRequest(attempt)) return admitRequest(node, attempt, readSubject)
    if (group === 'authentication.k8s.io' || group === 'authorization.k8s.io') return
    throw refusal(attempt, `node ${goQuote(node)} can only write its own Node, Lease and CSRs`)
  }
}

const refusal = (attempt: WriteAttempt, why: string) => forbidden(attempt.kind, attempt.name, why)

function specField(object: KubeObject | undefined, field: string): unknown {
  const spec = object?.['spec']
  return isRecord(spec) ? spec[field] : undefined
}

function admitNode(node: string, attempt: WriteAttempt): void {
  const { name, operation, object, oldObject } = attempt
  const who = `node ${goQuote(node)}`
  if (name !== node) {
    throw refusal(attempt, `${who} is not allowed to modify node ${goQuote(name)}`)
  }
  if (operation === 'create') {
    const labels = forbiddenNodeLabels(object?.metadata.labels, undefined)
    if (labels.length > 0) {
      throw refusal(
        attempt,
        `${who} is not allowed to set the following labels: ${labels.join(', ')}`,
      )
    }
  }
  if (operation === 'update') refuseNodeChanges(who, attempt, object, oldObject)
}

function refuseNodeChanges(
  who: string,
  attempt: WriteAttempt,
  object: KubeObject | undefined,
  old: KubeObject | undefined,
): void {
  if (!sameList(specField(object, 'taints'), specField(old, 'taints'))) {
    throw refusal(attempt, `${who} is not allowed to modify taints`)
  }
  if (!sameList(object?.metadata.ownerReferences, old?.metadata.ownerReferences)) {
    throw refusal(attempt, `${who} is not allowed to modify ownerReferences`)
  }
  const labels = forbiddenNodeLabels(object?.metadata.labels, old?.metadata.labels)
  if (labels.length > 0) {
    throw refusal(attempt, `is not allowed to modify labels: ${labels.join(', ')}`)
  }
}

const sameList = (a: unknown, b: unknown): boolean => isDeepStrictEqual(a ?? [], b ?? [])

function admitLease(node: string, attempt: WriteAttempt): void {
  if (attempt.namespace !== nodeLeaseNamespace) {
    throw refusal(
      attempt,
      `can only access leases in the ${goQuote(nodeLeaseNamespace)} system namespace`,
    )
  }
  if (attempt.name !== node) {
    throw refusal(attempt, 'can only access node lease with the same name as the requesting node')
  }
}

const kubeletSigners: readonly string[] = [signers.kubeletClient, signers.kubeletServing]

async function admitRequest(
  node: string,
  attempt: WriteAttempt,
  readSubject: SubjectReader,
): Promise<void> {
  const { operation, object } = attempt
  if (operation !== 'create' || !object) {
    throw refusal(attempt, `node ${goQuote(node)} can only create CSRs`)
  }
  if (!kubeletSigners.includes(signerOf(object))) return
  const { commonName } = await parsed(attempt, object, readSubject)
  if (commonName !== `system:node:${node}`) {
    throw refusal(attempt, `can only create a node CSR with CN=system:node:${node}`)
  }
}

async function parsed(attempt: WriteAttempt, object: KubeObject, readSubject: SubjectReader) {
  try {
    return await requestedSubject(object, readSubject)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'not a certificate request'
    throw refusal(attempt, `unable to parse csr: ${why}`)
  }
}
