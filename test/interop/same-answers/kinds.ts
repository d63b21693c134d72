import { readFileSync } from 'node:fs'

/** A kind that both servers store, with objects to send. */
export interface StoredKind {
  readonly kind: string
  readonly apiVersion: string
  readonly resource: string
  readonly namespaced: boolean
  /** All that an object of the kind must have beside its name. */
  readonly least: Readonly<Record<string, unknown>>
  /** An object that uses much of what the kind has. */
  readonly full: Readonly<Record<string, unknown>>
  /** A merge patch that is allowed on `full`. */
  readonly change: Readonly<Record<string, unknown>>
}

const fixtures = new URL('../../fixtures/kube-apiserver/', import.meta.url)

/** The certificate request of the recorded cases: a signature is needed, and only that one is at hand. */
const { request } = JSON.parse(
  readFileSync(new URL('certificate-signing-request.json', fixtures), 'utf8'),
).cases[0].send.spec as { request: string }

const rbac = 'rbac.authorization.k8s.io/v1'
const rules = [
  {
    apiGroups: [''],
    resources: ['pods', 'pods/log'],
    resourceNames: ['a'],
    verbs: ['get', 'list'],
  },
]
const subjects = [
  { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'jane' },
  { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'team' },
  { kind: 'ServiceAccount', name: 'bot', namespace: 'kube-system' },
]
const clusterRoleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' }
const annotate = { metadata: { annotations: { changed: 'yes' } } }

const core = (
  kind: string,
  resource: string,
  rest: Pick<StoredKind, 'least' | 'full'> & Partial<StoredKind>,
): StoredKind => ({
  kind,
  apiVersion: 'v1',
  resource,
  namespaced: true,
  change: annotate,
  ...rest,
})

const podSpec = {
  containers: [
    {
      name: 'main',
      image: 'registry.example/app:1.2',
      command: ['/app'],
      args: ['--port', '80'],
      env: [
        { name: 'A', value: '1' },
        { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ],
      ports: [{ name: 'http', containerPort: 80 }],
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '0.5Gi' } },
      livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
      volumeMounts: [{ name: 'config', mountPath: '/etc/app', readOnly: true }],
    },
  ],
  initContainers: [{ name: 'prepare', image: 'busybox' }],
  volumes: [{ name: 'config', configMap: { name: 'app', optional: true } }],
  tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
  nodeSelector: { disk: 'ssd' },
}

