import type { X509Certificate } from 'node:crypto'
import { isRecord, type KubeObject } from '../../core/index.ts'
import { type ClusterLocation, clusterLocation } from '../../kubeconfig/index.ts'
import { parseCertificates, renderCertificates, spkiPin } from '../../pki/trust/index.ts'
import { readLocationDocument } from '../discovery/document.ts'

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

/** Where a cluster says how it is reached and whom to trust. */
export const clusterInfoKey = { namespace: 'kube-public', name: 'cluster-info' } as const

/** A root as people and programs see it. */
export interface RootReport {
  /** As kubeadm writes it. */
  readonly pin: string
  readonly subject: string
  /** RFC 3339. */
  readonly validFrom: string
  readonly validTo: string
}

/** The certificates of a PEM text, none for no text. */
export const rootsIn = (pem: string | undefined): X509Certificate[] =>
  pem === undefined ? [] : parseCertificates(pem)

/** The pin of each root, in their order, each once: what a join line needs while the CA is replaced. */
export const rootPins = (pem: string | undefined): string[] => [
  ...new Set(rootsIn(pem).map(spkiPin)),
]

/** What there is to say of each root. */
export const rootReports = (pem: string | undefined): RootReport[] =>
  rootsIn(pem).map((root) => ({
    pin: spkiPin(root),
    subject: root.subject.replaceAll('\n', ', '),
    validFrom: new Date(root.validFrom).toISOString().replace('.000', ''),
    validTo: new Date(root.validTo).toISOString().replace('.000', ''),
  }))

/** What the server has put into the document: all that it may change there later. */
export interface OwnPart {
  readonly addresses: readonly string[]
  /** SHA-256 of each root. */
  readonly roots: readonly string[]
}

/** Where the server notes what it has put into the document. */
export const ownPartAnnotation = 'sallyport.dev/own-location'

/** What the server notes of a location of its own. */
export const ownPartOf = ({ addresses, rootsPem }: ClusterLocation): OwnPart => ({
  addresses,
  roots: rootsIn(rootsPem).map(({ fingerprint256 }) => fingerprint256),
})

/** What the server has put into the document before; nothing if somebody else made it. */
export function readOwnPart(object: KubeObject | undefined): OwnPart {
  const noted = parsed(object?.metadata.annotations?.[ownPartAnnotation] ?? '')
  return { addresses: textsIn(noted['addresses']), roots: textsIn(noted['roots']) }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

const textsIn = (list: unknown): string[] =>
  Array.isArray(list) ? list.filter((each) => typeof each === 'string') : []

/** Which parts of the document are not as the server has put them there. */
export interface OperatorChanges {
  readonly addresses: boolean
  readonly roots: boolean
  readonly systemRoots: boolean
}

/** What somebody else has changed since the server wrote its part. */
export function operatorChanges(present: ClusterLocation, noted: OwnPart): OperatorChanges {
  const roots = rootsIn(present.rootsPem).map(({ fingerprint256 }) => fingerprint256)
  return {
    addresses: !isSameList(present.addresses, noted.addresses),
    roots: !isSameList(roots.toSorted(), [...noted.roots].sort()),
    systemRoots: present.systemRoots === true,
  }
}

/**
 * The document as it should be now. The server exchanges what it has put there itself; addresses and roots that
 * an operator has set, added or taken away stay so.
 */
export function mergedLocation(
  present: ClusterLocation,
  noted: OwnPart,
  own: ClusterLocation,
): ClusterLocation {
  const there = rootsIn(present.rootsPem)
  const thereNow = new Set(there.map(({ fingerprint256 }) => fingerprint256))
  const takenAway = new Set(noted.roots.filter((root) => !thereNow.has(root)))
  const ours = rootsIn(own.rootsPem).filter(({ fingerprint256 }) => !takenAway.has(fingerprint256))
  const added = there.filter(({ fingerprint256 }) => !noted.roots.includes(fingerprint256))
  const rootsPem = renderCertificates([...ours, ...added])
  const { clusterId } = own
  return {
    addresses: isSameList(present.addresses, noted.addresses) ? own.addresses : present.addresses,
    ...(rootsPem !== undefined && { rootsPem }),
    ...(clusterId !== undefined && { clusterId }),
    ...(present.systemRoots && { systemRoots: true }),
  }
}

const isSameList = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((each, index) => each === b[index])
