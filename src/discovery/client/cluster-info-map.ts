import { isObject, type JsonObject, member, parseJsonObject } from '../../jose/index.ts'

/** What a cluster says of itself: the document, and its signature by one token. */
export interface ClusterInfoMap {
  /** Empty as long as nobody has written it. */
  readonly kubeconfig: string
  /** `jws-kubeconfig-<id>` of the token that was asked for. */
  readonly signature: string | undefined
  /** Whether it is signed with any other token. */
  readonly signedByOthers: boolean
  /** When it was made, by the clock of the server; not a number if it does not say. */
  readonly createdAtMs: number
}

/** The path of the ConfigMap, below the address of the API. */
export const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'

const signaturePrefix = 'jws-kubeconfig-'

/** Reads the ConfigMap cluster-info and nothing else: any other body that happens to be signed is undefined. */
export function readClusterInfoMap(body: Uint8Array, tokenId: string): ClusterInfoMap | undefined {
  const map = parseJsonObject(body)
  const metadata = map && objectIn(map, 'metadata')
  if (!map || !metadata) return undefined
  const isRight =
    member(map, 'kind') === 'ConfigMap' &&
    member(map, 'apiVersion') === 'v1' &&
    member(metadata, 'namespace') === 'kube-public' &&
    member(metadata, 'name') === 'cluster-info'
  if (!isRight) return undefined
  const data = objectIn(map, 'data') ?? {}
  const kubeconfig = member(data, 'kubeconfig')
  const own = `${signaturePrefix}${tokenId}`
  const signature = member(data, own)
  return {
    kubeconfig: typeof kubeconfig === 'string' ? kubeconfig : '',
    signature: typeof signature === 'string' && signature !== '' ? signature : undefined,
    createdAtMs: Date.parse(String(member(metadata, 'creationTimestamp'))),
    signedByOthers: Object.keys(data).some(
      (name) => name.startsWith(signaturePrefix) && name !== own,
    ),
  }
}

function objectIn(parent: JsonObject, name: string): JsonObject | undefined {
  const found = member(parent, name)
  return isObject(found) ? found : undefined
}
