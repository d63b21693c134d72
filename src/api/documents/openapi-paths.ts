import type { GroupVersionKind } from '../schema/index.ts'
import type { ApiGroupVersion, ApiResource } from './api-model.ts'
import {
  type OperationSchemas,
  operation,
  pathParameter,
  queryParameter,
} from './openapi-operations.ts'
import type { PathItem } from './openapi-types.ts'

/** Where a group and version is served, for example `/apis/rbac.authorization.k8s.io/v1`. */
export const rootPathOf = ({ group, version }: { group: string; version: string }): string =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`

/** Finds the schemas of the bodies of a kind, if they are known. */
export type SchemasOf = (kind: GroupVersionKind) => OperationSchemas | undefined

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
export function openapiPaths(
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
