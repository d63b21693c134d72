/** A reference from a dependent object to its owner. */
export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** The metadata that every stored object has. */
export interface ObjectMeta {
  name: string
  generateName?: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
}

/** Any object of the Kubernetes API. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  [field: string]: unknown
}

/** A kind of object and where the API serves it. */
export interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
  /** Plural name in URLs. */
  readonly resource: string
  readonly namespaced: boolean
}

/** The `apiVersion` that objects of `kind` carry. */
export const apiVersionOf = (kind: Pick<Kind, 'group' | 'version'>): string =>
  kind.group ? `${kind.group}/${kind.version}` : kind.version

/** A plain JSON object, as opposed to an array, null or a scalar. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const coreKind = (kind: string, resource: string, namespaced = true): Kind => ({
  group: '',
  version: 'v1',
  kind,
  resource,
  namespaced,
})

/** Kinds that not only the API knows: other rooms ask a cluster for them by name. */
export const wellKnownKinds = {
  certificateSigningRequest: {
    group: 'certificates.k8s.io',
    version: 'v1',
    kind: 'CertificateSigningRequest',
    resource: 'certificatesigningrequests',
    namespaced: false,
  },
  configMap: coreKind('ConfigMap', 'configmaps'),
  endpoints: coreKind('Endpoints', 'endpoints'),
  endpointSlice: {
    group: 'discovery.k8s.io',
    version: 'v1',
    kind: 'EndpointSlice',
    resource: 'endpointslices',
    namespaced: true,
  },
  lease: {
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    resource: 'leases',
    namespaced: true,
  },
  namespace: coreKind('Namespace', 'namespaces', false),
  node: coreKind('Node', 'nodes', false),
  pod: coreKind('Pod', 'pods'),
  secret: coreKind('Secret', 'secrets'),
  service: coreKind('Service', 'services'),
  serviceAccount: coreKind('ServiceAccount', 'serviceaccounts'),
} as const satisfies Readonly<Record<string, Kind>>
