import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Secret } from '../../core/index.ts'
import { discoveryPath, entityTagOf, isKnownByClient, jwksPath } from '../documents/documents.ts'
import { maxDocumentConnections } from '../limits.ts'
import type { PublicDocument, PublicDocuments } from './public-documents.ts'

/** A certificate with its key. */
export interface ListenerCertificate {
  readonly certPem: string
  readonly keyPem: Secret
}

/** Where to listen; without a certificate, a proxy in front must terminate TLS. */
export interface ListenerOptions {
  readonly address: string
  readonly port: number
  readonly tls?: ListenerCertificate
}

const limits = { headersTimeout: 10_000, requestTimeout: 10_000, keepAliveTimeout: 60_000 }

/** Serves the two documents, without authentication, and nothing else. */
export class DocumentServer {
  readonly #server: Server | TlsServer
  readonly #options: ListenerOptions
  #served: ReadonlyMap<string, ServedDocument>

  constructor(documents: PublicDocuments, options: ListenerOptions) {
    this.#served = servedBy(documents)
    this.#options = options
    const { tls } = options
    this.#server = tls
      ? createTlsServer({ ...contextOf(tls), ...limits }, this.#respond)
      : createServer(limits, this.#respond)
    this.#server.maxConnections = maxDocumentConnections
  }

  /** Replaces the documents. */
  update(documents: PublicDocuments): void {
    this.#served = servedBy(documents)
  }

  /** Replaces the certificate. */
  useCertificate(certificate: ListenerCertificate): void {
    if ('setSecureContext' in this.#server) this.#server.setSecureContext(contextOf(certificate))
  }

  /** Opens the port; returns the URL. */
  async listen(): Promise<string> {
    const { address, port, tls } = this.#options
    this.#server.listen(port, address)
    await once(this.#server, 'listening')
    const bound = this.#server.address() as AddressInfo
    const host = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address
    return `${tls ? 'https' : 'http'}://${host}:${bound.port}`
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeIdleConnections()
    await closed
  }

  readonly #respond: RequestListener = (request, response) => {
    response.setHeader('X-Content-Type-Options', 'nosniff')
    const document = this.#find(request.url ?? '')
    if (!document) {
      response.writeHead(404).end()
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.writeHead(405, { Allow: 'GET, HEAD' }).end()
      return
    }
    const { body, contentType, cacheControl, tag } = document
    response.setHeader('Cache-Control', cacheControl)
    response.setHeader('ETag', tag)
    // Browsers verify tokens too, and the documents are public.
    response.setHeader('Access-Control-Allow-Origin', '*')
    if (isKnownByClient(request.headers['if-none-match'], tag)) {
      response.writeHead(304).end()
      return
    }
    response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': body.length })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  #find(url: string): ServedDocument | undefined {
    return this.#served.get(url.replace(/\?.*$/, '').replace(/\/$/, ''))
  }
}

/** A document with its entity tag, which is computed once. */
interface ServedDocument extends PublicDocument {
  readonly tag: string
}

/** The documents by path: the paths of an API server, and those below the issuer. */
function servedBy(documents: PublicDocuments): ReadonlyMap<string, ServedDocument> {
  const below = pathOf(documents.issuer)
  const keysAt = [jwksPath, `${below}${jwksPath}`, pathOf(documents.jwksUri) || jwksPath]
  const discoveryAt = [discoveryPath, `${below}${discoveryPath}`]
  const tagged = (document: PublicDocument): ServedDocument => ({
    ...document,
    tag: entityTagOf(document.body),
  })
  const [discovery, jwks] = [tagged(documents.discovery), tagged(documents.jwks)]
  return new Map([
    ...keysAt.map((path) => [path, jwks] as const),
    ...discoveryAt.map((path) => [path, discovery] as const),
  ])
}

const pathOf = (url: string): string =>
  URL.canParse(url) ? new URL(url).pathname.replace(/\/$/, '') : ''

const contextOf = ({ certPem, keyPem }: ListenerCertificate) => ({
  cert: certPem,
  key: keyPem.reveal(),
})
