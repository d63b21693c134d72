import { kindDefinitions, reviewResources } from '../../src/api/index.ts'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import type { Feature, FeatureParts } from '../../src/apiserver/index.ts'

/** The namespace and the name in all paths. */
export const namespace = 'rows'
export const name = 'row-a'

/** A path that the server serves, or one of the same form in a scope in which it is not served. */
export interface ApiRoute {
  /** `/api/v1` or `/apis/GROUP/VERSION`; empty for plain paths. */
  readonly root: string
  readonly path: string
  readonly group: string
  readonly version: string
  /** Empty for plain paths. */
  readonly resource: string
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  /** What follows the subresource. */
  readonly rest: string
  /** False for a namespaced resource without its namespace, and for one of the cluster in a namespace. */
  readonly isInScope: boolean
}

interface Resource {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly namespaced: boolean
}

/** Keeps what every feature adds to a server, and has `each` look at it or change it. */
export function watchedFeatures(each: (parts: FeatureParts) => FeatureParts = (parts) => parts): {
  readonly features: readonly Feature[]
  readonly opened: readonly FeatureParts[]
} {
  const opened: FeatureParts[] = []
  const features = allFeatures.map(
    (feature): Feature => ({
      name: feature.name,
      open: async (context) => {
        const parts = each(await feature.open(context))
        opened.push(parts)
        return parts
      },
    }),
  )
  return { features, opened }
}

/** Every route of a server with these features: from its own tables, so that a new one has its rows at once. */
export function routesOf(
  opened: readonly FeatureParts[],
  listedPaths: readonly string[],
): ApiRoute[] {
  const extras = opened.flatMap(({ subresources = [], serviceProxy }) => [
    ...subresources.map(({ entry }) => entry),
    ...(serviceProxy?.subresources ?? []),
  ])
  const live = opened.flatMap(({ resources = [] }) => resources.map(({ entry }) => entry))
  const paths = opened.flatMap(({ routes = [] }) => routes.map(({ path }) => path))
  const ofKind = ({ group, version, resource }: Resource): string[] =>
    extras
      .filter((e) => e.group === group && e.version === version && e.resource === resource)
      .map((extra) => extra.name)
  return [
    ...kindDefinitions.flatMap(({ kind, subresources }) =>
      routesOfResource(kind, [...subresources.map((each) => each.name), ...ofKind(kind)]),
    ),
    ...[...reviewResources, ...live].flatMap((resource) => routesOfResource(resource, [])),
    ...[...new Set([...listedPaths, ...paths])].map((path) => plainRoute(path.replace('/*', '/x'))),
  ]
}

/** Collection, object and subresources, each in both scopes, and each subresource with a path behind it. */
function routesOfResource(kind: Resource, subresources: readonly string[]): ApiRoute[] {
  const { group, version, resource, namespaced } = kind
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return ['', namespace].flatMap((scope) => {
    const collection = `${scope === '' ? '' : `/namespaces/${scope}`}/${resource}`
    // The namespace in the path of a Namespace is the object itself.
    const isNamespace = resource === 'namespaces' && scope === ''
    const at = (path: string, more: Partial<ApiRoute>): ApiRoute => ({
      root,
      path,
      group,
      version,
      resource,
      subresource: '',
      namespace: isNamespace && more.name !== undefined ? name : scope,
      name: '',
      rest: '',
      isInScope: namespaced ? scope !== '' || more.name === undefined : scope === '',
      ...more,
    })
    return [
      at(collection, {}),
      at(`${collection}/${name}`, { name }),
      ...subresources.flatMap((subresource) =>
        ['', '/x'].map((rest) =>
          at(`${collection}/${name}/${subresource}${rest}`, { name, subresource, rest }),
        ),
      ),
    ]
  })
}

const plainRoute = (path: string): ApiRoute => ({
  root: '',
  path,
  group: '',
  version: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  rest: '',
  isInScope: true,
})

/** Prefixes behind the version, of which two are legacy. */
export const prefixes = ['', '/watch', '/proxy'] as const

/** Spellings of a path; `faithful` ones mean the same as the path itself. */
export const encodings: readonly {
  readonly name: string
  readonly isFaithful: boolean
  readonly encode: (path: string) => string
}[] = [
  { name: 'plain', isFaithful: true, encode: (path) => path },
  {
    name: 'encoded letters',
    isFaithful: true,
    encode: (path) => path.replaceAll(/(?<=\/)[a-z]/g, percentEncoded),
  },
  { name: 'trailing slash', isFaithful: true, encode: (path) => path.replace(/\/?$/, '/') },
  { name: 'leading slashes', isFaithful: false, encode: (path) => `/${path}` },
  { name: 'doubled slash', isFaithful: false, encode: atLastSlash('//') },
  { name: 'encoded slash', isFaithful: false, encode: atLastSlash('%2F') },
  { name: 'encoded backslash', isFaithful: false, encode: atLastSlash('%5c') },
  { name: 'dot segment', isFaithful: false, encode: atLastSlash('/./') },
  { name: 'encoded dot segments', isFaithful: false, encode: atLastSlash('/x/%2E%2e/') },
]

/** The slash at the beginning stays, or it would be no path. */
function atLastSlash(text: string): (path: string) => string {
  return (path) => path.replace(/(?<=.)\/(?=[^/]*$)/, text)
}

const percentEncoded = (letter: string): string =>
  `%${letter.charCodeAt(0).toString(16).toUpperCase()}`

/** Methods of HTTP/1.1; HTTP/2 permits any. */
export const methods = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
]
export const oddMethods = ['get', 'constructor', 'WATCH', 'PROXY']

const verbs: Readonly<Record<string, readonly [named: string, unnamed: string, plain: string]>> = {
  GET: ['get', 'list', 'get'],
  HEAD: ['get', 'list', 'get'],
  POST: ['create', 'create', 'post'],
  PUT: ['update', 'update', 'put'],
  PATCH: ['patch', 'patch', 'patch'],
  DELETE: ['delete', 'deletecollection', 'delete'],
  OPTIONS: ['options', 'options', 'options'],
}

const isProxied = ({ group, version, resource }: ApiRoute): boolean =>
  group === '' && version === 'v1' && ['services', 'pods', 'nodes'].includes(resource)

/** The verb of a request by Kubernetes' rules, written down once more; undefined for what must be rejected. */
export function expectedVerb(
  method: string,
  route: ApiRoute,
  { prefix, watch, isUpgrade }: { prefix: string; watch: boolean; isUpgrade: boolean },
): string | undefined {
  const known = Object.hasOwn(verbs, method) ? verbs[method] : undefined
  if (!known) return undefined
  const [named, unnamed, plain] = known
  if (route.resource === '') return isUpgrade ? undefined : plain
  if (prefix === '/proxy')
    return isProxied(route) && route.name && route.isInScope ? named : undefined
  if (prefix === '/watch')
    return method === 'GET' && route.subresource === '' && !isUpgrade ? 'watch' : undefined
  if (isUpgrade && route.subresource === '') return undefined
  if (route.subresource === 'proxy') return route.isInScope ? named : undefined
  if (route.rest !== '' || method === 'HEAD' || method === 'OPTIONS') return undefined
  if (route.name !== '') return named
  return method === 'GET' && watch ? 'watch' : unnamed
}
