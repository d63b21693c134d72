import type { ServerResponse } from 'node:http'
import { apiVersionOf, type Kind, type KubeObject, type KubeStatus } from '../../core/index.ts'
import { reportUnread } from '../../http/index.ts'
import type { StoreEvent } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { decodeObject, type KindBytes, objectBytes } from '../registry/object-bytes.ts'
import type { Selection } from '../registry/selection.ts'
import { changeOf, type ObjectChange } from '../registry/watch.ts'
import { checkStructure, schemaOf } from '../schema/index.ts'
import type { ResponseForm } from './response.ts'
import { type IncludeObject, renderTable, toPartialObjectMetadata } from './table.ts'

const emptyObjects = new Map<Kind, Readonly<Record<string, unknown>>>()

/** What every object of the kind shows even if nothing was said of it. */
function emptyObject(kind: Kind): Readonly<Record<string, unknown>> {
  const known = emptyObjects.get(kind)
  if (known) return known
  const schema = schemaOf(kind)
  const object = schema ? checkStructure({}, schema).object : {}
  emptyObjects.set(kind, object)
  return object
}

/** The object of a bookmark: nothing but a version. `initialEnd` marks the end of the initial state. */
function bookmarkObject(kind: Kind, revision: number, initialEnd: boolean): KubeObject {
  return {
    ...emptyObject(kind),
    kind: kind.kind,
    apiVersion: apiVersionOf(kind),
    metadata: {
      name: '',
      resourceVersion: String(revision),
      ...(initialEnd && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
    },
  }
}

/** Turns changes into the lines of a watch. */
export interface EventEncoder {
  /** The lines for the events of one commit, together if they are short; none when it does not concern this watcher. */
  commit(events: readonly StoreEvent[], selection: Selection): readonly Buffer[]
  change(change: ObjectChange): Buffer
  /** The line that says how far a quiet watch has come, or that its initial state is complete. */
  bookmark(revision: number, initialEnd: boolean): Buffer
}

const heads = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
} as const
const lineEnd = Buffer.from('}\n')

const eventLine = (type: string, object: unknown): Buffer =>
  Buffer.from(`${JSON.stringify({ type, object })}\n`)

/** A bookmark is about no object, so it shows no name. */
const bookmarkLine = (object: unknown): Buffer =>
  Buffer.from(
    `${JSON.stringify({ type: 'BOOKMARK', object }, (key, value: unknown) => (key === 'name' && value === '' ? undefined : value))}\n`,
  )

/** Longer lines are shared by all watchers as they are, not copied for each. */
const maxJoinedBytes = 64 * 1024

function joined(lines: readonly Buffer[]): readonly Buffer[] {
  if (lines.length < 2) return lines
  const length = lines.reduce((sum, line) => sum + line.length, 0)
  return length > maxJoinedBytes ? lines : [Buffer.concat(lines, length)]
}

/** Lines by event and variant: what an event means to one watcher it means to thousands. */
class EventLines {
  readonly #lines = new WeakMap<StoreEvent, Map<string, Buffer>>()

  get(event: StoreEvent, variant: string, make: () => Buffer): Buffer {
    const variants = this.#lines.get(event) ?? new Map<string, Buffer>()
    this.#lines.set(event, variants)
    const line = variants.get(variant) ?? make()
    variants.set(variant, line)
    return line
  }
}

/** Encodes whole objects; every commit and every event is rendered once for all watchers of the kind. */
export class ObjectEvents implements EventEncoder {
  readonly #kind: Kind
  readonly #bytes: KindBytes
  readonly #commits = new WeakMap<readonly StoreEvent[], readonly Buffer[]>()
  readonly #lines = new EventLines()

  constructor(kind: Kind, bytes: KindBytes) {
    this.#kind = kind
    this.#bytes = bytes
  }

