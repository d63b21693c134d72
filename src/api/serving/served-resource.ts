import type { KindDefinition } from '../kinds/kind-definition.ts'
import { type KindBytes, kindBytes } from '../registry/object-bytes.ts'
import { ObjectEvents, WatchedViews } from './event-bytes.ts'

/** A kind as the HTTP side knows it: its definition and what its answers are made of. */
export interface ServedResource {
  readonly definition: KindDefinition
  /** The constant bytes of its answers. */
  readonly bytes: KindBytes
  /** The encoder that all its watchers share. */
  readonly events: ObjectEvents
  /** And those who watch tables or bare metadata. */
  readonly views: WatchedViews
}

/** The served resources by `group/version/resource`. */
export function servedResources(
  definitions: readonly KindDefinition[],
): ReadonlyMap<string, ServedResource> {
  return new Map(
    definitions.map((definition) => {
      const { group, version, resource } = definition.kind
      const bytes = kindBytes(definition.kind)
      const events = new ObjectEvents(definition.kind, bytes)
      const views = new WatchedViews(definition)
      return [`${group}/${version}/${resource}`, { definition, bytes, events, views }]
    }),
  )
}
