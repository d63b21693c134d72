import { X509Certificate } from 'node:crypto'
import { goQuote, type KubeObject, kubeTime } from '../../core/index.ts'
import {
  duplicateValue,
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  notSupported,
  problemsOfEach,
  required,
  tooLong,
} from '../validation/field-problem.ts'
import { nameIsPathSegment, signerNameProblems } from '../validation/names.ts'
import { pemBlocks } from '../validation/pem-blocks.ts'
import {
  ageColumn,
  column,
  defineKind,
  humanDuration,
  nameColumn,
  type WriteContext,
} from './define-kind.ts'
import {
  carryOver,
  ensureFields,
  type Fields,
  fieldsAt,
  isUnset,
  numberAt,
  recordsAt,
  repeatedAt,
  textAt,
  textsAt,
} from './fields.ts'

const usages = [
  'any',
  'cert sign',
  'client auth',
  'code signing',
  'content commitment',
  'crl sign',
  'data encipherment',
  'decipher only',
  'digital signature',
  'email protection',
  'encipher only',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'key agreement',
  'key encipherment',
  'microsoft sgc',
  'netscape sgc',
  'ocsp signing',
  's/mime',
  'server auth',
  'signing',
  'timestamping',
]

const legacySigner = 'kubernetes.io/legacy-unknown'
const minSeconds = 600
/** Of a certificate request in base64: far more than a key and its names have. */
const maxRequestLength = 64 * 1024
const conditionsField = 'status.conditions'

/** The conditions in `status` of a request. */
const conditionsOf = (object: KubeObject): Fields[] =>
  recordsAt(fieldsAt(object, 'status'), 'conditions')

const decoded = (base64: string): string => Buffer.from(base64, 'base64').toString('latin1')

function requestProblems(spec: Fields): FieldProblem[] {
  const request = textAt(spec, 'request')
  if (request.length > maxRequestLength) return [tooLong('spec.request', maxRequestLength)]
  if (pemBlocks(decoded(request))[0]?.label === 'CERTIFICATE REQUEST') return []
  return [
    invalidValue('spec.request', request || null, 'PEM block type must be CERTIFICATE REQUEST'),
  ]
}

function usageProblems(spec: Fields): FieldProblem[] {
  const asked = textsAt(spec, 'usages')
  if (asked.length === 0) return [required('spec.usages')]
  const at = (index: number): string => `spec.usages[${index}]`
  return [
    ...problemsOfEach(asked, (usage, index) =>
      usages.includes(usage) ? [] : [notSupported(at(index), usage, usages)],
    ),
    ...repeatedAt(asked).map((index) => duplicateValue(at(index), asked[index])),
  ]
}

function signerProblems(spec: Fields): FieldProblem[] {
  const signer = textAt(spec, 'signerName')
  if (signer !== legacySigner) return signerNameProblems(signer, 'spec.signerName')
  const words = 'the legacy signerName is not allowed via this API version'
  return [invalidValue('spec.signerName', signer, words)]
}

function durationProblems(spec: Fields): FieldProblem[] {
  const seconds = numberAt(spec, 'expirationSeconds')
  if (seconds === undefined || seconds >= minSeconds) return []
  const words = 'may not specify a duration less than 600 seconds (10 minutes)'
  return [invalidValue('spec.expirationSeconds', seconds, words)]
}

function conditionStatusProblems(condition: Fields, field: string): FieldProblem[] {
  const status = textAt(condition, 'status')
  const isOneWay = ['Approved', 'Denied', 'Failed'].includes(textAt(condition, 'type'))
  const allowed = isOneWay ? ['True'] : ['False', 'True', 'Unknown']
  if (status === '') return [required(`${field}.status`)]
  return allowed.includes(status) ? [] : [notSupported(`${field}.status`, status, allowed)]
}

const opposite: ReadonlyMap<string, string> = new Map([
  ['Approved', 'Denied'],
  ['Denied', 'Approved'],
])