  commit(events: readonly StoreEvent[], selection: Selection): readonly Buffer[] {
    if (!selection.isEverything) return joined(this.#selected(events, selection))
    const known = this.#commits.get(events)
    if (known) return known
    const lines = joined(this.#selected(events, selection))
    this.#commits.set(events, lines)
    return lines
  }

  change({ type, record }: ObjectChange): Buffer {
    return objectBytes(this.#bytes, record, heads[type], lineEnd)
  }

  bookmark(revision: number, initialEnd: boolean): Buffer {
    return bookmarkLine(bookmarkObject(this.#kind, revision, initialEnd))
  }

  #selected(events: readonly StoreEvent[], selection: Selection): Buffer[] {
    return events.flatMap((event) => {
      const change = changeOf(event, selection)
      return change ? [this.#lines.get(event, change.type, () => this.change(change))] : []
    })
  }
}

/** Which view of objects watchers share. */
interface SharedView {
  readonly definition: KindDefinition
  readonly view: ResponseForm['view']
  readonly includeObject: IncludeObject
  readonly now: () => number
}

/** Renders tables or bare metadata of one sort for all who watch a kind in that form. */
class ViewLines {
  readonly #shared: SharedView
  readonly #lines = new EventLines()

  constructor(shared: SharedView) {
    this.#shared = shared
  }

  ofEvent(event: StoreEvent, change: ObjectChange, includeHeaders: boolean): Buffer {
    const variant = `${change.type} ${includeHeaders}`
    return this.#lines.get(event, variant, () => this.ofChange(change, includeHeaders))
  }

  ofChange({ type, record }: ObjectChange, includeHeaders: boolean): Buffer {
    const object = decodeObject(this.#shared.definition.kind, record)
    return eventLine(type, this.#view(object, includeHeaders))
  }

  ofBookmark(revision: number, initialEnd: boolean, includeHeaders: boolean): Buffer {
    const object = bookmarkObject(this.#shared.definition.kind, revision, initialEnd)
    return bookmarkLine(this.#view(object, includeHeaders))
  }

  #view(object: KubeObject, includeHeaders: boolean): unknown {
    const { definition, view, includeObject, now } = this.#shared
    if (view === 'metadata') return toPartialObjectMetadata(object)
    const listMeta = { resourceVersion: object.metadata.resourceVersion ?? '' }
    return renderTable(definition, [object], {
      includeObject,
      listMeta,
      now: now(),
      includeHeaders,
    })
  }
}

/** The views in which a kind is watched. */
export class WatchedViews {
  readonly #definition: KindDefinition
  readonly #known = new Map<string, ViewLines>()

  constructor(definition: KindDefinition) {
    this.#definition = definition
  }

  /** The encoder of one more watcher. */
  encoder(view: ResponseForm['view'], includeObject: IncludeObject, now: () => number): ViewEvents {
    const key = `${view} ${includeObject}`
    const shared = { definition: this.#definition, view, includeObject, now }
    const lines = this.#known.get(key) ?? new ViewLines(shared)
    this.#known.set(key, lines)
    return new ViewEvents(lines)
  }
}

/** Encodes tables or bare metadata for one watcher, who gets the headers of the table once. */
class ViewEvents implements EventEncoder {
  readonly #lines: ViewLines
  #includeHeaders = true

  constructor(lines: ViewLines) {
    this.#lines = lines
  }

  commit(events: readonly StoreEvent[], selection: Selection): readonly Buffer[] {
    return joined(
      events.flatMap((event) => {
        const change = changeOf(event, selection)
        return change ? [this.#lines.ofEvent(event, change, this.#takeHeaders())] : []
      }),
    )
  }

  change(change: ObjectChange): Buffer {
    return this.#lines.ofChange(change, this.#takeHeaders())
  }

  bookmark(revision: number, initialEnd: boolean): Buffer {
    return this.#lines.ofBookmark(revision, initialEnd, this.#takeHeaders())
  }

  #takeHeaders(): boolean {
    const isFirst = this.#includeHeaders
    this.#includeHeaders = false
    return isFirst
  }
}

/** The line that ends a watch with a failure. */
export const errorLine = (status: KubeStatus): Buffer => eventLine('ERROR', status)

const lineBreak = '\r\n'
let lastData: Buffer | undefined
let lastChunk = Buffer.alloc(0)

/** Longer pieces are framed by Node, which does not copy them: a copy for each client would be. */
const maxCopiedBytes = 64 * 1024

/** One chunk as HTTP/1.1 frames it; the same bytes for whoever asks for the same data next. */
function chunkOf(data: Buffer): Buffer {
  if (data === lastData) return lastChunk
  const head = data.length.toString(16) + lineBreak
  lastChunk = Buffer.allocUnsafe(head.length + data.length + lineBreak.length)
  lastChunk.write(head, 'latin1')
  data.copy(lastChunk, head.length)
  lastChunk.write(lineBreak, head.length + data.length, 'latin1')
  lastData = data
  return lastChunk
}

/**
 * Writes a piece of an answer whose head is sent and which many clients get. Node would frame it
 * anew for each, in three pieces, and send to the first client only when all have been served.
 */
export function writeShared(response: ServerResponse, data: Buffer): void {
  if (data.length === 0) return // as a chunk it would be the end
  const { socket } = response
  // Without a socket, an earlier answer on this connection is still on its way.
  const isShort = data.length <= maxCopiedBytes
  const isFlowing =
    isShort && response.chunkedEncoding && socket?.writable
      ? socket.write(chunkOf(data))
      : response.write(data)
  if (!isFlowing) reportUnread(response)
}
