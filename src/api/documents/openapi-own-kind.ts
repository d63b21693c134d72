import { structByName } from '../schema/schema-of.ts'
import type { ApiResource } from './api-model.ts'
import { refTo } from './openapi-names.ts'
import type { SchemaCollection } from './openapi-schemas.ts'
import type { Schema } from './openapi-types.ts'

/** The schemas of a kind that no table of Kubernetes has: its own fields beside those that every object has. */
export function ownKindSchemas(
  { kind: gvk, schema = {} }: Pick<ApiResource, 'kind' | 'schema'>,
  schemas: SchemaCollection,
): { readonly object: () => Schema; readonly list: () => Schema } {
  const { group, version, kind } = gvk
  // `addon.sallyport.dev` as `dev.sallyport.addon`, as custom resources are named.
  const name = [...group.split('.').toReversed(), version, kind].join('.')
  const text = (description: string): Schema => ({ type: 'string', description })
  const typed = {
    apiVersion: text(`Always ${group}/${version}.`),
    kind: text('The kind of the object.'),
  }
  const object = (): Schema => {
    const metadata = {
      description: 'What every object has: its name, its place and its history.',
      allOf: [schemas.struct(structByName('meta/v1.ObjectMeta'))],
    }
    schemas.own(name, {
      ...schema,
      type: 'object',
      properties: { ...typed, metadata, ...schema.properties },
      'x-kubernetes-group-version-kind': [gvk],
    })
    return refTo(name)
  }
  const list = (): Schema => {
    const metadata = schemas.struct(structByName('meta/v1.ListMeta'))
    schemas.own(`${name}List`, {
      type: 'object',
      required: ['items'],
      properties: { ...typed, metadata, items: { type: 'array', items: object() } },
      'x-kubernetes-group-version-kind': [{ ...gvk, kind: `${kind}List` }],
    })
    return refTo(`${name}List`)
  }
  return { object, list }
}
