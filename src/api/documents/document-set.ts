import { aggregatedDocument, aggregatedVersions } from './aggregated-discovery.ts'
import { type ApiGroupVersion, type ApiParts, apiModel } from './api-model.ts'
import { CachedDocument } from './cached-document.ts'
import {
  apiVersionsDocument,
  groupDocument,
  groupListDocument,
  groupNames,
  resourceListDocument,
} from './legacy-discovery.ts'
import { openapiDocument } from './openapi-document.ts'
import { rootPathOf } from './openapi-paths.ts'
import { type DescribedPath, openapiOfPath } from './openapi-plain-path.ts'
import type { OpenapiDocument } from './openapi-types.ts'
import { encodeSwagger } from './openapi-v2/encode-swagger.ts'
import { swaggerDocument } from './openapi-v2/swagger-document.ts'

/** The forms in which one path can be had. */
export type DocumentForms = Readonly<Partial<Record<DocumentForm, CachedDocument>>>

/** Plain JSON, a version of aggregated discovery, or the protobuf form of OpenAPI v2. */
export type DocumentForm = 'plain' | (typeof aggregatedVersions)[number] | 'protobuf'

/** What the documents say about the server itself. */
export interface ServerFacts {
  /** `host:port` that clients inside the cluster should use. */
  readonly address: string
  /** The version that the OpenAPI documents name, for example `v1.36.3`. */
  readonly version: string
  /** Paths beside the resources that OpenAPI knows. */
  readonly paths?: readonly DescribedPath[]
}

/** An OpenAPI v3 document and the path that it is about. */
interface AboutPath {
  readonly about: string
  readonly build: () => OpenapiDocument
}

/** Where the OpenAPI document of a path is. */
const openapiPathOf = (about: string): string => `/openapi/v3${about}`

function aggregatedForms(api: readonly ApiGroupVersion[], root: '/api' | '/apis'): DocumentForms {
  const forms = aggregatedVersions.map((version) => [
    version,
    CachedDocument.json(() => aggregatedDocument(api, root, version)),
  ])
  return Object.fromEntries(forms)
}

function openapiIndex(documents: ReadonlyMap<string, CachedDocument>) {
  const paths = [...documents].map(([about, document]) => [
    about.slice(1),
    { serverRelativeURL: `${openapiPathOf(about)}?hash=${document.hash}` },
  ])
  return { paths: Object.fromEntries(paths) }
}

const openapiDocuments = (
  api: readonly ApiGroupVersion[],
  { version, paths = [] }: ServerFacts,
): AboutPath[] => [
  ...api.map((groupVersion) => ({
    about: rootPathOf(groupVersion),
    build: () => openapiDocument(groupVersion, version),
  })),
  ...paths.map((described) => ({
    about: described.path,
    build: () => openapiOfPath(described, version),
  })),
]

/** OpenAPI v2 says in one document what v3 says in many. */
function openapiV2Forms(documents: readonly AboutPath[], version: string): DocumentForms {
  const build = () =>
    swaggerDocument(
      documents.map((document) => document.build()),
      version,
    )
  return {
    plain: CachedDocument.json(build),
    protobuf: new CachedDocument(() => encodeSwagger(build())),
  }
}

/** Every discovery and OpenAPI document by its path. */
export function documentSet(parts: ApiParts, server: ServerFacts): Map<string, DocumentForms> {
  const api = apiModel(parts)
  const set = new Map<string, DocumentForms>()
  const plain = (path: string, build: () => unknown, others: DocumentForms = {}) =>
    set.set(path, { ...others, plain: CachedDocument.json(build) })
  plain('/api', () => apiVersionsDocument(api, server.address), aggregatedForms(api, '/api'))
  plain('/apis', () => groupListDocument(api), aggregatedForms(api, '/apis'))
  for (const group of groupNames(api)) plain(`/apis/${group}`, () => groupDocument(api, group))
  for (const groupVersion of api)
    plain(rootPathOf(groupVersion), () => resourceListDocument(groupVersion))
  const described = openapiDocuments(api, server)
  const openapi = new Map(
    described.map(({ about, build }) => [about, CachedDocument.json(build)] as const),
  )
  for (const [about, document] of openapi) set.set(openapiPathOf(about), { plain: document })
  plain('/openapi/v3', () => openapiIndex(openapi))
  set.set('/openapi/v2', openapiV2Forms(described, server.version))
  return set
}
