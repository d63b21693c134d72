import { type Answer, type Case, cases, get, media, type Topic } from '../ask.ts'
import { storedKinds } from '../kinds.ts'

type Fields = Record<string, unknown>

const groups = [
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'rbac.authorization.k8s.io',
]
const reviews = [
  'selfsubjectreviews',
  'tokenreviews',
  'localsubjectaccessreviews',
  'selfsubjectaccessreviews',
  'selfsubjectrulesreviews',
  'subjectaccessreviews',
]
const resources = new Set([...storedKinds.map(({ resource }) => resource), ...reviews])

const list = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])
const keyed = (items: readonly Fields[], key: string): Fields =>
  Object.fromEntries(items.map((item) => [String(item[key]), item]))
const isOurs = (name: unknown): boolean => resources.has(String(name).split('/')[0] ?? '')

/** The addresses of the servers are their own. */
const apiVersions = (json: unknown): unknown => ({
  ...(json as Fields),
  serverAddressByClientCIDRs: '',
})

const groupList = (json: unknown): unknown => {
  const { groups: all, ...rest } = json as Fields
  const ours = list(all).filter(({ name }) => groups.includes(String(name)))
  return { ...rest, groups: keyed(ours, 'name') }
}

const resourceList = (json: unknown): unknown => {
  const { resources: all, ...rest } = json as Fields
  if (!all) return json
  return {
    ...rest,
    resources: keyed(
      list(all).filter(({ name }) => isOurs(name)),
      'name',
    ),
  }
}

const resourceOf = ({ subresources, ...resource }: Fields): Fields =>
  subresources ? { ...resource, subresources: keyed(list(subresources), 'subresource') } : resource

/** The core group has no name. */
const nameOf = ({ metadata }: Fields): string =>
  (metadata as { name?: string } | undefined)?.name ?? ''

const aggregated = (json: unknown): unknown => {
  const { items, ...rest } = json as Fields
  const ours = list(items).filter((item) => ['', ...groups].includes(nameOf(item)))
  const versions = ours.map(({ versions: all, ...group }) => ({
    ...group,
    name: nameOf(group),
    versions: keyed(
      list(all).map(({ resources: inVersion, ...version }) => ({
        ...version,
        resources: keyed(
          list(inVersion)
            .filter(({ resource }) => isOurs(resource))
            .map(resourceOf),
          'resource',
        ),
      })),
      'version',
    ),
  }))
  return { ...rest, items: keyed(versions, 'name') }
}

