import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { silentLogger } from '../core/index.ts'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../pki/index.ts'
import type { TlsMaterial } from './tls-server.ts'
import {
  createTlsServer,
  type RequestHandler,
  type TlsServer,
  type TlsServerOptions,
} from './tls-server.ts'

const hourMs = 3_600_000

/** A CA, made for one test file. */
export async function labAuthority(name = 'ca'): Promise<CertificateAuthority> {
  const key = await generateEcKey()
  const order = { commonName: name, key, now: Date.now(), lifetimeMs: hourMs }
  const { certificate, certPem } = await issueAuthorityCertificate(order)
  return { name, certificate, bundlePem: certPem, key }
}

/** A serving certificate for this machine, with the CA as the one of the clients. */
export async function labMaterial(ca: CertificateAuthority, name = 'server'): Promise<TlsMaterial> {
  const made = await issueKeyAndCertificate({
    ca,
    subject: { commonName: name },
    usages: ['server auth'],
    sans: ['127.0.0.1', '::1', 'localhost'],
    now: Date.now(),
    lifetimeMs: hourMs,
  })
  return { certPem: made.certPem, keyPem: privateKeyPem(made.key), clientCaPem: ca.bundlePem }
}

/** A client certificate with its key, as TLS options. */
export async function labClient(
  ca: CertificateAuthority,
  commonName: string,
): Promise<{ readonly cert: string; readonly key: string }> {
  const made = await issueKeyAndCertificate({
    ca,
    subject: { commonName, organizations: ['dev'] },
    usages: ['client auth'],
    now: Date.now(),
    lifetimeMs: hourMs,
  })
  return { cert: made.certPem, key: privateKeyPem(made.key).reveal() }
}

/** Servers and clients of one test, closed together. */
export class TlsLab {
  readonly #ca: CertificateAuthority
  readonly #material: TlsMaterial
  readonly #servers: TlsServer[] = []
  readonly #sessions: ClientHttp2Session[] = []
  readonly #sockets: TLSSocket[] = []

  constructor(ca: CertificateAuthority, material: TlsMaterial) {
    this.#ca = ca
    this.#material = material
  }

  async serve(
    options: Pick<TlsServerOptions, 'onRequest'> & Partial<TlsServerOptions>,
  ): Promise<{ readonly server: TlsServer; readonly port: number }> {
    const server = createTlsServer({ material: this.#material, log: silentLogger, ...options })
    this.#servers.push(server)
    return { server, port: await server.listen([{ host: '127.0.0.1' }], 0) }
  }

  /** A connection on which a test writes what it likes. */
  async connect(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connectTls({ port, host: '127.0.0.1', ca: this.#ca.bundlePem, ...options })
    this.#sockets.push(socket)
    await once(socket, 'secureConnect')
    return socket
  }

  http2(port: number, options: ConnectionOptions = {}): ClientHttp2Session {
    const session = connectHttp2(`https://127.0.0.1:${port}`, {
      ca: this.#ca.bundlePem,
      ...options,
    })
    session.on('error', () => {})
    this.#sessions.push(session)
    return session
  }

  /** An HTTP/1.1 request and the text of its answer. */
  async fetch(
    port: number,
    options: RequestOptions & { readonly body?: string | Buffer } = {},
  ): Promise<{
    readonly status: number
    readonly text: string
    readonly response: IncomingMessage
  }> {
    const { body, ...rest } = options
    const target = { port, host: '127.0.0.1', ca: this.#ca.bundlePem, agent: false }
    const request = httpsRequest({ ...target, ...rest }).end(body)
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return { status: response.statusCode ?? 0, text: await textOf(response), response }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.splice(0)) socket.destroy()
    for (const session of this.#sessions.splice(0)) session.destroy()
    for (const server of this.#servers.splice(0)) await server.stop(AbortSignal.abort())
  }
}

/** The text of a stream, to its end. */
export async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

/** Answers with what it was asked. */
export const echo: RequestHandler = (request, response) =>
  response.end(`${request.httpVersion} ${request.url}`)

/** What is answered to a GET over HTTP/2. */
export async function get(session: ClientHttp2Session, path: string): Promise<string> {
  return textOf(session.request({ ':path': path }).setEncoding('utf8'))
}
