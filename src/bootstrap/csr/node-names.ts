import { createHash, type KeyObject, type X509Certificate } from 'node:crypto'
import type { Controller } from '../../api/index.ts'
import { addRevocation } from '../../authn/index.ts'
import { isSuperuser } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Admission,
  type Clock,
  type ClusterView,
  forbidden,
  goQuote,
  hasReason,
  isRecord,
  type KubeObject,
  kubeTime,
  nodeNameReservations,
  type UserInfo,
  wellKnown,
  wellKnownKinds,
} from '../../core/index.ts'
import type { CertificateRequest } from '../../pki/index.ts'
import { waitUntil } from '../server/token-cleaner.ts'
import { maxNodeCertificates } from './limits.ts'
import type { Refusal } from './token-limits.ts'

/** A client certificate that was issued for a node name. */
interface NodeCertificate {
  /** SHA-256 of the certificate, lower-case hexadecimal, as in `X509SHA256=` of a credential id. */
  readonly fingerprint: string
  /** Absent for a certificate that an older version issued: it is known by its renewal only. */
  readonly serial?: string
  /** SHA-256 of the public key. */
  readonly publicKey?: string
  readonly expires: string
}

/** A node name and the certificates that may use it. */
interface Reservation {
  readonly certificates: readonly NodeCertificate[]
  /** Certificates of machines that were replaced. Kept so that an interrupted replacement is completed. */
  readonly replaced: readonly NodeCertificate[]
}

/** A request for a client certificate with a node's name. */
export interface NodeNameRequest {
  readonly nodeName: string
  readonly publicKey: KeyObject
  readonly requester: UserInfo
  /** The token was created to replace the machine of this name. */
  readonly replaces: boolean
  readonly nowMs: number
}

const { namespace, namePrefix } = nodeNameReservations
const label = 'sallyport.dev/node-name'

/** The node that a client certificate with this subject acts as; undefined if it acts as no node. */
export function nodeNameIn({
  subject: { commonName },
}: Pick<CertificateRequest, 'subject'>): string | undefined {
  const { nodeUserPrefix: prefix } = wellKnown
  return commonName.startsWith(prefix) ? commonName.slice(prefix.length) || undefined : undefined
}

/** Node names are longer than object names may be, and requests may name anything: hence the hash. */
const reservationKey = (nodeName: string) => ({
  namespace,
  name: `${namePrefix}${createHash('sha256').update(nodeName).digest('hex').slice(0, 40)}`,
})

/** Why this request gets no certificate for its node name; undefined if it does. */
export async function nodeNameRefusal(
  view: ClusterView,
  request: NodeNameRequest,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const present = await view.get(wellKnownKinds.configMap, reservationKey(request.nodeName), signal)
  return refusalOf(view, readReservation(present), request, signal)
}

/**
 * Reserves the name of a node for the machine with this certificate, by compare and swap: of two
 * machines one succeeds. A replacement moves the name and revokes what the previous machine holds.
 * To be called before the certificate is handed out.
 */
export async function reserveNodeName(
  view: ClusterView,
  request: NodeNameRequest,
  certificate: X509Certificate,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  let refusal: Refusal | undefined
  let replaced: readonly NodeCertificate[] = []
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key: reservationKey(request.nodeName) },
    async (present) => {
      const held = readReservation(present)
      refusal = await refusalOf(view, held, request, signal)
      if (refusal) return undefined
      const next = withCertificate(held, request, certificate)
      replaced = next.replaced
      return reservationObject(request.nodeName, next, present)
    },
    signal,
  )
  if (refusal) return refusal
  const note = `${kubeTime(request.nowMs)} replaced: node ${request.nodeName}`
  for (const { serial } of replaced)
    if (serial) await addRevocation(view, { type: 'certificate', value: serial, note }, signal)
  return undefined
}

/**
 * Reserves the name of a certificate that was issued without a reservation: by an older version, or
 * by a signer elsewhere.
 */
export async function adoptNodeName(
  view: ClusterView,
  request: NodeNameRequest,
  certificate: X509Certificate,
  signal: AbortSignal,
): Promise<void> {
  const key = reservationKey(request.nodeName)
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key },
    (present) =>
      present
        ? undefined
        : reservationObject(request.nodeName, withCertificate(undefined, request, certificate)),
    signal,
  )
}

async function refusalOf(
  view: ClusterView,
  held: Reservation | 'unreadable' | undefined,
  request: NodeNameRequest,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const { nodeName, nowMs } = request
  if (held === 'unreadable')
    return {
      reason: 'NodeNameReserved',
      message: `the reservation of node name ${goQuote(nodeName)} cannot be read; an administrator has to repair or delete ConfigMap ${namespace}/${reservationKey(nodeName).name}`,
    }
  if (request.replaces || (!held && isOwnName(request))) return undefined
  const live = liveCertificates(held?.certificates, nowMs)
  if (isHolder(held?.certificates, request))
    return live.length < maxNodeCertificates ? undefined : tooMany(nodeName)
  const isFree =
    live.length === 0 &&
    !isOwnName(request) &&
    !(await view.get(wellKnownKinds.node, { name: nodeName }, signal))
  return isFree ? undefined : reserved(nodeName)
}

const tooMany = (nodeName: string): Refusal => ({
  reason: 'TooManyCertificates',
  message: `node ${goQuote(nodeName)} has ${maxNodeCertificates} valid certificates, which is the limit; use one of them`,
})

const reserved = (nodeName: string): Refusal => ({
  reason: 'NodeNameReserved',
  message: `node name ${goQuote(nodeName)} is reserved for the machine that joined under it; to replace that machine, join with a token from \`sallyport token create --replace ${nodeName}\`, or choose another name`,
})

