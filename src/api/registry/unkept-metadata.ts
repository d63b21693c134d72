import type { ObjectMeta } from '../../core/index.ts'

const unkept = ['managedFields', 'selfLink'] as const

/** Drops what clients may send in metadata and nobody keeps here. */
export function dropUnkept(metadata: ObjectMeta): void {
  for (const field of unkept) Reflect.deleteProperty(metadata, field)
}
