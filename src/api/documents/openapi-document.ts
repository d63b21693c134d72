import { type GroupVersionKind, schemaOf } from '../schema/index.ts'
import { structByName, structOf } from '../schema/schema-of.ts'
import type { ApiGroupVersion } from './api-model.ts'
import type { OperationSchemas } from './openapi-operations.ts'
import { ownKindSchemas } from './openapi-own-kind.ts'
import { openapiPaths } from './openapi-paths.ts'
import { SchemaCollection } from './openapi-schemas.ts'
import type { OpenapiDocument } from './openapi-types.ts'

const core = { group: '', version: 'v1' }

/** Kinds that belong to every group and version. */
const sharedKinds = ['DeleteOptions', 'WatchEvent']

/** Which kinds a struct of this document is, for `x-kubernetes-group-version-kind`. */
function kindsByStruct(groupVersion: ApiGroupVersion): Map<string, GroupVersionKind[]> {
  const { group, version, resources } = groupVersion
  const found = new Map([['meta/v1.Status', [{ ...core, kind: 'Status' }]]])
  for (const resource of resources) {
    const list = { ...resource.kind, kind: `${resource.kind.kind}List` }
    for (const kind of [resource.kind, list, ...resource.subresources.map((part) => part.kind)]) {
      const struct = schemaOf(kind)
      if (struct !== undefined) found.set(struct.name, [kind])
    }
  }
  const places = group === '' ? [core] : [core, { group, version }]
  for (const kind of sharedKinds)
    found.set(
      `meta/v1.${kind}`,
      places.map((place) => ({ ...place, kind })),
    )
  return found
}

/** The OpenAPI v3 document of one group and version. */
export function openapiDocument(
  groupVersion: ApiGroupVersion,
  serverVersion: string,
): OpenapiDocument {
  const schemas = new SchemaCollection(kindsByStruct(groupVersion))
  const shared = (name: string) => () => schemas.struct(structByName(`meta/v1.${name}`))
  const returned = new Set(
    groupVersion.resources.filter((one) => one.returnsDeleted).map((one) => one.kind.kind),
  )
  const bodiesOf = (
    kind: GroupVersionKind,
  ): Pick<OperationSchemas, 'object' | 'list'> | undefined => {
    const own = groupVersion.resources.find((one) => one.schema && one.kind.kind === kind.kind)
    if (own) return ownKindSchemas(own, schemas)
    if (schemaOf(kind) === undefined) return undefined
    return {
      object: () => schemas.struct(structOf(kind)),
      list: () => schemas.struct(structOf({ ...kind, kind: `${kind.kind}List` })),
    }
  }
  const schemasOf = (kind: GroupVersionKind): OperationSchemas | undefined => {
    const bodies = bodiesOf(kind)
    return (
      bodies && {
        ...bodies,
        deleted: returned.has(kind.kind) ? bodies.object : shared('Status'),
        status: shared('Status'),
        deleteOptions: shared('DeleteOptions'),
        patch: () => schemas.special('io.k8s.apimachinery.pkg.apis.meta.v1.Patch'),
      }
    )
  }
  const paths = openapiPaths(groupVersion, schemasOf)
  if (groupVersion.resources.some(({ verbs }) => verbs.includes('watch'))) shared('WatchEvent')()
  return {
    openapi: '3.0.0',
    info: { title: 'Sallyport', version: serverVersion },
    paths,
    components: { schemas: schemas.sorted() },
  }
}
