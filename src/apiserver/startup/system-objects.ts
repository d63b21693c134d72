import { Revocations } from '../../authn/index.ts'
import { reconcileDefaultPolicy } from '../../authz/index.ts'
import type { Closers } from '../../core/index.ts'
import {
  ApiError,
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type Kind,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import type { LocalCluster } from '../backend/local.ts'

/** The namespaces that every cluster has. */
const systemNamespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const

/** Where the API server itself is reached. */
export interface ApiLocation {
  /** The first address of the service range. */
  readonly serviceAddress: string
  readonly advertiseAddress: string
  readonly port: number
}

const kubernetes = { name: 'kubernetes', namespace: 'default' }

const servicePorts = (port: number) => [
  { name: 'https', protocol: 'TCP', port: 443, targetPort: port },
]

function serviceOf({ serviceAddress, port }: ApiLocation): KubeObject {
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { ...kubernetes, labels: { component: 'apiserver', provider: 'kubernetes' } },
    spec: {
      type: 'ClusterIP',
      clusterIP: serviceAddress,
      clusterIPs: [serviceAddress],
      ports: servicePorts(port),
    },
  }
}

function endpointSliceOf({ advertiseAddress, port }: ApiLocation): KubeObject {
  return {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { ...kubernetes, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: advertiseAddress.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [advertiseAddress], conditions: { ready: true } }],
    ports: [{ name: 'https', protocol: 'TCP', port }],
  }
}

function endpointsOf({ advertiseAddress, port }: ApiLocation): KubeObject {
  return {
    kind: 'Endpoints',
    apiVersion: 'v1',
    metadata: { ...kubernetes, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [
      {
        addresses: [{ ip: advertiseAddress }],
        ports: [{ name: 'https', protocol: 'TCP', port }],
      },
    ],
  }
}

async function createIfAbsent(
  view: ClusterView,
  kind: Kind,
  object: KubeObject,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const present = await view.get(kind, object.metadata, signal)
  if (present) return present
  await view.write('create', object, {}, signal).catch((error: unknown) => {
    // Another replica was faster.
    if (!hasReason(error, 'AlreadyExists')) throw error
  })
  return undefined
}

/** Writes `wanted` over what is there, keeping labels and annotations that others have added, or in its place. */
async function ensure(
  view: ClusterView,
  kind: Kind,
  wanted: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const present = await createIfAbsent(view, kind, wanted, signal)
  if (!present) return
  const { metadata, ...rest } = wanted
  const merged: KubeObject = {
    ...present,
    ...rest,
    metadata: { ...present.metadata, labels: { ...present.metadata.labels, ...metadata.labels } },
  }
  await view.write('update', merged, {}, signal).catch(async (error: unknown) => {
    // It was made by somebody else, with a field that cannot be changed.
    if (!hasReason(error, 'Invalid')) throw error
    await view.write('delete', present, {}, signal)
    await view.write('create', wanted, {}, signal)
  })
}

/** Of a Service that is there only the ports are changed: its address stays as it is. */
async function ensureService(
  view: ClusterView,
  location: ApiLocation,
  signal: AbortSignal,
): Promise<void> {
  const present = await createIfAbsent(view, wellKnownKinds.service, serviceOf(location), signal)
  if (!present) return
  const stored = isRecord(present['spec']) ? present['spec'] : {}
  const spec = { ...stored, ports: servicePorts(location.port) }
  await view.write('update', { ...present, spec }, {}, signal)
}

/** Makes the namespaces that every cluster has. */
export async function ensureNamespaces(view: ClusterView, signal: AbortSignal): Promise<void> {
  for (const name of systemNamespaces) {
    const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name } }
    await createIfAbsent(view, wellKnownKinds.namespace, namespace, signal)
  }
}

/**
 * Makes the Service of the API itself, and keeps it pointed at where the API now is. Whoever may write
 * in namespace `default` can stand in the way: that is reported, and must not keep a server from starting.
 */
export async function ensureApiService(
  view: ClusterView,
  location: ApiLocation,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const { endpoints, endpointSlice } = wellKnownKinds
  const writes = [
    () => ensureService(view, location, signal),
    () => ensure(view, endpoints, endpointsOf(location), signal),
    () => ensure(view, endpointSlice, endpointSliceOf(location), signal),
  ]
  for (const write of writes) {
    await write().catch((err: unknown) => {
      if (!(err instanceof ApiError)) throw err
      log.error({ err }, 'Service default/kubernetes does not lead to this server')
    })
  }
}

/** Brings in Kubernetes' default roles and starts to follow all roles and bindings. */
export async function preparePolicy(
  { view, rbac }: LocalCluster,
  parts: { readonly log: Logger; readonly signal: AbortSignal },
  closers: Closers,
): Promise<void> {
  await reconcileDefaultPolicy({ view, log: parts.log }, parts.signal)
  closers.add('rbac', (deadline) => rbac.stop(deadline))
  await rbac.start()
}

/** Starts to follow the list of revoked users and credentials. */
export async function watchRevocations(
  view: ClusterView,
  parts: { readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<Revocations> {
  const revocations = new Revocations({ view, staleness: 'never', ...parts })
  closers.add('revocations', (deadline) => revocations.stop(deadline))
  await revocations.start()
  return revocations
}
