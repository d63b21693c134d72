import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  CommandFailed,
  isRecord,
  type Kind,
  type KubeObject,
  kubeTime,
  machineIdentity,
  wellKnownKinds,
} from '../../core/index.ts'
import { type Kubeconfig, makeKubeconfig } from '../../kubeconfig/index.ts'
import { type Pki, privateKeyPem } from '../../pki/index.ts'
import { narrowWorkloadRole, workloadBinding } from '../../workload/server/index.ts'
import { clusterName } from '../startup/admin-kubeconfig.ts'

/** A client certificate that was issued to a user. */
export interface UserRecord {
  readonly name: string
  readonly groups: readonly string[]
  /** Upper-case hexadecimal. */
  readonly serial: string
  /** RFC 3339. */
  readonly issued: string
  readonly expires: string
}

const key = { namespace: 'kube-system', name: 'sallyport-users' } as const

function recordOf(serial: string, text: unknown): UserRecord | undefined {
  if (typeof text !== 'string') return undefined
  const value: unknown = JSON.parse(text)
  if (!isRecord(value)) return undefined
  const { name, groups, issued, expires } = value
  if (typeof name !== 'string' || typeof issued !== 'string' || typeof expires !== 'string')
    return undefined
  const named = Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : []
  return { name, groups: named, serial, issued, expires }
}

const dataOf = (list: KubeObject | undefined): Record<string, unknown> =>
  isRecord(list?.['data']) ? list['data'] : {}

/** All certificates that were issued to users, the newest last. */
export async function listUserRecords(
  view: ClusterView,
  signal: AbortSignal,
): Promise<UserRecord[]> {
  const list = await view.get(wellKnownKinds.configMap, key, signal)
  return Object.entries(dataOf(list))
    .flatMap(([serial, text]) => recordOf(serial, text) ?? [])
    .sort((a, b) => a.issued.localeCompare(b.issued))
}

/** Records that a certificate was issued; safe with concurrent writers. */
async function addUserRecord(
  view: ClusterView,
  { serial, ...facts }: UserRecord,
  signal: AbortSignal,
): Promise<void> {
  await changeObject(
    { view, kind: wellKnownKinds.configMap, key },
    (present = emptyList()) => ({
      ...present,
      data: { ...dataOf(present), [serial]: JSON.stringify(facts) },
    }),
    signal,
  )
}

const emptyList = (): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...key },
})

/** A user who gets a kubeconfig. */
export interface NewUser {
  readonly name: string
  readonly groups: readonly string[]
  readonly lifetimeMs: number
  /** The URL of the API in the kubeconfig. */
  readonly server: string
  /** The namespace that the kubeconfig names; `default` unless given. */
  readonly namespace?: string
}

/** Issues a client certificate, records it in the cluster and returns a kubeconfig with it. */
export async function createUser(
  user: NewUser,
  deps: { readonly view: ClusterView; readonly pki: Pki; readonly clock: Clock },
  signal: AbortSignal,
): Promise<{ readonly record: UserRecord; readonly kubeconfig: Kubeconfig }> {
  const { view, pki, clock } = deps
  const { certificate, certPem, key } = await pki.issueClient(
    { commonName: user.name, organizations: user.groups },
    user.lifetimeMs,
  )
  const record: UserRecord = {
    name: user.name,
    groups: user.groups,
    serial: certificate.serialNumber,
    issued: kubeTime(clock.now()),
    expires: kubeTime(Date.parse(certificate.validTo)),
  }
  // Recorded first: a certificate that is not recorded cannot be revoked by its serial.
  await addUserRecord(view, record, signal)
  const kubeconfig = makeKubeconfig({
    clusterName,
    server: user.server,
    caPem: pki.clusterCa.bundlePem,
    userName: user.name,
    clientCertPem: certPem,
    clientKeyPem: privateKeyPem(key),
    ...(user.namespace !== undefined && { namespace: user.namespace }),
  })
  return { record, kubeconfig }
}

/** A machine that gets an identity to run workloads. */
export interface NewMachine {
  readonly name: string
  /** The namespaces in which it may run them. */
  readonly namespaces: readonly [string, ...string[]]
  /** The service accounts whose tokens it may request; all of these namespaces unless given. */
  readonly serviceAccounts?: readonly string[]
  readonly lifetimeMs: number
  /** The URL of the API in the kubeconfig. */
  readonly server: string
}

