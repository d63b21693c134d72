import { isRecord, type KubeObject } from '../../core/index.ts'
import { type ClusterLocation, clusterLocation } from '../../kubeconfig/index.ts'
import { readLocationDocument } from '../client/location-document.ts'

/** The kubeconfig of a cluster without a name and without a secret; kubeadm's form, byte for byte, where it has one. */
export function clusterInfoText(location: ClusterLocation): string {
  const { addresses, rootsPem, clusterId, systemRoots } = location
  const ca = rootsPem === undefined ? [] : [`    certificate-authority-data: ${base64(rootsPem)}`]
  return [
    'apiVersion: v1',
    'clusters:',
    '- cluster:',
    ...ca,
    ...extension({ addresses, clusterId, systemRoots }),
    `    server: ${addresses[0]}`,
    '  name: ""',
    'contexts: null',
    'current-context: ""',
    'kind: Config',
    'users: null',
    '',
  ].join('\n')
}

/** What a kubeconfig has no field for. */
function extension(facts: {
  readonly addresses: readonly string[]
  readonly clusterId: string | undefined
  readonly systemRoots: boolean | undefined
}): string[] {
  const { addresses, clusterId, systemRoots } = facts
  const fields = [
    ...(addresses.length > 1
      ? ['        addresses:', ...addresses.map((address) => `        - ${address}`)]
      : []),
    ...(clusterId === undefined ? [] : [`        clusterId: ${JSON.stringify(clusterId)}`]),
    ...(systemRoots ? ['        systemRoots: true'] : []),
  ]
  if (fields.length === 0) return []
  return [
    '    extensions:',
    '    - extension:',
    ...fields,
    '      name: sallyport.dev/cluster-location',
  ]
}

/** Reads such a text by the rules that every client of ours applies; throws DiscoveryFailed. */
export async function readClusterInfoText(text: string, where: string): Promise<ClusterLocation> {
  const { cluster } = await readLocationDocument(text, { where })
  return clusterLocation(cluster)
}

/** The kubeconfig in cluster-info, if there is one. */
export function documentIn(object: KubeObject | undefined): string | undefined {
  const data = object?.['data']
  const text = isRecord(data) ? data['kubeconfig'] : undefined
  return typeof text === 'string' && text !== '' ? text : undefined
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
