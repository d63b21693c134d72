import { isRecord, type KubeObject } from '../../core/index.ts'
import type { ClusterLocation } from '../../kubeconfig/index.ts'
import { pemOf, rootsIn } from './root-certificates.ts'

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
  const rootsPem = pemOf([...ours, ...added])
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
