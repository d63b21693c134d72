import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { TlsMaterial } from '../http/index.ts'
import { rawHeaderValues } from '../http/index.ts'

/** One request as the fake API server saw it. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: string
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** What the fake cluster has and grants. */
export interface FakeCluster {
  readonly services: readonly object[]
  readonly namespaces: readonly string[]
  /** Rules of a namespace, as a SelfSubjectRulesReview tells them. */
  readonly rules: Readonly<Record<string, readonly object[]>>
  /** Whether the user may proxy every service. */
  readonly mayProxyAll: boolean
  /** Whether services and namespaces may be listed over the whole cluster. */
  readonly mayListAll: boolean
}

const emptyCluster: FakeCluster = {
  services: [],
  namespaces: [],
  rules: {},
  mayProxyAll: true,
  mayListAll: true,
}

/** An API server that answers like one where a proxy can tell, and remembers what it was asked. */
export class FakeApiServer {
  readonly seen: SeenRequest[] = []
  readonly upgraded: Duplex[] = []
  /** TCP connections so far. */
  connections = 0
  cluster: FakeCluster = emptyCluster
  /** Answers of a test's own, by path without query. */
  readonly answers = new Map<string, Answer>()
  /** Answers what is at a path of a proxied application and has no answer of its own. */
  fallback: Answer | undefined
  /** Answers to a request for another protocol, by path without query, as they go over the wire. */
  readonly upgradeAnswers = new Map<string, string>()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(material: TlsMaterial) {
    this.#server = createServer({ cert: material.certPem, key: material.keyPem.reveal() })
    this.#server.on('connection', (socket: Socket) => {
      this.connections++
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('request', (request, response) => void this.#answer(request, response))
    this.#server.on('upgrade', (request, socket, head) => {
      this.#remember(request, '')
      this.#upgrade(request, socket, head)
    })
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const { port } = this.#server.address() as AddressInfo
    return `https://127.0.0.1:${port}`
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  /** TCP connections that are open. */
  get open(): number {
    return this.#sockets.size
  }

  /** The last request but those of the friendly page. */
  get last(): SeenRequest {
    const last = this.seen.at(-1)
    if (!last) throw new Error('nothing was asked')
    return last
  }

  #remember(request: IncomingMessage, body: string): void {
    const { method = '', url = '', rawHeaders } = request
    this.seen.push({ method, url, rawHeaders, body })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').replace(/\?.*/, '')
    const special = this.answers.get(path) ?? (/\/proxy\b/.test(path) ? this.fallback : undefined)
    if (special) {
      this.#remember(request, '')
      special(request, response)
      return
    }
    const body = String(await buffer(request).catch(() => ''))
    this.#remember(request, body)
    const [status, object] = this.#clusterAnswer(path, body) ?? [200, this.last]
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(object))
  }

  #clusterAnswer(path: string, body: string): [number, object] | undefined {
    if (path === '/') return [200, { paths: ['/api', '/apis'] }]
    if (path.startsWith('/apis/auth')) return [201, this.#review(path, JSON.parse(body))]
    const list = /^\/api\/v1\/(?:namespaces\/([^/]+)\/)?(services|namespaces)$/.exec(path)
    if (list) return this.#list(list[2] ?? '', list[1])
    const one = /^\/api\/v1\/namespaces\/([^/]+)\/services\/([^/]+)$/.exec(path)
    if (!one) return undefined
    const found = this.#servicesOf(one[1]).find(
      (service) => (service as { metadata: { name: string } }).metadata.name === one[2],
    )
    return found ? [200, found] : [404, { kind: 'Status', code: 404 }]
  }

  #servicesOf(namespace: string | undefined): object[] {
    return this.cluster.services.filter(
      (service) =>
        namespace === undefined ||
        (service as { metadata: { namespace: string } }).metadata.namespace === namespace,
    )
  }

  #list(resource: string, namespace: string | undefined): [number, object] {
    const { mayListAll, namespaces } = this.cluster
    if (!mayListAll && namespace === undefined) return [403, { kind: 'Status', code: 403 }]
    const items =
      resource === 'services'
        ? this.#servicesOf(namespace)
        : namespaces.map((name) => ({ metadata: { name } }))
    return [200, { kind: 'List', items }]
  }

  #review(path: string, asked: { spec?: { namespace?: string } }): object {
    if (path.endsWith('/selfsubjectreviews'))
      return { status: { userInfo: { username: 'jane', groups: ['dev'] } } }
    if (path.endsWith('/selfsubjectaccessreviews'))
      return { status: { allowed: this.cluster.mayProxyAll } }
    const rules = this.cluster.rules[asked.spec?.namespace ?? ''] ?? []
    return { status: { resourceRules: rules, nonResourceRules: [], incomplete: false } }
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.upgraded.push(socket)
    socket.on('error', () => {})
    const protocol = request.headers.upgrade ?? ''
    const answer = this.upgradeAnswers.get((request.url ?? '').replace(/\?.*/, ''))
    if (answer !== undefined) {
      socket.end(answer)
      return
    }
    const key = rawHeaderValues(request.rawHeaders, 'sec-websocket-key')[0]
    const accept = key === undefined ? [] : [`Sec-WebSocket-Accept: ${acceptOf(key)}`]
    socket.write(
      ['HTTP/1.1 101 Switching Protocols', `Upgrade: ${protocol}`, 'Connection: Upgrade', ...accept]
        .join('\r\n')
        .concat('\r\n\r\n'),
    )
    if (head.length > 0) socket.write(head)
    socket.pipe(socket)
  }
}

const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
