import { apiVersionOf, type Key, type Kind, type KubeObject, type Query } from '../../core/index.ts'
import type { StoredRecord } from '../../storage/index.ts'

/*
 * An object is serialised once per change. What is stored is its JSON from the second metadata field
 * on; kind, apiVersion and resourceVersion stand before it, so that every answer (an object, a list
 * item, a watch event) is a constant head, the revision and the stored bytes, and nothing is parsed.
 */
const metadataHead = '{"metadata":{'

/** The constant bytes that stand around the stored part of objects of one kind. */
export interface KindBytes {
  readonly objectHead: Buffer
  readonly listHead: string
}

/** An object as the store keeps it. */
export function encodeObject(object: KubeObject): Buffer {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object
  const { resourceVersion: _resourceVersion, ...storedMetadata } = metadata
  const text = JSON.stringify({ metadata: storedMetadata, ...rest })
  return Buffer.from(text.slice(metadataHead.length))
}

/** The heads for `kind`. */
export function kindBytes(kind: Kind): KindBytes {
  const apiVersion = apiVersionOf(kind)
  return {
    objectHead: Buffer.from(`{"kind":"${kind.kind}","apiVersion":"${apiVersion}",`),
    listHead: `{"kind":"${kind.kind}List","apiVersion":"${apiVersion}","metadata":`,
  }
}

const itemHead = Buffer.from('{"metadata":{"resourceVersion":"')
const afterRevision = Buffer.from('",')

/** The stored object as a fresh value; nobody else holds it. */
export function decodeObject(kind: Kind, record: StoredRecord): KubeObject {
  const stored: KubeObject = JSON.parse(
    `{"kind":"${kind.kind}","apiVersion":"${apiVersionOf(kind)}","metadata":{"resourceVersion":"${record.revision}",${record.value.toString()}`,
  )
  return stored
}

function writeItem(target: Buffer, at: number, record: StoredRecord): number {
  let offset = at
  offset += itemHead.copy(target, offset)
  offset += target.write(String(record.revision), offset, 'latin1')
  offset += afterRevision.copy(target, offset)
  offset += record.value.copy(target, offset)
  return offset
}

const itemLength = (record: StoredRecord): number =>
  itemHead.length + String(record.revision).length + afterRevision.length + record.value.length

/** The bytes of one object, between `before` and `after`. */
export function objectBytes(
  kind: KindBytes,
  record: StoredRecord,
  before: Buffer,
  after: Buffer,
): Buffer {
  const length = before.length + kind.objectHead.length + itemLength(record) - 1 + after.length
  const target = Buffer.allocUnsafeSlow(length)
  let offset = before.copy(target)
  // The item's opening brace is overwritten by the end of the head, which has its own.
  const end = writeItem(target, offset + kind.objectHead.length - 1, record)
  offset += kind.objectHead.copy(target, offset)
  after.copy(target, end)
  return target
}

/** What stands before the stored bytes of a record where it is an item of a list. */
export const itemHeadBytes = (record: StoredRecord): Buffer =>
  Buffer.from(`${itemHead.toString()}${record.revision}${afterRevision.toString()}`)

/** How many bytes `runBytes` makes. */
export function runLength(run: readonly StoredRecord[]): number {
  let length = run.length === 0 ? 0 : run.length - 1
  for (const record of run) length += itemLength(record)
  return length
}

/** The bytes of a run of list items, separated by commas, without kind and apiVersion as in Kubernetes' lists. */
export function runBytes(run: readonly StoredRecord[]): Buffer {
  const target = Buffer.allocUnsafeSlow(runLength(run))
  let offset = 0
  for (const record of run) {
    if (offset > 0) target[offset++] = 0x2c
    offset = writeItem(target, offset, record)
  }
  return target
}

const root = (kind: Kind): string => `${kind.group || 'core'}/${kind.resource}/`

/** Where the store keeps an object. */
export function storeKey(kind: Kind, key: Key): string {
  return kind.namespaced ? `${root(kind)}${key.namespace}/${key.name}` : `${root(kind)}${key.name}`
}

/** The prefix of all objects that a query can mean. */
export function storePrefix(kind: Kind, query: Pick<Query, 'namespace'>): string {
  return kind.namespaced && query.namespace ? `${root(kind)}${query.namespace}/` : root(kind)
}

/** Namespace and name of the object behind a store key. */
export function keyOf(kind: Kind, storedAt: string): Key {
  const rest = storedAt.slice(root(kind).length)
  if (!kind.namespaced) return { name: rest }
  const slash = rest.indexOf('/')
  return { namespace: rest.slice(0, slash), name: rest.slice(slash + 1) }
}
