import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { ApiError } from '../../core/index.ts'
import { acceptedTypes, type MediaRange } from '../../http/index.ts'
import { type ApiGroupVersion, type ApiParts, apiModel } from './api-model.ts'
import {
  aggregatedDocument,
  aggregatedVersions,
  apiVersionsDocument,
  groupDocument,
  groupListDocument,
  groupNames,
  resourceListDocument,
} from './discovery.ts'
import { openapiDocument, rootPathOf } from './openapi.ts'
import { type DescribedPath, type OpenapiDocument, openapiOfPath } from './openapi-types.ts'
import { swaggerDocument } from './openapi-v2.ts'
import { encodeSwagger } from './openapi-v2-protobuf.ts'

/** Below this size compression costs more than it saves. */
const gzipFrom = 1400

/** A document that is built when first asked for and kept as bytes. */
class CachedDocument {
  readonly #build: () => Buffer
  #bytes: Buffer | undefined
  #gzipped: Buffer | undefined
  #hash: string | undefined

  constructor(build: () => Buffer) {
    this.#build = build
  }

  /** A document whose bytes are JSON. */
  static json(build: () => unknown): CachedDocument {
    return new CachedDocument(() => Buffer.from(JSON.stringify(build())))
  }

  get bytes(): Buffer {
    this.#bytes ??= this.#build()
    return this.#bytes
  }

  /** The bytes compressed, or undefined for a document that is too small for it. */
  get gzipped(): Buffer | undefined {
    if (this.bytes.length < gzipFrom) return undefined
    this.#gzipped ??= gzipSync(this.bytes)
    return this.#gzipped
  }

  /** Changes exactly when the document does. */
  get hash(): string {
    this.#hash ??= createHash('sha256').update(this.bytes).digest('hex').toUpperCase()
    return this.#hash
  }
}

/** The forms in which one path can be had. */
export type DocumentForms = Readonly<Partial<Record<DocumentForm, CachedDocument>>>

/** Plain JSON, a version of aggregated discovery, or the protobuf form of OpenAPI v2. */
type DocumentForm = 'plain' | (typeof aggregatedVersions)[number] | 'protobuf'

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
function documentSet(parts: ApiParts, server: ServerFacts): Map<string, DocumentForms> {
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

/** What a request for a document says. */
export interface DocumentRequest {
  /** The path without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly accept: string | undefined
  readonly acceptEncoding?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

/** A document as an HTTP answer. */
export interface DocumentAnswer {
  readonly status: 200 | 301 | 304
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

interface ChosenForm {
  readonly document: CachedDocument
  readonly contentType: string
}

/** Kubernetes answers with the first name; the second is no media type by RFC 9110, and what kubectl asks for. */
const protobufTypes = [
  'com.github.proto-openapi.spec.v2.v1.0+protobuf',
  'com.github.proto-openapi.spec.v2@v1.0+protobuf',
] as const

const nothing = Buffer.alloc(0)
const oneYear = 'public, max-age=31536000, immutable'

function formWanted({ type, subtype, params }: MediaRange): DocumentForm | undefined {
  const application = type === 'application'
  if (application && protobufTypes.some((name) => name === subtype)) return 'protobuf'
  if (type !== '*' && !(application && ['*', 'json'].includes(subtype))) return undefined
  if (params['as'] === undefined) return 'plain'
  if (params['as'] !== 'APIGroupDiscoveryList' || params['g'] !== 'apidiscovery.k8s.io')
    return undefined
  const version = params['v']
  return version === 'v2' || version === 'v2beta1' ? version : undefined
}

function contentTypeOf(form: DocumentForm): string {
  if (form === 'plain') return 'application/json'
  if (form === 'protobuf') return `application/${protobufTypes[0]}`
  return `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`
}

function chooseForm(forms: DocumentForms, accept: string | undefined): ChosenForm {
  for (const range of acceptedTypes(accept)) {
    const form = formWanted(range)
    const document = form && forms[form]
    if (form && document) return { document, contentType: contentTypeOf(form) }
  }
  const known = (['plain', 'protobuf'] as const).filter((form) => forms[form]).map(contentTypeOf)
  throw new ApiError(
    'NotAcceptable',
    `only the following media types are accepted: ${known.join(', ')}`,
  )
}

const accepts = (header: string | undefined, etag: string): boolean =>
  header !== undefined &&
  header.split(',').some((known) => ['*', etag, `W/${etag}`].includes(known.trim()))

/** The documents that describe the API: discovery in both its forms, OpenAPI v2 and v3. */
export class ApiDocuments {
  readonly #set: ReadonlyMap<string, DocumentForms>

  constructor(parts: ApiParts, server: ServerFacts) {
    this.#set = documentSet(parts, server)
  }

  /** Where the documents are. */
  get paths(): string[] {
    return [...this.#set.keys()]
  }

  /** The document at a path, or undefined when there is none; throws a 406 for an unknown form. */
  answer(request: DocumentRequest): DocumentAnswer | undefined {
    const path = request.path.replace(/(?<=.)\/$/, '')
    const forms = this.#set.get(path)
    if (forms === undefined) return undefined
    const { document, contentType } = chooseForm(forms, request.accept)
    const hash = path.startsWith('/openapi/v3/') ? request.query.get('hash') : null
    // A client that has read an older index is sent to the document of today.
    if (hash !== null && hash !== document.hash)
      return { status: 301, headers: { Location: `${path}?hash=${document.hash}` }, body: nothing }
    const etag = `"${document.hash}"`
    const headers = {
      ETag: etag,
      Vary: 'Accept, Accept-Encoding',
      'Cache-Control': hash === null ? 'no-cache, private' : oneYear,
    }
    if (accepts(request.ifNoneMatch, etag)) return { status: 304, headers, body: nothing }
    return withBody(document, request, { ...headers, 'Content-Type': contentType })
  }
}

function withBody(
  document: CachedDocument,
  { acceptEncoding = '' }: DocumentRequest,
  headers: Readonly<Record<string, string>>,
): DocumentAnswer {
  const gzipped = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(acceptEncoding)
    ? document.gzipped
    : undefined
  return {
    status: 200,
    headers: gzipped === undefined ? headers : { ...headers, 'Content-Encoding': 'gzip' },
    body: gzipped ?? document.bytes,
  }
}
