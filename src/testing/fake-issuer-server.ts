import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { discoveryPath, type IssuerDocuments, jwksPath } from '../issuer/documents/index.ts'

interface TlsFiles {
  readonly caPem: string
  readonly certPem: string
  readonly keyPem: string
}

const dayMs = 24 * 3_600_000

/** A certificate for this machine under a CA that lives for one test. */
async function newTlsFiles(): Promise<TlsFiles> {
  const pki = await import('../pki/index.ts')
  const key = await pki.generateEcKey()
  const lasting = { now: Date.now(), lifetimeMs: dayMs }
  const authority = await pki.issueAuthorityCertificate({ commonName: 'test CA', key, ...lasting })
  const { certificate, certPem: bundlePem } = authority
  const made = await pki.issueKeyAndCertificate({
    ca: { name: 'test CA', certificate, bundlePem, key },
    subject: { commonName: 'test issuer' },
    usages: ['server auth'],
    sans: ['127.0.0.1', 'localhost'],
    ...lasting,
  })
  const keyPem = pki.privateKeyPem(made.key).reveal()
  return { caPem: bundlePem, certPem: made.certPem, keyPem }
}

/** Serves the documents of a test issuer on a free port of this machine. */
export class TestIssuerServer {
  readonly caPem: string | undefined
  readonly requests: string[] = []
  readonly #server: Server
  readonly #path: string
  readonly #maxAgeSeconds: number
  #origin = ''
  #documents: IssuerDocuments | undefined
  #failure: number | undefined

  private constructor(tls: TlsFiles | undefined, path: string, maxAgeSeconds: number) {
    this.#path = path
    this.#maxAgeSeconds = maxAgeSeconds
    this.caPem = tls?.caPem
    this.#server = tls
      ? createTlsServer({ cert: tls.certPem, key: tls.keyPem }, this.#answer)
      : createServer(this.#answer)
  }

  static async start(
    protocol: 'http' | 'https',
    path: string,
    maxAgeSeconds: number,
  ): Promise<TestIssuerServer> {
    const tls = protocol === 'https' ? await newTlsFiles() : undefined
    const started = new TestIssuerServer(tls, path, maxAgeSeconds)
    await once(started.#server.listen(0, '127.0.0.1'), 'listening')
    const { port } = started.#server.address() as AddressInfo
    started.#origin = `${protocol}://127.0.0.1:${port}`
    return started
  }

  get issuer(): string {
    return `${this.#origin}${this.#path}`
  }

  get jwksUri(): string {
    return `${this.issuer}${jwksPath}`
  }

  show(documents: IssuerDocuments): void {
    this.#documents = documents
  }

  failWith(status: number | undefined): void {
    this.#failure = status
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  readonly #answer: RequestListener = (request, response) => {
    const { url = '' } = request
    this.requests.push(url)
    const found = this.#find(url)
    if (this.#failure !== undefined || !found) {
      response.writeHead(this.#failure ?? 404).end()
      return
    }
    response.writeHead(200, {
      'content-type': found.contentType,
      'cache-control': `public, max-age=${this.#maxAgeSeconds}`,
    })
    response.end(found.body)
  }

  #find(url: string) {
    if (url === `${this.#path}${discoveryPath}`) return this.#documents?.discovery
    return url === `${this.#path}${jwksPath}` ? this.#documents?.jwks : undefined
  }
}
