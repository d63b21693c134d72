import type { Controller } from '../../api/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  type ClusterView,
  isRecord,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import type { ClusterLocation } from '../../kubeconfig/index.ts'
import { renderCertificates } from '../../pki/trust/index.ts'
import { DiscoveryFailed } from '../discovery/errors.ts'
import {
  clusterInfoKey,
  clusterInfoText,
  documentIn,
  mergedLocation,
  operatorChanges,
  ownPartAnnotation,
  ownPartOf,
  readClusterInfoText,
  readOwnPart,
  rootsIn,
} from './cluster-info.ts'

/** What cluster-info is kept with. */
export interface ClusterInfoKeeper {
  readonly view: ClusterView
  /** The server's own location as it is now; nothing is written as long as it is not known. */
  readonly own: () => ClusterLocation | undefined
  readonly log: Logger
}

/** Writes cluster-info if there is none, and what the server itself has put there when that has changed. */
export async function keepClusterInfo(
  { view, own, log }: ClusterInfoKeeper,
  signal: AbortSignal,
): Promise<boolean> {
  return changeObject(
    { view, kind: wellKnownKinds.configMap, key: clusterInfoKey },
    async (present) => {
      const known = own()
      if (!known) return undefined
      const location = withPlainRoots(known)
      const found = documentIn(present)
      if (found === undefined) return withDocument(present, location, location)
      const merged = await mergedDocument(present, found, { location, log })
      return merged && changed(present, withDocument(present, merged, location))
    },
    signal,
  )
}

/** Certificates without the comments between them, so that the same roots are the same text. */
function withPlainRoots(location: ClusterLocation): ClusterLocation {
  const rootsPem = renderCertificates(rootsIn(location.rootsPem))
  return rootsPem === undefined ? location : { ...location, rootsPem }
}

/** What is wanted, if it differs from what is there. */
function changed(present: KubeObject | undefined, wanted: KubeObject): KubeObject | undefined {
  const noteOf = (object: KubeObject | undefined) =>
    object?.metadata.annotations?.[ownPartAnnotation]
  const isRight = documentIn(present) === documentIn(wanted) && noteOf(present) === noteOf(wanted)
  return isRight ? undefined : wanted
}

async function mergedDocument(
  present: KubeObject | undefined,
  found: string,
  { location, log }: { readonly location: ClusterLocation; readonly log: Logger },
): Promise<ClusterLocation | undefined> {
  const noted = readOwnPart(present)
  try {
    const there = await readClusterInfoText(found, 'cluster-info')
    const { addresses, roots } = operatorChanges(there, noted)
    if (addresses) log.info({ addresses: there.addresses }, 'addresses in cluster-info stay as set')
    if (roots) log.info({}, 'roots that were added to or removed from cluster-info stay so')
    return mergedLocation(there, noted, location)
  } catch (err) {
    if (!(err instanceof DiscoveryFailed)) throw err
    log.warn(
      { err },
      'cluster-info is left alone, since it cannot be read: delete it to have it made anew',
    )
    return undefined
  }
}

function withDocument(
  present: KubeObject | undefined,
  document: ClusterLocation,
  own: ClusterLocation,
): KubeObject {
  const metadata = present?.metadata ?? { ...clusterInfoKey }
  const annotations = {
    ...metadata.annotations,
    [ownPartAnnotation]: JSON.stringify(ownPartOf(own)),
  }
  return withText(
    { apiVersion: 'v1', kind: 'ConfigMap', ...present, metadata: { ...metadata, annotations } },
    clusterInfoText(document),
  )
}

/** The object with another document; its signatures are left to the signer. */
export function withText(object: KubeObject, kubeconfig: string): KubeObject {
  const data = isRecord(object['data']) ? object['data'] : {}
  return { ...object, data: { ...data, kubeconfig } }
}

const everything = 'cluster-info'

/** Keeps cluster-info while the server runs: made again when it is gone, changed when the server's roots are. */
export function createClusterInfoController(
  keeper: ClusterInfoKeeper & { readonly onNew: (listener: () => void) => void },
): Controller {
  return {
    name: 'cluster-info',
    start({ watch, enqueue }) {
      watch({
        kind: wellKnownKinds.configMap,
        query: {
          namespace: clusterInfoKey.namespace,
          fieldSelector: `metadata.name=${clusterInfoKey.name}`,
        },
        project: ({ metadata }) => metadata.uid,
        keysOf: ({ after }) => (after === undefined ? [everything] : []),
      })
      enqueue(everything)
      keeper.onNew(() => enqueue(everything))
      return async (_key, signal) => {
        await keepClusterInfo(keeper, signal)
        return undefined
      }
    },
  }
}
