import type { FieldReader } from './field-reader.ts'
import type { Extensions } from './kubeconfig.ts'

/** The `extensions` list of an entry, by name. */
export function readExtensions(reader: FieldReader): Extensions | undefined {
  const items = reader.list('extensions')
  if (items.length === 0) return undefined
  const extensions = new Map<string, unknown>()
  for (const item of items) {
    const name = item.string('name') ?? ''
    if (extensions.has(name)) item.note('name', `${JSON.stringify(name)} is there twice`)
    extensions.set(name, item.raw('extension'))
  }
  return extensions
}
