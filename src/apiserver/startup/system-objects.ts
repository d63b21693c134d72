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

/** Addresses of the API server. */
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
    // Another replica has created it.
    if (!hasReason(error, 'AlreadyExists')) throw error
  })
  return undefined
}

/** Creates an object, or updates the stored one, keeping additional labels and annotations. */
async function ensure(
  view: ClusterView,
  kind: Kind,
  desired: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  const present = await createIfAbsent(view, kind, desired, signal)
  if (!present) return
  const { metadata, ...rest } = desired
  const merged: KubeObject = {
    ...present,
    ...rest,
    metadata: { ...present.metadata, labels: { ...present.metadata.labels, ...metadata.labels } },
  }
  await view.write('update', merged, {}, signal).catch(async (error: unknown) => {
    // The stored object has another value in an immutable field.
    if (!hasReason(error, 'Invalid')) throw error
    await view.write('delete', present, {}, signal)
    await view.write('create', desired, {}, signal)
  })
}

/** Only the ports of a stored Service are updated: it keeps its address. */
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

/** Creates the namespaces that every cluster has. */
export async function ensureNamespaces(view: ClusterView, signal: AbortSignal): Promise<void> {
  for (const name of systemNamespaces) {
    const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name } }
    await createIfAbsent(view, wellKnownKinds.namespace, namespace, signal)
  }
}

/**
 * Creates and updates the Service of the API itself. Users who may write in namespace `default` can make that fail:
 * it is logged, and does not prevent the start.
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
      log.error({ err }, 'cannot update Service default/kubernetes')
    })
  }
}

/** Creates Kubernetes' default roles and starts to watch all roles and bindings. */
export async function preparePolicy(
  { view, rbac }: LocalCluster,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
  closers: Closers,
): Promise<void> {
  await reconcileDefaultPolicy({ view, log }, signal)
  closers.add('rbac', (deadline) => rbac.stop(deadline))
  await rbac.start()
}

/** Starts to watch the list of revoked users and credentials. */
export async function watchRevocations(
  view: ClusterView,
  deps: { readonly clock: Clock; readonly log: Logger },
  closers: Closers,
): Promise<Revocations> {
  const revocations = new Revocations({ view, staleness: 'never', ...deps })
  closers.add('revocations', (deadline) => revocations.stop(deadline))
  await revocations.start()
  return revocations
}
