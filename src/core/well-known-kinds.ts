import type { Kind } from './kube-object.ts'

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