/** The machine has a key, or has authenticated with a certificate, that the name was issued to. */
function isHolder(
  certificates: readonly NodeCertificate[] = [],
  request: NodeNameRequest,
): boolean {
  const key = keyHash(request.publicKey)
  const credential = isOwnName(request) ? certificateOf(request.requester) : undefined
  return certificates.some(
    (each) => each.publicKey === key || (credential && each.fingerprint === credential),
  )
}

const isOwnName = ({
  requester,
  nodeName,
}: Pick<NodeNameRequest, 'requester' | 'nodeName'>): boolean =>
  requester.username === `${wellKnown.nodeUserPrefix}${nodeName}`

/** The fingerprint of the certificate by which a requester has authenticated. */
function certificateOf({ extra = {} }: UserInfo): string | undefined {
  const [id = ''] = extra['authentication.kubernetes.io/credential-id'] ?? []
  return id.startsWith('X509SHA256=') ? id.slice('X509SHA256='.length) : undefined
}

const keyHash = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')

function withCertificate(
  held: Reservation | 'unreadable' | undefined,
  request: NodeNameRequest,
  certificate: X509Certificate,
): Reservation {
  const { certificates, replaced } =
    held === undefined || held === 'unreadable' ? { certificates: [], replaced: [] } : held
  const { nowMs, requester, publicKey } = request
  const live = liveCertificates(certificates, nowMs)
  const past = liveCertificates(replaced, nowMs)
  const expires = kubeTime(Date.parse(certificate.validTo))
  const issued = {
    fingerprint: fingerprintOf(certificate),
    serial: certificate.serialNumber,
    publicKey: keyHash(publicKey),
    expires,
  }
  if (request.replaces && !isHolder(certificates, request))
    return { certificates: [issued], replaced: [...past, ...live] }
  // A node that joined before names were reserved may renew with the same certificate once more.
  const own = isOwnName(request) ? certificateOf(requester) : undefined
  const isNew = own !== undefined && !live.some(({ fingerprint }) => fingerprint === own)
  const renewedBy = isNew ? [{ fingerprint: own, expires }] : []
  return { certificates: [...live, ...renewedBy, issued], replaced: past }
}

const fingerprintOf = ({ fingerprint256 }: X509Certificate): string =>
  fingerprint256.replaceAll(':', '').toLowerCase()

const liveCertificates = (
  all: readonly NodeCertificate[] | undefined,
  nowMs: number,
): readonly NodeCertificate[] => (all ?? []).filter(({ expires }) => Date.parse(expires) > nowMs)

function readReservation(object: KubeObject | undefined): Reservation | 'unreadable' | undefined {
  if (!object) return undefined
  const data = isRecord(object['data']) ? object['data'] : {}
  const certificates = readCertificates(data['certificates'])
  const replaced = readCertificates(data['replaced'] ?? '[]')
  return certificates && replaced ? { certificates, replaced } : 'unreadable'
}

function readCertificates(text: unknown): readonly NodeCertificate[] | undefined {
  try {
    const list: unknown = JSON.parse(String(text))
    return Array.isArray(list) && list.every(isCertificate) ? list : undefined
  } catch {
    return undefined
  }
}

const isCertificate = (each: unknown): each is NodeCertificate =>
  isRecord(each) &&
  typeof each['fingerprint'] === 'string' &&
  typeof each['expires'] === 'string' &&
  !Number.isNaN(Date.parse(each['expires']))

const reservationObject = (
  nodeName: string,
  { certificates, replaced }: Reservation,
  present?: KubeObject,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: present?.metadata ?? { ...reservationKey(nodeName), labels: { [label]: 'true' } },
  data: {
    'node-name': nodeName,
    certificates: JSON.stringify(certificates),
    ...(replaced.length > 0 && { replaced: JSON.stringify(replaced) }),
  },
})

/** Reservations are written by the server and by administrators only. */
export const nodeNameAdmission: Admission = ({ kind, namespace: place, name, user }) => {
  const { configMap } = wellKnownKinds
  const isReservation =
    kind.group === configMap.group &&
    kind.resource === configMap.resource &&
    place === namespace &&
    name.startsWith(namePrefix)
  if (isReservation && !isSuperuser(user))
    throw forbidden(kind, name, 'reservations of node names are written by administrators only')
}

const dayMs = 24 * 3_600_000

/** Removes reservations under which no certificate is valid and no Node exists. */
export function createNodeNameCleaner(view: ClusterView, clock: Clock): Controller {
  return {
    name: 'node-names',
    start({ watch }) {
      watch({
        kind: wellKnownKinds.configMap,
        query: { namespace, labelSelector: label },
        project: ({ metadata }) => metadata.resourceVersion,
        keysOf: ({ name, after }) => (after === undefined ? [] : [name]),
      })
      return async (name, signal) => {
        const object = await view.get(wellKnownKinds.configMap, { namespace, name }, signal)
        const held = readReservation(object)
        if (!object || !held || held === 'unreadable' || !name.startsWith(namePrefix))
          return undefined
        const endMs = Math.max(0, ...held.certificates.map(({ expires }) => Date.parse(expires)))
        const now = clock.now()
        if (endMs > now) return { againAfterMs: waitUntil(endMs, now) }
        const nodeName = isRecord(object['data']) ? String(object['data']['node-name']) : ''
        if (await view.get(wellKnownKinds.node, { name: nodeName }, signal))
          return { againAfterMs: dayMs }
        const { resourceVersion = '' } = object.metadata
        await view.write('delete', object, { resourceVersion }, signal).catch((error: unknown) => {
          if (!hasReason(error, 'NotFound', 'Conflict')) throw error
        })
        return undefined
      }
    },
  }
}