/** Why a text is not a valid machine name, which is the name of a node and the value of a label. */
export function problemOfMachineName(name: string): string | undefined {
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
  return isName && name.length <= 63
    ? undefined
    : `${JSON.stringify(name)} is not a valid machine name: up to 63 lower-case letters, digits, '-' and '.'`
}

/** Issues the identity with which a machine runs workloads, and its permissions in some namespaces. */
export async function createMachine(
  machine: NewMachine,
  deps: { readonly view: ClusterView; readonly pki: Pki; readonly clock: Clock },
  signal: AbortSignal,
): Promise<{ readonly record: UserRecord; readonly kubeconfig: Kubeconfig }> {
  const { view } = deps
  const { name, namespaces, serviceAccounts, lifetimeMs, server } = machine
  for (const namespace of namespaces) await requireNamespace(view, namespace, signal)
  for (const namespace of namespaces) {
    const ensure = (kind: Kind, object: KubeObject): Promise<unknown> =>
      changeObject(
        { view, kind, key: object.metadata },
        (present) => (present ? undefined : object),
        signal,
      )
    const narrow = serviceAccounts && narrowWorkloadRole(name, namespace, serviceAccounts)
    if (narrow) await ensure(rbacKinds.role, narrow)
    await ensure(rbacKinds.roleBinding, workloadBinding(name, namespace, narrow))
  }
  const { userPrefix, group, loopbackGroup } = machineIdentity
  // A client that reaches the server by loopback is on its machine, and may be reached the same way.
  const groups = isLoopbackUrl(server) ? [group, loopbackGroup] : [group]
  const user = { name: `${userPrefix}${name}`, groups, lifetimeMs, server }
  return createUser({ ...user, namespace: namespaces[0] }, deps, signal)
}

const isLoopbackUrl = (url: string): boolean =>
  /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(new URL(url).hostname)

async function requireNamespace(view: ClusterView, name: string, signal: AbortSignal) {
  if (await view.get(wellKnownKinds.namespace, { name }, signal)) return
  throw new CommandFailed('NO_NAMESPACE', `namespace ${name} not found`, {
    hint: `create it with \`kubectl create namespace ${name}\`; nothing was changed`,
  })
}

/** Where the server records clients that still use a certificate of a CA that is being replaced. */
export const oldCertificatesKey = {
  namespace: 'kube-system',
  name: 'sallyport-old-certificates',
} as const

/** A client certificate that becomes invalid when its CA is removed. */
export interface OldCertificate {
  /** Upper-case hexadecimal. */
  readonly serial: string
  readonly user: string
  /** RFC 3339. */
  readonly expires: string
  /** RFC 3339; absent if it was not used since the new CA signs. */
  readonly lastSeen?: string
}

/** Client certificates of a CA that have not expired: those in use, and those that were issued to users before. */
export async function listOldCertificates(
  view: ClusterView,
  old: { readonly subject: string; readonly signedUntil: number; readonly now: number },
  signal: AbortSignal,
): Promise<OldCertificate[]> {
  const recorded = await view.get(wellKnownKinds.configMap, oldCertificatesKey, signal)
  const data = isRecord(recorded?.['data']) ? recorded['data'] : {}
  const seen = Object.entries(data).flatMap(([serial, text]) => noteOf(serial, text, old.subject))
  const inUse = new Set(seen.map(({ serial }) => serial))
  const issued = (await listUserRecords(view, signal))
    .filter((record) => Date.parse(record.issued) < old.signedUntil && !inUse.has(record.serial))
    .map(({ serial, name: user, expires }) => ({ serial, user, expires }))
  return [...seen, ...issued].filter(({ expires }) => Date.parse(expires) > old.now)
}

function noteOf(serial: string, text: unknown, issuer: string): OldCertificate[] {
  const note = parsed(text)
  if (!isRecord(note) || note['issuer'] !== issuer) return []
  const { user, expires, lastSeen } = note
  if (typeof user !== 'string' || typeof expires !== 'string' || typeof lastSeen !== 'string')
    return []
  return [{ serial, user, expires, lastSeen }]
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
