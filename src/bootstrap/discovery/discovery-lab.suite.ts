import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { kubeTime } from '../../core/index.ts'
import { labAuthority, labMaterial } from '../../http/tls-lab.suite.ts'
import { parseCompactJws } from '../../jose/index.ts'
import { type CertificateAuthority, spkiPin } from '../../pki/index.ts'
import { type BootstrapToken, parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { isDiscoveryJwt, signWithToken, verifyDiscoveryJwt } from '../tokens/signature.ts'
import { clusterInfoPath } from './verify.ts'

/** What the lab's server answers; a test bends it on its way out. */
export interface LabAnswer {
  status: number
  headers: Record<string, string | string[]>
  body: string | Buffer
}

/** A request that the server has seen. */
export interface SeenRequest {
  readonly path: string
  readonly method: string
  readonly authorization: string | undefined
  readonly serverName: string | false | undefined
}

/** The token of the lab, which is the one of the proposal. */
export const labToken: BootstrapToken = parseBootstrapToken('ae23dc.faddc87f5a5ab458')
/** The same as a text. */
export const labTokenText = 'ae23dc.faddc87f5a5ab458'

/** An https address at which nothing listens. */
export async function freeAddress(): Promise<string> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return `https://127.0.0.1:${port}`
}

/** An API server that has cluster-info and nothing else, on a real socket: as Sallyport, or as Kubernetes ships it. */
export class LabCluster {
  readonly ca: CertificateAuthority
  readonly requests: SeenRequest[] = []
  /** Every byte that a client has sent inside TLS. */
  readonly received: Buffer[] = []
  /** Whether requests signed with the token are understood, as they are by Sallyport only. */
  knowsSignedRequests = true
  anonymous = true
  signs = true
  /** Whether another token has signed the document. */
  othersSign = false
  /** When the document was made, as the server says. */
  createdAt = Date.now()
  /** Called with every answer before it is sent. */
  bend: (answer: LabAnswer, request: SeenRequest) => void = () => {}
  /** The PEM of the roots that it announces. */
  roots: string
  /** The address that it announces. */
  advertised = ''
  /** More fields of the cluster entry. */
  more = ''
  readonly #server: Server

  private constructor(ca: CertificateAuthority, server: Server) {
    this.ca = ca
    this.roots = ca.bundlePem
    this.#server = server
  }

  static async open(
    options: { readonly host?: string; readonly prefix?: string } = {},
  ): Promise<LabCluster> {
    const ca = await labAuthority()
    const { certPem, keyPem } = await labMaterial(ca)
    const server = createServer({ cert: certPem, key: keyPem.reveal() })
    const lab = new LabCluster(ca, server)
    server.on('secureConnection', (socket: Socket) => {
      socket.on('data', (bytes: Buffer) => lab.received.push(bytes))
    })
    server.on('request', (request, response) => lab.#answer(request, response))
    server.listen(0, options.host ?? '127.0.0.1')
    await once(server, 'listening')
    lab.advertised = `${lab.address}${options.prefix ?? ''}`
    return lab
  }

  /** The https URL of the server. */
  get address(): string {
    const { address, port, family } = this.#server.address() as AddressInfo
    return `https://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get pin(): string {
    return spkiPin(this.ca.certificate)
  }

  get kubeconfig(): string {
    const ca = Buffer.from(this.roots).toString('base64')
    return `apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster:\n    server: ${this.advertised}\n    certificate-authority-data: ${ca}\n${this.more}`
  }

  /** The ConfigMap as it is served. */
  get body(): string {
    const { kubeconfig } = this
    const signature = { [`jws-kubeconfig-${labToken.id}`]: signWithToken(kubeconfig, labToken) }
    return JSON.stringify({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        namespace: 'kube-public',
        name: 'cluster-info',
        resourceVersion: '7',
        creationTimestamp: kubeTime(this.createdAt),
      },
      data: {
        kubeconfig,
        ...(this.signs && signature),
        ...(this.othersSign && { 'jws-kubeconfig-other1': 'e30..x' }),
      },
    })
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const socket = request.socket as Socket & { servername?: string | false }
    const seen: SeenRequest = {
      path: request.url ?? '',
      method: request.method ?? '',
      authorization: request.headers.authorization,
      serverName: socket.servername,
    }
    this.requests.push(seen)
    const answer = this.#judge(seen)
    this.bend(answer, seen)
    response.writeHead(answer.status, answer.headers).end(answer.body)
  }

  #judge({ path, authorization }: SeenRequest): LabAnswer {
    const headers = { 'content-type': 'application/json' }
    const refusal = (status: number): LabAnswer => ({ status, headers, body: `{"code":${status}}` })
    if (!path.endsWith(clusterInfoPath)) return refusal(404)
    if (authorization === undefined)
      return this.anonymous ? { status: 200, headers, body: this.body } : refusal(401)
    if (!this.knowsSignedRequests || !isSignedWithLabToken(authorization)) return refusal(401)
    const { body } = this
    const signature = signWithToken(body, labToken)
    return { status: 200, headers: { ...headers, 'X-Kubernetes-JWS': signature }, body }
  }
}

function isSignedWithLabToken(authorization: string): boolean {
  try {
    const jws = parseCompactJws(authorization.replace(/^Bearer /, ''))
    verifyDiscoveryJwt(jws, labToken, { nowMs: Date.now(), clusterId: undefined })
    return isDiscoveryJwt(jws)
  } catch {
    return false
  }
}
