import { createHash } from 'node:crypto'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, isRecord, type KubeObject, wellKnownKinds } from '../../core/index.ts'
import { clusterInfoKey } from './discovery-requests.ts'

/** How a cluster is reached, and whom to trust when reaching it. */
export interface ClusterLocation {
  /** An https address. */
  readonly server: string
  /** One or more certificates. */
  readonly rootsPem: string
}

/** Says that the document is still the one that the server made, so that the server may make it anew. */
const madeAnnotation = 'sallyport.dev/made-as'

/** The kubeconfig of a cluster without a name and without a secret, byte for byte in kubeadm's form. */
export const clusterInfoKubeconfig = ({ server, rootsPem }: ClusterLocation): string =>
  [
    'apiVersion: v1',
    'clusters:',
    '- cluster:',
    `    certificate-authority-data: ${Buffer.from(rootsPem).toString('base64')}`,
    `    server: ${server}`,
    '  name: ""',
    'contexts: null',
    'current-context: ""',
    'kind: Config',
    'users: null',
    '',
  ].join('\n')

/** Writes cluster-info if there is none, and again when the server has moved; what an operator has changed stays. */
export async function ensureClusterInfo(
  view: ClusterView,
  location: ClusterLocation,
  signal: AbortSignal,
): Promise<boolean> {
  const kubeconfig = clusterInfoKubeconfig(location)
  return changeObject(
    { view, kind: wellKnownKinds.configMap, key: clusterInfoKey },
    (present) => {
      const data = isRecord(present?.['data']) ? present['data'] : {}
      const found = data['kubeconfig']
      const isOurs =
        typeof found !== 'string' ||
        present?.metadata.annotations?.[madeAnnotation] === hashOf(found)
      return found === kubeconfig || !isOurs ? undefined : withKubeconfig(present, data, kubeconfig)
    },
    signal,
  )
}

function withKubeconfig(
  present: KubeObject | undefined,
  data: Readonly<Record<string, unknown>>,
  kubeconfig: string,
): KubeObject {
  const metadata = present?.metadata ?? { ...clusterInfoKey }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, [madeAnnotation]: hashOf(kubeconfig) },
    },
    data: { ...data, kubeconfig },
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