function conditionProblems(conditions: readonly Fields[]): FieldProblem[] {
  const earlier = new Set<string>()
  return problemsOfEach(conditions, (condition, index) => {
    const field = `${conditionsField}[${index}]`
    const type = textAt(condition, 'type')
    const words = 'Approved and Denied conditions are mutually exclusive'
    const other = opposite.get(type)
    const excludes = other !== undefined && earlier.has(other)
    const repeats = earlier.has(type)
    earlier.add(type)
    return [
      ...(type ? [] : [required(`${field}.type`)]),
      ...conditionStatusProblems(condition, field),
      ...(excludes ? [invalidValue(conditionsField, type, words)] : []),
      ...(repeats ? [duplicateValue(`${field}.type`, type)] : []),
    ]
  })
}

function certificateProblem(base64: string): string | undefined {
  if (base64 === '') return undefined
  const blocks = pemBlocks(decoded(base64))
  if (blocks.length === 0) return 'must contain at least one CERTIFICATE PEM block'
  for (const { label, hasHeaders, bytes } of blocks) {
    if (label !== 'CERTIFICATE') {
      return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(label)}`
    }
    if (hasHeaders) return 'no PEM block headers are permitted'
    if (!isCertificate(bytes)) return 'x509: malformed certificate'
  }
  return undefined
}

function isCertificate(der: Buffer): boolean {
  try {
    return new X509Certificate(der).raw.length > 0
  } catch {
    return false
  }
}

/** Every problem of a request and of the answer it has got so far. */
function validateRequest(draft: KubeObject): FieldProblem[] {
  const spec = fieldsAt(draft, 'spec')
  const why = certificateProblem(textAt(fieldsAt(draft, 'status'), 'certificate'))
  return [
    ...requestProblems(spec),
    ...usageProblems(spec),
    ...signerProblems(spec),
    ...durationProblems(spec),
    ...conditionProblems(conditionsOf(draft)),
    ...(why === undefined ? [] : [invalidValue('status.certificate', '<certificate data>', why)]),
  ]
}

/** What a change of `status` may touch. */
interface StatusRights {
  /** Approve or deny. */
  readonly decide: boolean
  /** Put the certificate in. */
  readonly issue: boolean
}

const countOf = (object: KubeObject, type: string): number =>
  conditionsOf(object).filter((condition) => condition['type'] === type).length

function decisionProblems(draft: KubeObject, stored: KubeObject, decide: boolean): FieldProblem[] {
  const words = (verb: string, type: string) =>
    forbiddenValue(conditionsField, `updates may not ${verb} a condition of type ${goQuote(type)}`)
  const removed = ['Approved', 'Denied', 'Failed']
    .filter((type) => countOf(draft, type) < countOf(stored, type))
    .map((type) => words('remove', type))
  if (decide) return removed
  const added = ['Approved', 'Denied']
    .filter((type) => countOf(draft, type) > countOf(stored, type))
    .map((type) => words('add', type))
  return [...removed, ...added]
}

function issueProblems(draft: KubeObject, stored: KubeObject, issue: boolean): FieldProblem[] {
  const field = 'status.certificate'
  const old = textAt(fieldsAt(stored, 'status'), 'certificate')
  if (textAt(fieldsAt(draft, 'status'), 'certificate') === old) return []
  if (!issue) return [forbiddenValue(field, 'updates may not set certificate content')]
  return old ? [forbiddenValue(field, 'updates may not modify existing certificate content')] : []
}

/** Every problem of a change, given what it may touch. */
const validateStatusChange = (
  draft: KubeObject,
  stored: KubeObject,
  rights: StatusRights,
): FieldProblem[] => [
  ...validateRequest(draft),
  ...decisionProblems(draft, stored, rights.decide),
  ...issueProblems(draft, stored, rights.issue),
]

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
