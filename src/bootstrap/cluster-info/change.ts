import type { X509Certificate } from 'node:crypto'
import { changeObject } from '../../client/index.ts'
import { type ClusterView, CommandFailed, isRecord, wellKnownKinds } from '../../core/index.ts'
import type { ClusterLocation } from '../../kubeconfig/index.ts'
import { renderCertificates, spkiPin } from '../../pki/trust/index.ts'
import {
  clusterInfoKey,
  clusterInfoText,
  documentIn,
  type OperatorChanges,
  operatorChanges,
  readClusterInfoText,
  readOwnPart,
  rootsIn,
} from './cluster-info.ts'
import { withText } from './cluster-info-controller.ts'

/** cluster-info as it is. */
export interface ClusterInfo {
  readonly location: ClusterLocation
  /** Ids of the tokens whose signatures it carries. */
  readonly signedBy: readonly string[]
  /** What is no longer as the server has put it there. */
  readonly changes: OperatorChanges
  /** Pins of the roots that the server itself has put there. */
  readonly ownPins: readonly string[]
}

const signaturePrefix = 'jws-kubeconfig-'

/** Reads cluster-info by the rules that clients apply. */
export async function readClusterInfo(
  view: ClusterView,
  signal: AbortSignal,
): Promise<ClusterInfo> {
  const object = await view.get(wellKnownKinds.configMap, clusterInfoKey, signal)
  const text = documentIn(object)
  if (text === undefined) throw noDocument()
  const location = await readClusterInfoText(text, 'kube-public/cluster-info')
  const data = isRecord(object?.['data']) ? object['data'] : {}
  const noted = readOwnPart(object)
  const isOwn = ({ fingerprint256 }: X509Certificate) => noted.roots.includes(fingerprint256)
  return {
    location,
    signedBy: Object.keys(data)
      .filter((name) => name.startsWith(signaturePrefix))
      .map((name) => name.slice(signaturePrefix.length))
      .sort(),
    changes: operatorChanges(location, noted),
    ownPins: rootsIn(location.rootsPem).filter(isOwn).map(spkiPin),
  }
}

/** Changes what cluster-info says; false if it says so already. The signer of the cluster signs it again. */
export async function changeClusterInfo(
  view: ClusterView,
  change: (location: ClusterLocation) => ClusterLocation,
  signal: AbortSignal,
): Promise<boolean> {
  return changeObject(
    { view, kind: wellKnownKinds.configMap, key: clusterInfoKey },
    async (present) => {
      const found = documentIn(present)
      if (!present || found === undefined) throw noDocument()
      const location = await readClusterInfoText(found, 'kube-public/cluster-info')
      const text = clusterInfoText(change(location))
      // Whatever was asked for: nothing is written that clients would refuse.
      await readClusterInfoText(text, 'the new cluster-info')
      return text === found ? undefined : withText(present, text)
    },
    signal,
  )
}

const noDocument = (): CommandFailed =>
  new CommandFailed('NO_CLUSTER_INFO', 'the cluster has no kube-public/cluster-info', {
    hint: 'the server writes it when it starts; on a cluster of kubeadm `kubeadm init phase bootstrap-token` does',
  })

/** The location with these addresses in place of the others. */
export const withAddresses =
  (addresses: readonly [string, ...string[]], systemRoots: boolean | undefined) =>
  (location: ClusterLocation): ClusterLocation => {
    const { systemRoots: before, ...rest } = location
    const trustsSystem = systemRoots ?? before ?? false
    return { ...rest, addresses, ...(trustsSystem && { systemRoots: true }) }
  }

/** The location with further roots; they must be those of CAs and not have expired. */
export const withRoots =
  (added: readonly X509Certificate[], now: number) =>
  (location: ClusterLocation): ClusterLocation => {
    for (const root of added) requireRoot(root, now)
    const rootsPem = renderCertificates([...rootsIn(location.rootsPem), ...added])
    return rootsPem === undefined ? location : { ...location, rootsPem }
  }

function requireRoot(root: X509Certificate, now: number): void {
  const subject = JSON.stringify(root.subject.replaceAll('\n', ', '))
  if (!root.ca)
    throw new CommandFailed('NOT_A_CA', `${subject} is not the certificate of a CA`, {
      hint: 'add the certificate that signed it instead',
    })
  if (Date.parse(root.validTo) <= now)
    throw new CommandFailed('CA_EXPIRED', `the CA ${subject} expired on ${root.validTo}`, {
      hint: 'nobody could verify anything with it',
    })
}

/** The location without the root that has this pin. */
export const withoutRoot =
  (pin: string) =>
  (location: ClusterLocation): ClusterLocation => {
    const roots = rootsIn(location.rootsPem)
    const left = roots.filter((root) => spkiPin(root) !== pin)
    if (left.length === roots.length)
      throw new CommandFailed('NO_SUCH_CA', `cluster-info has no root with the pin ${pin}`, {
        hint: `it has ${roots.map(spkiPin).join(', ') || 'none'}`,
      })
    const rootsPem = renderCertificates(left)
    if (rootsPem === undefined && !location.systemRoots)
      throw new CommandFailed(
        'LAST_CA',
        'this is the last root in cluster-info: without any, clients would trust the roots of their systems',
        {
          hint: 'say first that this is meant, with `sallyport cluster-info set-server URL --system-roots`',
        },
      )
    const { rootsPem: _, ...rest } = location
    return { ...rest, ...(rootsPem !== undefined && { rootsPem }) }
  }
