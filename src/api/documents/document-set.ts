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

/** The forms in which one path can be had, by the version of the aggregated form or `plain`. */
export type DocumentForms = Readonly<Partial<Record<DocumentForm, CachedDocument>>>

/** Plain JSON, or a version of aggregated discovery. */
export type DocumentForm = 'plain' | (typeof aggregatedVersions)[number]

/** What the documents say about the server itself. */
export interface ServerFacts {
  /** `host:port` that clients inside the cluster should use. */
  readonly address: string
  /** The version that the OpenAPI documents name, for example `v1.36.3`. */
  readonly version: string
  /** Paths beside the resources that OpenAPI knows. */
  readonly paths?: readonly DescribedPath[]
}

/** An OpenAPI document with the path that it is about. */
type OpenapiDocument = readonly [string, CachedDocument]

/** Where the OpenAPI document of a path is. */
const openapiPathOf = (about: string): string => `/openapi/v3${about}`

function aggregatedForms(api: readonly ApiGroupVersion[], root: '/api' | '/apis'): DocumentForms {
  const forms = aggregatedVersions.map((version) => [
    version,
    new CachedDocument(() => aggregatedDocument(api, root, version)),
  ])
  return Object.fromEntries(forms)
}

function openapiIndex(documents: readonly OpenapiDocument[]) {
  const paths = documents.map(([about, document]) => [
    about.slice(1),
    { serverRelativeURL: `${openapiPathOf(about)}?hash=${document.hash}` },
  ])
  return { paths: Object.fromEntries(paths) }
}

function openapiDocuments(
  api: readonly ApiGroupVersion[],
  { version, paths = [] }: ServerFacts,
): OpenapiDocument[] {
  return [
    ...api.map((groupVersion): OpenapiDocument => {
      const build = () => openapiDocument(groupVersion, version)
      return [rootPathOf(groupVersion), new CachedDocument(build)]
    }),
    ...paths.map((described): OpenapiDocument => {
      const build = () => openapiOfPath(described, version)
      return [described.path, new CachedDocument(build)]
    }),
  ]
}

/** Every discovery and OpenAPI document by its path. */
export function documentSet(parts: ApiParts, server: ServerFacts): Map<string, DocumentForms> {
  const api = apiModel(parts)
  const set = new Map<string, DocumentForms>()
  const plain = (path: string, build: () => unknown, others: DocumentForms = {}) =>
    set.set(path, { ...others, plain: new CachedDocument(build) })
  plain('/api', () => apiVersionsDocument(api, server.address), aggregatedForms(api, '/api'))
  plain('/apis', () => groupListDocument(api), aggregatedForms(api, '/apis'))
  for (const group of groupNames(api)) plain(`/apis/${group}`, () => groupDocument(api, group))
  for (const groupVersion of api)
    plain(rootPathOf(groupVersion), () => resourceListDocument(groupVersion))
  const openapi = openapiDocuments(api, server)
  for (const [about, document] of openapi) set.set(openapiPathOf(about), { plain: document })
  plain('/openapi/v3', () => openapiIndex(openapi))
  return set
}
