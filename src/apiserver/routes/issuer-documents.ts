import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DescribedPath } from '../../api/index.ts'
import { ApiError, type AuthorizedRequest, notServed } from '../../core/index.ts'
import {
  discoveryPath,
  type IssuerDocument,
  type IssuerDocuments,
  type IssuerFacts,
  type IssuerKeys,
  isKnownByClient,
  jwksPath,
  renderIssuerDocuments,
} from '../../issuer/index.ts'
import type { PathRoute } from './route.ts'

/** The paths of the documents, with and without a trailing slash. */
export const issuerPaths: readonly string[] = [discoveryPath, jwksPath].flatMap((path) => [
  path,
  `${path}/`,
])

/** As Kubernetes describes them, so that clients generated from OpenAPI have the same calls. */
const descriptions: readonly DescribedPath[] = [
  {
    path: discoveryPath,
    tag: 'WellKnown',
    description: 'the OpenID configuration of the issuer of service account tokens',
    operationId: 'getServiceAccountIssuerOpenIDConfiguration',
    contentType: 'application/json',
  },
  {
    path: jwksPath,
    tag: 'openid',
    description: 'the public keys that verify service account tokens, as a JSON Web Key Set',
    operationId: 'getServiceAccountIssuerOpenIDKeyset',
    contentType: 'application/jwk-set+json',
  },
]

/** Serves the discovery document and the key set, rendered once per change of the keys. */
export class IssuerDocumentServer {
  readonly #keys: IssuerKeys
  #facts: readonly IssuerFacts[] | undefined
  #documents: IssuerDocuments | undefined
  #byHost: ReadonlyMap<string, IssuerDocuments> = new Map()

  constructor(keys: IssuerKeys) {
    this.#keys = keys
    keys.onChange(() => this.#render())
  }

  /** Serves the documents from now on: of the first issuer, and of the others to requests for their hosts. */
  serve(facts: readonly IssuerFacts[]): void {
    this.#facts = facts
    this.#render()
  }

  get routes(): PathRoute[] {
    const both = (path: string, pick: (documents: IssuerDocuments) => IssuerDocument) =>
      [path, `${path}/`].map((each) => {
        const described = descriptions.find((description) => description.path === each)
        return {
          path: each,
          listed: described !== undefined,
          ...(described && { described }),
          handle: (routed: AuthorizedRequest, response: ServerResponse) =>
            this.#respond(routed, response, pick),
        }
      })
    return [
      ...both(discoveryPath, ({ discovery }) => discovery),
      ...both(jwksPath, ({ jwks }) => jwks),
    ]
  }

  #render(): void {
    const { published } = this.#keys.current
    const shown = this.#facts ?? []
    const rendered = shown.map((facts) => renderIssuerDocuments(facts, published))
    const hosts = shown.map(({ issuer }) => new URL(issuer).host)
    this.#documents = rendered[0]
    this.#byHost = new Map(
      rendered.map((documents, index): [string, IssuerDocuments] => [
        hosts[index] ?? '',
        documents,
      ]),
    )
  }

  /** By the host that the client uses: an issuer that moved here may still be requested under its old host. */
  #documentsFor({ headers }: IncomingMessage): IssuerDocuments | undefined {
    const host = headers.host ?? headers[':authority']
    return (typeof host === 'string' && this.#byHost.get(host.toLowerCase())) || this.#documents
  }

  #respond(
    { request }: AuthorizedRequest,
    response: ServerResponse,
    pick: (documents: IssuerDocuments) => IssuerDocument,
  ): void {
    // For relying parties a 404 means that there is no issuer.
    if (!this.#facts)
      throw new ApiError('ServiceUnavailable', 'the server is starting and has no issuer yet')
    const documents = this.#documentsFor(request)
    if (!documents) throw notServed()
    this.#keys.requireFresh()
    const { body, contentType, etag } = pick(documents)
    const maxAge = this.#keys.current.maxAgeSeconds
    response.setHeader('Cache-Control', `public, max-age=${maxAge}`)
    response.setHeader('ETag', etag)
    if (isKnownByClient(request.headers['if-none-match'], etag)) {
      response.writeHead(304).end()
      return
    }
    response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': body.length })
    response.end(request.method === 'HEAD' ? undefined : body)
  }
}
