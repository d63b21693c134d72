import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { KubeObject } from '../../core/index.ts'
import { labAuthority, labMaterial } from '../../http/tls-lab.suite.ts'
import type { Cluster } from '../../kubeconfig/index.ts'
import { type CertificateAuthority, parseCsr, signCsr } from '../../pki/index.ts'

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

interface FakeStatus {
  certificate?: string
  conditions?: { type: string; reason?: string; message?: string }[]
}

/** An API that takes requests for certificates and answers them as a test wants. */
export class FakeSigner {
  readonly ca: CertificateAuthority
  readonly seen: { readonly method: string; readonly path: string; readonly bearer: string }[] = []
  readonly stored = new Map<string, KubeObject>()
  /** What becomes of a request once it is stored; it is signed at once unless changed. */
  decide: (object: KubeObject) => Promise<FakeStatus> = (object) => this.sign(object)
  /** Statuses to answer with first, one for each request. */
  troubles: number[] = []
  watchable = true
  nodes = new Map<string, object>()
  readonly #server: Server
  readonly #watchers = new Map<string, ServerResponse>()

  private constructor(ca: CertificateAuthority, server: Server) {
    this.ca = ca
    this.#server = server
  }

  static async open(): Promise<FakeSigner> {
    const ca = await labAuthority()
    const { certPem, keyPem } = await labMaterial(ca)
    const server = createServer({ cert: certPem, key: keyPem.reveal() })
    const signer = new FakeSigner(ca, server)
    server.on('request', (request, response) => void signer.#answer(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return signer
  }

  get cluster(): Cluster {
    const { port } = this.#server.address() as AddressInfo
    return {
      server: `https://127.0.0.1:${port}`,
      certificateAuthorityData: this.ca.bundlePem,
    }
  }

  /** A certificate for what a request asks for. */
  async sign(object: KubeObject, nowMs = Date.now()): Promise<FakeStatus> {
    const { request } = object['spec'] as { request: string }
    const csr = parseCsr(Buffer.from(request, 'base64').toString())
    const { certPem } = await signCsr(csr, {
      ca: this.ca,
      usages: ['client auth'],
      now: nowMs,
      lifetimeMs: 3_600_000,
    })
    return {
      certificate: Buffer.from(certPem).toString('base64'),
      conditions: [{ type: 'Approved' }],
    }
  }

  /** Changes a stored request and tells who watches it. */
  settle(name: string, status: FakeStatus): void {
    const object = this.stored.get(name)
    if (!object) throw new Error(`there is no request ${name}`)
    const resourceVersion = String(Number(object.metadata.resourceVersion) + 1)
    const next = { ...object, metadata: { ...object.metadata, resourceVersion }, status }
    this.stored.set(name, next)
    this.#watchers.get(name)?.write(`${JSON.stringify({ type: 'MODIFIED', object: next })}\n`)
  }

  /** Removes a stored request and tells who watches it. */
  remove(name: string): void {
    const object = this.stored.get(name)
    this.stored.delete(name)
    this.#watchers.get(name)?.write(`${JSON.stringify({ type: 'DELETED', object })}\n`)
  }

  /** Cuts every connection. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  async close(): Promise<void> {
    this.cut()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'https://x')
    const bearer = request.headers.authorization ?? ''
    this.seen.push({ method: request.method ?? '', path: url.pathname, bearer })
    const trouble = this.troubles.shift()
    if (trouble !== undefined) return send(response, trouble, status(trouble))
    if (url.pathname.startsWith('/api/v1/nodes/')) {
      const name = url.pathname.split('/').at(-1) ?? ''
      const node = this.nodes.get(name)
      return send(response, node ? 200 : 404, node ?? status(404, name))
    }
    if (request.method === 'POST') return this.#create(request, response)
    if (url.searchParams.get('watch') === 'true') return this.#watch(url, response)
    const name = url.pathname.slice(requests.length + 1)
    const found = this.stored.get(name)
    return send(response, found ? 200 : 404, found ?? status(404, name))
  }

  async #create(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const object = (await json(request)) as KubeObject
    const { name } = object.metadata
    if (this.stored.has(name))
      return send(response, 409, { ...status(409), reason: 'AlreadyExists' })
    const whole = { ...object, metadata: { ...object.metadata, resourceVersion: '1' } }
    this.stored.set(name, { ...whole, status: await this.decide(whole) })
    send(response, 201, whole)
  }

  #watch(url: URL, response: ServerResponse): void {
    if (!this.watchable) return send(response, 403, status(403))
    const name = url.searchParams.get('fieldSelector')?.replace('metadata.name=', '') ?? ''
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
    this.#watchers.set(name, response)
    // What has happened since the version that the watch begins with.
    const object = this.stored.get(name)
    if (object && object.metadata.resourceVersion === url.searchParams.get('resourceVersion'))
      return
    const event = object
      ? { type: 'MODIFIED', object }
      : { type: 'DELETED', object: { metadata: { name } } }
    response.write(`${JSON.stringify(event)}\n`)
  }
}

const status = (code: number, name?: string): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: `it is ${code}`,
  code,
  ...(code === 404 && { reason: 'NotFound', details: { name } }),
})

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
