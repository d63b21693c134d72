import type { KindDefinition } from '../kinds/kind-definition.ts'
import { type KindBytes, kindBytes } from '../registry/object-bytes.ts'

/** A kind as the HTTP side knows it: its definition and the constant bytes of its answers. */
export interface ServedResource {
  readonly definition: KindDefinition
  readonly bytes: KindBytes
}

/** The served resources by `group/version/resource`. */
export function servedResources(
  definitions: readonly KindDefinition[],
): ReadonlyMap<string, ServedResource> {
  return new Map(
    definitions.map((definition) => {
      const { group, version, resource } = definition.kind
      return [`${group}/${version}/${resource}`, { definition, bytes: kindBytes(definition.kind) }]
    }),
  )
}
