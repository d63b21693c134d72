import { type GroupVersionKind, schemaOf } from '../schema/index.ts'
import { structByName, structOf } from '../schema/schema-of.ts'
import type { ApiGroupVersion, ApiResource } from './api-model.ts'
import {
  type OperationSchemas,
  operation,
  pathParameter,
  queryParameter,
} from './openapi-operations.ts'
import { SchemaCollection } from './openapi-schemas.ts'
import { type OpenapiDocument, type PathItem, refTo, type Schema } from './openapi-types.ts'

/** The schemas of a kind that no table of Kubernetes has: its own fields beside those that every object has. */
function ownKindSchemas(
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

/** Where a group and version is served, for example `/apis/rbac.authorization.k8s.io/v1`. */
export const rootPathOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`

/** Finds the schemas of the bodies of a kind, if they are known. */
type SchemasOf = (kind: GroupVersionKind) => OperationSchemas | undefined

interface PathPlan {
  readonly path: string
  readonly verbs: readonly string[]
  readonly kind: GroupVersionKind
  /** Ends the ids of the operations. */
  readonly suffix: string
}

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** `rbac.authorization.k8s.io` as `rbacAuthorization`, the core group as `core`. */
function groupWord(group: string): string {
  const [first = 'core', ...rest] = group === '' ? [] : group.replace(/\.k8s\.io$/, '').split('.')
  return [first, ...rest.map(capitalized)].join('')
}

function plansOf(groupVersion: ApiGroupVersion, resource: ApiResource): PathPlan[] {
  const root = rootPathOf(groupVersion)
  const { namespaced, kind, verbs } = resource
  const scope = namespaced ? 'Namespaced' : ''
  const collection = `${root}${namespaced ? '/namespaces/{namespace}' : ''}/${resource.resource}`
  const title = capitalized(groupWord(groupVersion.group)) + capitalized(groupVersion.version)
  const of = (wanted: readonly string[]) => verbs.filter((verb) => wanted.includes(verb))
  const own = { kind, suffix: `${title}${scope}${kind.kind}` }
  return [
    { ...own, path: collection, verbs: of(['create', 'list']) },
    {
      ...own,
      path: collection,
      verbs: of(['deletecollection']),
      suffix: own.suffix.replace(title, `${title}Collection`),
    },
    { ...own, path: `${collection}/{name}`, verbs: of(['get', 'update', 'patch', 'delete']) },
    ...resource.subresources.map((part) => ({
      path: `${collection}/{name}/${part.name}`,
      verbs: part.verbs,
      kind: part.kind,
      suffix: `${own.suffix}${capitalized(part.name)}`,
    })),
    {
      kind,
      path: `${root}/${resource.resource}`,
      verbs: namespaced ? of(['list']) : [],
      suffix: `${title}${kind.kind}ForAllNamespaces`,
    },
  ]
}

function pathParameters(path: string) {
  return [
    ...(path.includes('{name}') ? [pathParameter('name')] : []),
    ...(path.includes('{namespace}') ? [pathParameter('namespace')] : []),
    queryParameter('pretty'),
  ]
}

/** Every path of a group and version with its operations. */
function openapiPaths(
  groupVersion: ApiGroupVersion,
  schemasOf: SchemasOf,
): Record<string, PathItem> {
  const tag = `${groupWord(groupVersion.group)}_${groupVersion.version}`
  const paths: Record<string, PathItem> = {}
  const plans = groupVersion.resources.flatMap((resource) => plansOf(groupVersion, resource))
  for (const { path, verbs, kind, suffix } of plans) {
    // What has no field table, such as the options of a proxy, is not described.
    const schemas = schemasOf(kind)
    if (schemas === undefined) continue
    for (const verb of verbs) {
      const built = operation(verb, kind, { tag, suffix }, schemas)
      if (built === undefined) continue
      const item = paths[path] ?? { parameters: pathParameters(path) }
      paths[path] = { ...item, [built.method]: built.definition }
    }
  }
  return paths
}

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
