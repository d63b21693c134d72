import { createHash } from 'node:crypto'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'

/** What those who join are told about the cluster. */
export interface JoinConfig {
  /** Host and port under which all members of the cluster reach the API. */
  readonly endpoint: string
  /** As Kubernetes' own, for example `v1.36.3`. */
  readonly kubernetesVersion: string
  readonly serviceRanges: readonly string[]
  /** Where a DNS service of the cluster would be; absent in ranges without room for it. */
  readonly dnsAddress: string | undefined
}

const namespace = 'kube-system'
/** Says that an object is still the one that the server made, so that the server may make it anew. */
const madeAnnotation = 'sallyport.dev/made-as'

type Documents = Readonly<Record<string, string>>

const lines = (...text: readonly (string | undefined)[]): string =>
  `${text.filter((line) => line !== undefined).join('\n')}\n`
const quoted = (text: string): string => JSON.stringify(text)

const clusterConfiguration = ({ endpoint, kubernetesVersion, serviceRanges }: JoinConfig): string =>
  lines(
    'apiServer: {}',
    'apiVersion: kubeadm.k8s.io/v1beta4',
    'certificatesDir: /etc/kubernetes/pki',
    'clusterName: kubernetes',
    `controlPlaneEndpoint: ${quoted(endpoint)}`,
    'controllerManager: {}',
    'dns: {}',
    'etcd: {}',
    'kind: ClusterConfiguration',
    `kubernetesVersion: ${kubernetesVersion}`,
    'networking:',
    '  dnsDomain: cluster.local',
    `  serviceSubnet: ${quoted(serviceRanges.join(','))}`,
    'proxy: {}',
    'scheduler: {}',
  )

/** A kubelet that renews its certificate and asks the API who its callers are. */
const kubeletConfiguration = ({ dnsAddress }: JoinConfig): string =>
  lines(
    'apiVersion: kubelet.config.k8s.io/v1beta1',
    'authentication:',
    '  anonymous:',
    '    enabled: false',
    '  webhook:',
    '    enabled: true',
    '  x509:',
    '    clientCAFile: /etc/kubernetes/pki/ca.crt',
    'authorization:',
    '  mode: Webhook',
    'cgroupDriver: systemd',
    dnsAddress && lines('clusterDNS:', `- ${quoted(dnsAddress)}`).trimEnd(),
    'clusterDomain: cluster.local',
    'healthzBindAddress: 127.0.0.1',
    'healthzPort: 10248',
    'kind: KubeletConfiguration',
    'rotateCertificates: true',
    'staticPodPath: /etc/kubernetes/manifests',
  )

const proxyConfiguration = lines(
  'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
  'clientConnection:',
  '  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf',
  'kind: KubeProxyConfiguration',
)

/** By the names under which kubeadm looks for them. */
const documentsOf = (config: JoinConfig): Readonly<Record<string, Documents>> => ({
  'kubeadm-config': { ClusterConfiguration: clusterConfiguration(config) },
  'kubelet-config': { kubelet: kubeletConfiguration(config) },
  'kube-proxy': { 'config.conf': proxyConfiguration },
})

/** Writes what kubeadm's join reads, and again when the cluster has moved; what an operator has changed stays. */
export async function ensureJoinConfig(
  view: ClusterView,
  config: JoinConfig,
  signal: AbortSignal,
): Promise<void> {
  for (const [name, documents] of Object.entries(documentsOf(config))) {
    const key = { namespace, name }
    await changeObject(
      { view, kind: wellKnownKinds.configMap, key },
      (present) => {
        const data = isRecord(present?.['data']) ? present['data'] : {}
        const isOurs = !present || present.metadata.annotations?.[madeAnnotation] === hashOf(data)
        const isRight = hashOf(data) === hashOf(documents)
        return isOurs && !isRight ? withDocuments(present, key, documents) : undefined
      },
      signal,
    )
  }
}

function withDocuments(
  present: KubeObject | undefined,
  key: { readonly namespace: string; readonly name: string },
  documents: Documents,
): KubeObject {
  const metadata = present?.metadata ?? { ...key }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [madeAnnotation]: hashOf(documents) },
    },
    data: { ...documents },
  }
}

const hashOf = (data: Readonly<Record<string, unknown>>): string => {
  const entries = Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256').update(JSON.stringify(entries)).digest('base64url')
}

/** The address of a cluster's DNS service by convention: the tenth of its first range. */
export function dnsAddressIn(firstAddress: string, range: string): string | undefined {
  const length = Number(range.split('/')[1])
  const isV6 = firstAddress.includes(':')
  // The first address is one more than a multiple of 16 in every range that has room for ten.
  if (length > (isV6 ? 124 : 28)) return undefined
  const at = Math.max(firstAddress.lastIndexOf(':'), firstAddress.lastIndexOf('.')) + 1
  const radix = isV6 ? 16 : 10
  const last = Number.parseInt(firstAddress.slice(at), radix) + 9
  return `${firstAddress.slice(0, at)}${last.toString(radix)}`
}
