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
}

/** Where the OpenAPI document of a group and version is. */
const openapiPathOf = (groupVersion: ApiGroupVersion): string =>
  `/openapi/v3${rootPathOf(groupVersion)}`

function aggregatedForms(api: readonly ApiGroupVersion[], root: '/api' | '/apis'): DocumentForms {
  const forms = aggregatedVersions.map((version) => [
    version,
    new CachedDocument(() => aggregatedDocument(api, root, version)),
  ])
  return Object.fromEntries(forms)
}

function openapiIndex(documents: readonly (readonly [ApiGroupVersion, CachedDocument])[]) {
  const paths = documents.map(([groupVersion, document]) => [
    rootPathOf(groupVersion).slice(1),
    { serverRelativeURL: `${openapiPathOf(groupVersion)}?hash=${document.hash}` },
  ])
  return { paths: Object.fromEntries(paths) }
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
  const openapi = api.map(
    (groupVersion) =>
      [
        groupVersion,
        new CachedDocument(() => openapiDocument(groupVersion, server.version)),
      ] as const,
  )
  for (const [groupVersion, document] of openapi)
    set.set(openapiPathOf(groupVersion), { plain: document })
  plain('/openapi/v3', () => openapiIndex(openapi))
  return set
}
