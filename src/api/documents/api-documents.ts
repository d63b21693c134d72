import { ApiError } from '../../core/index.ts'
import { acceptedTypes, type MediaRange } from '../../http/index.ts'
import type { ApiParts } from './api-model.ts'
import type { CachedDocument } from './cached-document.ts'
import {
  type DocumentForm,
  type DocumentForms,
  documentSet,
  type ServerFacts,
} from './document-set.ts'

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