/** Every kind that is stored. */
export const storedKinds: readonly StoredKind[] = [
  core('Namespace', 'namespaces', {
    namespaced: false,
    least: {},
    full: { metadata: { labels: { team: 'a' }, annotations: { note: 'x' } } },
  }),
  core('ConfigMap', 'configmaps', {
    least: {},
    full: { data: { a: '1', 'b.txt': 'two\n' }, binaryData: { c: 'AAEC' } },
    change: { data: { a: '2', new: 'n' } },
  }),
  core('Secret', 'secrets', {
    least: {},
    full: { type: 'example.com/kind', data: { a: 'MQ==' }, stringData: { b: 'plain' } },
    change: { stringData: { c: 'later' } },
  }),
  core('ServiceAccount', 'serviceaccounts', {
    least: {},
    full: {
      secrets: [{ name: 's' }],
      imagePullSecrets: [{ name: 'p' }],
      automountServiceAccountToken: false,
    },
  }),
  core('Service', 'services', {
    least: { spec: { ports: [{ port: 80 }] } },
    full: {
      spec: {
        selector: { app: 'a' },
        ports: [
          { name: 'http', port: 80, targetPort: 'web' },
          { name: 'dns', port: 53, protocol: 'UDP' },
        ],
        sessionAffinity: 'ClientIP',
        publishNotReadyAddresses: true,
      },
    },
    change: { spec: { selector: { app: 'b' } } },
  }),
  core('Endpoints', 'endpoints', {
    least: {},
    full: {
      subsets: [
        {
          addresses: [{ ip: '192.0.2.1', nodeName: 'n1', targetRef: { kind: 'Pod', name: 'p' } }],
          notReadyAddresses: [{ ip: '192.0.2.2' }],
          ports: [{ name: 'http', port: 80 }],
        },
      ],
    },
  }),
  {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    resource: 'endpointslices',
    namespaced: true,
    least: { addressType: 'IPv4', endpoints: [] },
    full: {
      addressType: 'IPv4',
      endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true }, nodeName: 'n1' }],
      ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'http' }],
    },
    change: { ports: [{ name: 'http', port: 81 }] },
  },
  core('Pod', 'pods', {
    least: { spec: { containers: [{ name: 'c', image: 'nginx' }] } },
    full: { spec: podSpec },
    change: { metadata: { labels: { app: 'changed' } } },
  }),
  core('Node', 'nodes', {
    namespaced: false,
    least: {},
    full: {
      spec: {
        podCIDR: '10.1.0.0/24',
        podCIDRs: ['10.1.0.0/24'],
        providerID: 'x://1',
        taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
        unschedulable: true,
      },
    },
    change: { spec: { unschedulable: null } },
  }),
  core('Event', 'events', {
    least: { involvedObject: { kind: 'Pod', namespace: '{ns}', name: 'p' } },
    full: {
      involvedObject: { kind: 'Pod', namespace: '{ns}', name: 'p', apiVersion: 'v1' },
      reason: 'Started',
      message: 'it runs',
      type: 'Normal',
      count: 2,
      source: { component: 'kubelet', host: 'n1' },
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:06Z',
    },
    change: { count: 3 },
  }),
  {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    resource: 'leases',
    namespaced: true,
    least: {},
    full: {
      spec: {
        holderIdentity: 'a',
        leaseDurationSeconds: 40,
        acquireTime: '2026-01-02T03:04:05.000001Z',
        renewTime: '2026-01-02T03:04:05.678901Z',
        leaseTransitions: 1,
      },
    },
    change: { spec: { holderIdentity: 'b' } },
  },
  {
    kind: 'Role',
    apiVersion: rbac,
    resource: 'roles',
    namespaced: true,
    least: {},
    full: { rules },
    change: { rules: [] },
  },
  {
    kind: 'ClusterRole',
    apiVersion: rbac,
    resource: 'clusterroles',
    namespaced: false,
    least: {},
    full: { rules: [...rules, { nonResourceURLs: ['/healthz', '/logs/*'], verbs: ['get'] }] },
    change: { rules: null },
  },
  {
    kind: 'RoleBinding',
    apiVersion: rbac,
    resource: 'rolebindings',
    namespaced: true,
    least: { roleRef: clusterRoleRef },
    full: { roleRef: clusterRoleRef, subjects },
    change: { subjects: [{ kind: 'User', name: 'joe' }] },
  },
  {
    kind: 'ClusterRoleBinding',
    apiVersion: rbac,
    resource: 'clusterrolebindings',
    namespaced: false,
    least: { roleRef: clusterRoleRef },
    full: { roleRef: clusterRoleRef, subjects },
    change: { subjects: null },
  },
  {
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    resource: 'certificatesigningrequests',
    namespaced: false,
    least: { spec: { request, signerName: 'example.com/signer', usages: ['client auth'] } },
    full: {
      spec: {
        request,
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth', 'digital signature'],
        expirationSeconds: 3600,
        username: 'forged',
        groups: ['forged'],
      },
    },
    change: annotate,
  },
]

/** The kind of that name. */
export function storedKind(kind: string): StoredKind {
  const found = storedKinds.find((one) => one.kind === kind)
  if (!found) throw new Error(`no kind ${kind}`)
  return found
}

/** The path of a kind's collection in the namespace of the topic. */
export function collectionOf({ apiVersion, resource, namespaced }: StoredKind): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return namespaced ? `${root}/namespaces/{ns}/${resource}` : `${root}/${resource}`
}

/** An object of a kind. */
export function objectOf(
  { kind, apiVersion }: StoredKind,
  name: string,
  content: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const metadata = { name, ...(content['metadata'] as object | undefined) }
  return { apiVersion, kind, ...content, metadata }
}

/** A ConfigMap of the topic, the kind that most cases about all kinds use. */
export const configMap = (name: string, more: Readonly<Record<string, unknown>> = {}) =>
  objectOf(storedKind('ConfigMap'), name, { data: { a: '1' }, ...more })

/** The ConfigMaps of the topic. */
export const configMaps = '/api/v1/namespaces/{ns}/configmaps'
