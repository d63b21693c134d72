import { type KubeObject, kubeTime } from '../../core/index.ts'
import { nameIsPathSegment } from '../validation/names.ts'
import { ageColumn, column, nameColumn } from './columns.ts'
import { conditionsOf, validateRequest, validateStatusChange } from './csr-rules.ts'
import { defineKind } from './define-kind.ts'
import {
  carryOver,
  ensureFields,
  type Fields,
  fieldsAt,
  isUnset,
  numberAt,
  textAt,
} from './fields.ts'
import { humanDuration } from './human-duration.ts'
import type { WriteContext } from './kind-definition.ts'

const specOf = (object: KubeObject): Fields => fieldsAt(object, 'spec')

/** Who asks is what the server knows, never what the request says. */
function prepareCreate(draft: KubeObject, { user }: WriteContext): void {
  const spec = ensureFields(draft, 'spec')
  for (const field of ['username', 'uid', 'groups', 'extra']) delete spec[field]
  spec['username'] = user.username
  if (user.uid) spec['uid'] = user.uid
  if (user.groups.length > 0) spec['groups'] = [...user.groups]
  if (user.extra && Object.keys(user.extra).length > 0) spec['extra'] = structuredClone(user.extra)
  draft['status'] = {}
}

function withTimes(condition: Fields, stored: KubeObject, now: string): Fields {
  const known = conditionsOf(stored).find(
    (old) =>
      old['type'] === condition['type'] &&
      old['status'] === condition['status'] &&
      !isUnset(old['lastTransitionTime']),
  )
  return {
    ...condition,
    lastUpdateTime: condition['lastUpdateTime'] ?? now,
    lastTransitionTime: condition['lastTransitionTime'] ?? known?.['lastTransitionTime'] ?? now,
  }
}

function mergeApproval(sent: KubeObject, stored: KubeObject, context: WriteContext): KubeObject {
  const now = kubeTime(context.clock.now())
  const status: Fields = { ...fieldsAt(stored, 'status') }
  const conditions = conditionsOf(sent).map((condition) => withTimes(condition, stored, now))
  if (conditions.length > 0) status['conditions'] = conditions
  else delete status['conditions']
  return { ...stored, metadata: sent.metadata, status }
}

/** Approved and Denied keep their stored form unless some were added or removed. */
function withStoredDecisions(conditions: Fields[], stored: KubeObject): Fields[] {
  return ['Approved', 'Denied'].reduce((result, type) => {
    const old = conditionsOf(stored).filter((condition) => condition['type'] === type)
    const count = result.filter((condition) => condition['type'] === type).length
    if (old.length !== count) return result
    return result.map((condition) =>
      condition['type'] === type ? (old.shift() ?? condition) : condition,
    )
  }, conditions)
}

function mergeStatus(sent: KubeObject, stored: KubeObject, context: WriteContext): KubeObject {
  const now = kubeTime(context.clock.now())
  const status: Fields = { ...fieldsAt(sent, 'status') }
  const conditions = withStoredDecisions(conditionsOf(sent), stored)
  if (conditions.length > 0) {
    status['conditions'] = conditions.map((condition) => withTimes(condition, stored, now))
  }
  return { ...stored, metadata: sent.metadata, status }
}

function outcomeOf(object: KubeObject): string {
  const types = new Set(conditionsOf(object).map((condition) => condition['type']))
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending'
  const isIssued = textAt(fieldsAt(object, 'status'), 'certificate') !== ''
  return [
    decision,
    ...(types.has('Failed') ? ['Failed'] : []),
    ...(isIssued ? ['Issued'] : []),
  ].join(',')
}

function requestedDuration(object: KubeObject): string {
  const seconds = numberAt(specOf(object), 'expirationSeconds')
  return seconds === undefined ? '<none>' : humanDuration(seconds * 1000)
}

/** Asks for a certificate; approved by one party, issued by another. */
export const certificateSigningRequest = defineKind({
  kind: {
    group: 'certificates.k8s.io',
    version: 'v1',
    kind: 'CertificateSigningRequest',
    resource: 'certificatesigningrequests',
    namespaced: false,
  },
  shortNames: ['csr'],
  subresources: [
    {
      name: 'approval',
      verbs: ['get', 'patch', 'update'],
      merge: mergeApproval,
      validate: (draft, stored) =>
        validateStatusChange(draft, stored, { decide: true, issue: false }),
    },
    {
      name: 'status',
      verbs: ['get', 'patch', 'update'],
      merge: mergeStatus,
      validate: (draft, stored) =>
        validateStatusChange(draft, stored, { decide: false, issue: true }),
    },
  ],
  nameProblems: nameIsPathSegment,
  selectableFields: { 'spec.signerName': (object) => textAt(specOf(object), 'signerName') },
  prepareCreate,
  prepareUpdate: (draft, stored) => {
    carryOver(draft, stored, 'spec')
    carryOver(draft, stored, 'status')
  },
  validate: validateRequest,
  columns: [
    nameColumn,
    ageColumn,
    column(
      'SignerName',
      'Who is to sign.',
      (object) => textAt(specOf(object), 'signerName') || '<none>',
    ),
    column('Requestor', 'Who asks.', (object) => textAt(specOf(object), 'username')),
    column('RequestedDuration', 'How long the certificate is to be good.', requestedDuration),
    column('Condition', 'What has become of the request.', outcomeOf),
  ],
})
