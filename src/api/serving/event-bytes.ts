import type { Kind, KubeObject, KubeStatus } from '../../core/index.ts'
import type { StoreEvent } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/kind-definition.ts'
import { decodeObject, type KindBytes, objectBytes } from '../registry/object-bytes.ts'
import type { Selection } from '../registry/selection.ts'
import { changeOf, type ObjectChange } from '../registry/watch-objects.ts'
import { type IncludeObject, renderTable, toPartialObjectMetadata } from '../table/index.ts'
import { bookmarkObject } from './bookmark.ts'
import type { ResponseForm } from './response-form.ts'

/** Turns changes into the lines of a watch. */
export interface EventEncoder {
  /** The lines for the events of one commit; empty when none concerns this watcher. */
  commit(events: readonly StoreEvent[], selection: Selection): Buffer
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
const nothing = Buffer.alloc(0)

const eventLine = (type: string, object: unknown): Buffer =>
  Buffer.from(`${JSON.stringify({ type, object })}\n`)

/** A bookmark is about no object, so it shows no name. */
const bookmarkLine = (object: unknown): Buffer =>
  Buffer.from(
    `${JSON.stringify({ type: 'BOOKMARK', object }, (key, value: unknown) => (key === 'name' && value === '' ? undefined : value))}\n`,
  )

const joined = (lines: readonly Buffer[]): Buffer =>
  lines.length === 1 ? (lines[0] ?? nothing) : Buffer.concat(lines)

/** Encodes whole objects; every commit and every event is rendered once for all watchers of the kind. */
export class ObjectEvents implements EventEncoder {
  readonly #kind: Kind
  readonly #bytes: KindBytes
  readonly #commits = new WeakMap<readonly StoreEvent[], Buffer>()
  readonly #events = new WeakMap<StoreEvent, Buffer>()

  constructor(kind: Kind, bytes: KindBytes) {
    this.#kind = kind
    this.#bytes = bytes
  }

  commit(events: readonly StoreEvent[], selection: Selection): Buffer {
    if (!selection.isEverything) return joined(this.#selected(events, selection))
    const known = this.#commits.get(events)
    if (known) return known
    const bytes = joined(this.#selected(events, selection))
    this.#commits.set(events, bytes)
    return bytes
  }

  change({ type, record }: ObjectChange): Buffer {
    return objectBytes(this.#bytes, record, heads[type], lineEnd)
  }

  bookmark(revision: number, initialEnd: boolean): Buffer {
    return bookmarkLine(bookmarkObject(this.#kind, revision, initialEnd))
  }

  #selected(events: readonly StoreEvent[], selection: Selection): Buffer[] {
    const lines: Buffer[] = []
    for (const event of events) {
      const change = changeOf(event, selection)
      if (change) lines.push(this.#line(event, change))
    }
    return lines
  }

  #line(event: StoreEvent, change: ObjectChange): Buffer {
    const natural = event.type === 'delete' ? 'DELETED' : event.previous ? 'MODIFIED' : 'ADDED'
    if (change.type !== natural) return this.change(change)
    const known = this.#events.get(event)
    if (known) return known
    const line = this.change(change)
    this.#events.set(event, line)
    return line
  }
}

/** Encodes tables or bare metadata, for one watcher. */
export class ViewEvents implements EventEncoder {
  readonly #definition: KindDefinition
  readonly #view: (object: KubeObject) => unknown

  constructor(
    definition: KindDefinition,
    form: ResponseForm,
    table: { readonly includeObject: IncludeObject; readonly now: () => number },
  ) {
    this.#definition = definition
    let includeHeaders = true
    this.#view =
      form.view === 'metadata'
        ? toPartialObjectMetadata
        : (object) => {
            const rendered = renderTable(definition, [object], {
              includeObject: table.includeObject,
              listMeta: { resourceVersion: object.metadata.resourceVersion ?? '' },
              now: table.now(),
              includeHeaders,
            })
            includeHeaders = false
            return rendered
          }
  }

  commit(events: readonly StoreEvent[], selection: Selection): Buffer {
    const lines: Buffer[] = []
    for (const event of events) {
      const change = changeOf(event, selection)
      if (change) lines.push(this.change(change))
    }
    return joined(lines)
  }

  change({ type, record }: ObjectChange): Buffer {
    return eventLine(type, this.#view(decodeObject(this.#definition.kind, record)))
  }

  bookmark(revision: number, initialEnd: boolean): Buffer {
    const object = bookmarkObject(this.#definition.kind, revision, initialEnd)
    return bookmarkLine(this.#view(object))
  }
}

/** The line that ends a watch with a failure. */
export const errorLine = (status: KubeStatus): Buffer => eventLine('ERROR', status)