const asAggregated = (version: string): string =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`

const discovery: Case[] = [
  { name: 'the versions of the core group', steps: [get('/api')], view: apiVersions },
  { name: 'the groups', steps: [get('/apis'), get('/apis/')], view: groupList },
  {
    name: 'each group',
    steps: groups.flatMap((group) => [get(`/apis/${group}`), get(`/apis/${group}/`)]),
  },
  {
    name: 'the resources of each version',
    steps: ['/api/v1', '/api/v1/', ...groups.map((group) => `/apis/${group}/v1`)].map((path) =>
      get(path),
    ),
    view: resourceList,
  },
  {
    name: 'aggregated',
    steps: ['/api', '/apis'].flatMap((path) => [
      get(path, { accept: asAggregated('v2') }),
      get(path, { accept: `${asAggregated('v2')},application/json` }),
    ]),
    view: aggregated,
  },
  {
    name: 'aggregated and known already',
    steps: [
      get('/apis', { accept: asAggregated('v2') }),
      (seen) =>
        get('/apis', {
          accept: asAggregated('v2'),
          headers: { 'if-none-match': seen[0]?.headers.get('etag')?.[0] ?? '' },
        }),
    ],
    view: () => '',
  },
  {
    name: 'in other forms',
    steps: [
      get('/apis/coordination.k8s.io/v1', { accept: media.yaml }),
      get('/apis/coordination.k8s.io/v1', { accept: 'text/plain' }),
      get('/apis/coordination.k8s.io', { accept: media.table }),
      get('/apis/coordination.k8s.io/v1?pretty=true'),
    ],
    view: resourceList,
  },
]

/** What kubectl reads of a schema; words and default values are everybody's own. */
const read = new Set([
  '$ref',
  'additionalProperties',
  'enum',
  'format',
  'items',
  'oneOf',
  'properties',
  'required',
  'type',
  'x-kubernetes-group-version-kind',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-patch-merge-key',
  'x-kubernetes-patch-strategy',
])

const eachValue = (fields: object, change: (value: unknown) => unknown): Fields =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, change(value)]))

function structureOf(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(structureOf)
  if (typeof schema !== 'object' || schema === null) return schema
  const { allOf = [], ...own } = schema as { allOf?: object[] }
  // A reference with a default beside it has to be wrapped.
  const kept = Object.entries({ ...own, ...allOf[0] }).filter(([key]) => read.has(key))
  return Object.fromEntries(
    kept.map(([key, value]) => [
      key,
      key === 'properties' ? eachValue(value as object, structureOf) : structureOf(value),
    ]),
  )
}

/** OpenAPI v3 has them below its components, v2 at its top. */
const schemasOf = ({ components = {}, definitions }: Fields): Fields =>
  (definitions ?? (components as Fields)['schemas'] ?? {}) as Fields

const isOurKind = (schema: unknown): boolean =>
  list((schema as Fields)['x-kubernetes-group-version-kind']).some(({ group, version, kind }) => {
    const apiVersion = [group, version].filter(Boolean).join('/')
    return storedKinds.some((stored) => stored.apiVersion === apiVersion && stored.kind === kind)
  })

/** The schemas of our kinds and of everything that they are made of. */
function schemasOfOurKinds(json: unknown): unknown {
  const all = schemasOf(json as Fields)
  const wanted = Object.keys(all).filter((name) => isOurKind(all[name]))
  const found: Fields = {}
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (name in found) continue
    found[name] = structureOf(all[name])
    for (const [, inner] of JSON.stringify(all[name]).matchAll(
      /#\/(?:components\/schemas|definitions)\/([^"]+)"/g,
    ))
      if (inner) wanted.push(inner)
  }
  return found
}

const openApiPaths = (json: unknown): unknown => {
  const { paths = {} } = json as { paths?: Fields }
  return ['api/v1', ...groups.map((group) => `apis/${group}/v1`)].map((path) => [
    path,
    path in paths,
  ])
}

const serverUrlOf = (seen: readonly Answer[], path: string): string => {
  const { paths } = (seen[0]?.json ?? {}) as { paths?: Record<string, Fields> }
  return String(paths?.[path]?.['serverRelativeURL'])
}

const openApiProtobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

const openApi: Case[] = [
  { name: 'the index of OpenAPI', steps: [get('/openapi/v3')], view: openApiPaths },
  ...[
    'api/v1',
    'apis/coordination.k8s.io/v1',
    'apis/rbac.authorization.k8s.io/v1',
    'apis/certificates.k8s.io/v1',
    'apis/discovery.k8s.io/v1',
  ].map(
    (path): Case => ({
      name: `schemas of ${path}`,
      steps: [get(`/openapi/v3/${path}`)],
      view: schemasOfOurKinds,
    }),
  ),
  {
    name: 'a document under its hash',
    steps: [
      get('/openapi/v3'),
      (seen) => get(serverUrlOf(seen, 'apis/coordination.k8s.io/v1')),
      (seen) =>
        get('/openapi/v3/apis/coordination.k8s.io/v1', {
          headers: { 'if-none-match': seen[1]?.headers.get('etag')?.[0] ?? '' },
        }),
    ],
    view: () => '',
  },
  { name: 'OpenAPI that is not there', steps: [get('/openapi/v3/apis/nonsense/v1')] },
  { name: 'schemas of version 2', steps: [get('/openapi/v2')], view: schemasOfOurKinds },
  {
    name: 'forms of version 2',
    steps: [
      get('/openapi/v2', { accept: 'application/*' }),
      get('/openapi/v2?hash=unknown'),
      get('/openapi/v2', { accept: openApiProtobuf }),
      get('/openapi/v2', { accept: openApiProtobuf.replace('v2.v1', 'v2@v1') }),
      get('/openapi/v2', { accept: media.yaml }),
      get('/openapi/v2', { accept: 'text/html' }),
      (seen) =>
        get('/openapi/v2', {
          headers: { 'if-none-match': seen[0]?.headers.get('etag')?.[0] ?? '' },
        }),
    ],
    view: () => '',
    viewText: () => '',
  },
]

/** Of the checks only ping is everybody's. */
const healthLines = (text: string): unknown =>
  text.split('\n').filter((line) => !/^\[[+-]\](?!ping)/.test(line))

const health: Case[] = [
  {
    name: 'health',
    steps: ['healthz', 'livez', 'readyz'].flatMap((check) => [
      get(`/${check}`),
      get(`/${check}?verbose`),
      get(`/${check}?verbose=true`),
      get(`/${check}/ping`),
      get(`/${check}/ping?verbose`),
      get(`/${check}/nonsense`),
      get(`/${check}?exclude=ping`),
      get(`/${check}?verbose&exclude=ping`),
      get(`/${check}?verbose&exclude=nonsense`),
    ]),
    viewText: healthLines,
  },
]

/** Discovery, OpenAPI, health and version. */
export const documents: Topic = {
  name: 'documents',
  cases: [
    ...discovery,
    ...openApi,
    ...health,
    ...cases({ 'the version': get('/version') }),
    { name: 'metrics', steps: [get('/metrics')], viewText: () => '' },
    {
      name: 'the index of all paths',
      steps: [get('/')],
      view: (json) => {
        const { paths = [] } = json as { paths?: string[] }
        return [
          '/api',
          '/api/v1',
          '/apis',
          '/healthz',
          '/livez',
          '/readyz',
          '/healthz/ping',
          '/livez/ping',
          '/readyz/ping',
          '/metrics',
          '/openapi/v2',
          '/openapi/v3',
          '/version',
          ...groups.flatMap((group) => [`/apis/${group}`, `/apis/${group}/v1`]),
        ].filter((path) => paths.includes(path))
      },
    },
  ],
}
