import {
  type ClusterView,
  isRecord,
  type KubeObject,
  kubeTime,
  type UserInfo,
} from '../../core/index.ts'

/** What has become of a request, with the moment; the reason is that of whoever decided. */
export interface RequestCondition {
  readonly type: string
  readonly reason: string
  readonly atMs: number
}

/** A request for a certificate, read from its object. */
export interface SigningRequest {
  readonly object: KubeObject
  readonly name: string
  readonly uid: string
  readonly signer: string
  /** Who asks, as the server knew them when they asked. */
  readonly requester: UserInfo
  /** PEM of the request itself. */
  readonly pem: string
  readonly usages: readonly string[]
  readonly expirationSeconds: number | undefined
  readonly createdAtMs: number
  readonly conditions: readonly RequestCondition[]
  readonly isIssued: boolean
  /** PEM of the issued certificate; empty before. */
  readonly certificatePem: string
}

/** Reads the object of a request; what is missing is empty. */
export function readSigningRequest(object: KubeObject): SigningRequest {
  const spec = recordOf(object['spec'])
  const status = recordOf(object['status'])
  const seconds = spec['expirationSeconds']
  return {
    object,
    name: object.metadata.name,
    uid: object.metadata.uid ?? '',
    signer: textOf(spec['signerName']),
    requester: requesterOf(spec),
    pem: Buffer.from(textOf(spec['request']), 'base64').toString(),
    usages: textsOf(spec['usages']),
    expirationSeconds: typeof seconds === 'number' ? seconds : undefined,
    createdAtMs: timeOf(object.metadata.creationTimestamp),
    conditions: recordsOf(status['conditions']).map((condition) => ({
      type: textOf(condition['type']),
      reason: textOf(condition['reason']),
      atMs: timeOf(condition['lastUpdateTime']),
    })),
    isIssued: textOf(status['certificate']) !== '',
    certificatePem: Buffer.from(textOf(status['certificate']), 'base64').toString(),
  }
}

/** The condition of this type, if the request has it. */
export const conditionOf = (request: SigningRequest, type: string): RequestCondition | undefined =>
  request.conditions.find((condition) => condition.type === type)

function requesterOf(spec: Readonly<Record<string, unknown>>): UserInfo {
  const uid = textOf(spec['uid'])
  const extra = Object.entries(recordOf(spec['extra'])).map(
    ([name, values]) => [name, textsOf(values)] as const,
  )
  return {
    username: textOf(spec['username']),
    ...(uid && { uid }),
    groups: textsOf(spec['groups']),
    ...(extra.length > 0 && { extra: Object.fromEntries(extra) }),
  }
}

/** What is said of a request: one more condition. */
export interface Verdict {
  readonly type: 'Approved' | 'Denied' | 'Failed'
  readonly reason: string
  readonly message: string
}

/** Writes a verdict into the request; whoever has changed it meanwhile wins. */
export async function writeVerdict(
  view: ClusterView,
  { object }: SigningRequest,
  verdict: Verdict & { readonly nowMs: number },
  signal: AbortSignal,
): Promise<void> {
  const { nowMs, ...condition } = verdict
  const status = recordOf(object['status'])
  const conditions = [
    ...recordsOf(status['conditions']),
    { ...condition, status: 'True', lastUpdateTime: kubeTime(nowMs) },
  ]
  const changed = { ...object, status: { ...status, conditions } }
  const subresource = verdict.type === 'Failed' ? 'status' : 'approval'
  await view.write('update', changed, { subresource, ...versionOf(object) }, signal)
}

/** Writes the certificate into the request; whoever has changed it meanwhile wins. */
export async function writeCertificate(
  view: ClusterView,
  { object }: SigningRequest,
  certPem: string,
  signal: AbortSignal,
): Promise<void> {
  const certificate = Buffer.from(certPem).toString('base64')
  const changed = { ...object, status: { ...recordOf(object['status']), certificate } }
  await view.write('update', changed, { subresource: 'status', ...versionOf(object) }, signal)
}

const versionOf = ({ metadata: { resourceVersion } }: KubeObject) =>
  resourceVersion === undefined ? {} : { resourceVersion }

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  isRecord(value) ? value : {}
const recordsOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : []
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

function timeOf(value: unknown): number {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? 0 : time
}
