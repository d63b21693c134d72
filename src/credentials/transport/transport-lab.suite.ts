import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket, TlsOptions } from 'node:tls'
import { Secret } from '../../core/index.ts'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../pki/index.ts'
import type { ClientCertificate, Credential, CredentialSource, Refusal } from '../credential.ts'
import { createTransport } from './authenticated-request.ts'
import { Connections, type ConnectionsOptions } from './connections.ts'
import type { Transport, TransportRequest, TrustSource } from './types.ts'

const hourMs = 3_600_000

/** Authorities that stay the same until a test changes them. */
export class FakeTrust implements TrustSource {
  #pem: string
  readonly #listeners = new Set<() => void>()

  constructor(pem: string) {
    this.#pem = pem
  }

  current(): Promise<string> {
    return Promise.resolve(this.#pem)
  }

  change(pem: string): void {
    this.#pem = pem
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  dispose(): void {
    this.#listeners.clear()
  }
}

/** A source that hands out what a test puts into it, and keeps what it was asked. */
export class FakeSource implements CredentialSource {
  asked = 0
  readonly refusals: Refusal[] = []
  readonly #listeners = new Set<(next: Credential, previous: Credential) => void>()
  #current: Credential
  /** What a refused credential is replaced by, in order. */
  readonly #next: Credential[]

  constructor(current: Credential, ...next: Credential[]) {
    this.#current = current
    this.#next = next
  }

  get listeners(): number {
    return this.#listeners.size
  }

  current(signal?: AbortSignal): Promise<Credential> {
    this.asked++
    signal?.throwIfAborted()
    return Promise.resolve(this.#current)
  }

  renew(used: Credential, refusal: Refusal): Promise<Credential | undefined> {
    this.refusals.push(refusal)
    if (used !== this.#current) return Promise.resolve(this.#current)
    const next = this.#next.shift()
    if (next) this.rotate(next)
    return Promise.resolve(next)
  }

  rotate(next: Credential): void {
    const previous = this.#current
    this.#current = next
    for (const listener of this.#listeners) listener(next, previous)
  }

  onRotate(listener: (next: Credential, previous: Credential) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  dispose(): void {
    this.#listeners.clear()
  }
}

/** A credential that is nothing but a token. */
export const tokenCredential = (token: string): Credential => ({ token: new Secret(token) })

/** What a server knows of the one who asks. */
export interface Seen {
  readonly commonName: string | undefined
  readonly sessionReused: boolean
  readonly authorization: string | undefined
}

/** Reads who sent a request, by its connection and its headers. */
export function seenIn(request: IncomingMessage): Seen {
  const socket = request.socket as TLSSocket
  return {
    commonName: socket.getPeerX509Certificate()?.subject.replace('CN=', ''),
    sessionReused: socket.isSessionReused(),
    authorization: request.headers.authorization,
  }
}

/** A server that counts its connections. */
export interface LabServer {
  readonly url: string
  readonly port: number
  readonly server: Http2SecureServer
  /** Open connections. */
  readonly sockets: Set<Socket>
  /** All that there ever were. */
  connections(): number
  /** Cuts everything and is gone. */
  stop(): Promise<void>
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown
type OnUpgrade = (request: IncomingMessage, socket: Duplex) => void

/** How a server of a test differs from the usual one. */
export interface ServeOptions extends TlsOptions {
  readonly http1Only?: boolean
  readonly onUpgrade?: OnUpgrade
  readonly port?: number
}

/** Servers, transports and certificates of one test file. */
export class TransportLab {
  readonly ca: CertificateAuthority
  readonly #serving: { readonly cert: string; readonly key: string }
  readonly #servers: LabServer[] = []
  readonly #owned: { destroy(): void }[] = []

  private constructor(
    ca: CertificateAuthority,
    serving: { readonly cert: string; readonly key: string },
  ) {
    this.ca = ca
    this.#serving = serving
  }

  static async open(): Promise<TransportLab> {
    const ca = await authority()
    const { certPem, keyPem } = await issue(ca, 'server', 'server auth')
    return new TransportLab(ca, { cert: certPem, key: keyPem.reveal() })
  }

  get caPem(): string {
    return this.ca.bundlePem
  }

  trust(): FakeTrust {
    return new FakeTrust(this.caPem)
  }

  certificate(commonName: string): Promise<ClientCertificate> {
    return issue(this.ca, commonName, 'client auth')
  }

  /** A serving certificate for this machine. */
  serving(): Promise<ClientCertificate> {
    return issue(this.ca, 'server', 'server auth')
  }

  async serve(answer: Answer, options: ServeOptions = {}): Promise<LabServer> {
    const { http1Only, onUpgrade, port = 0, ...tls } = options
    const server = createSecureServer(
      {
        ...this.#serving,
        ca: this.caPem,
        requestCert: true,
        rejectUnauthorized: false,
        allowHTTP1: true,
        maxSessionMemory: 1_000,
        ...(http1Only && { ALPNProtocols: ['http/1.1'] }),
        ...tls,
      },
      answer as never,
    )
    // Allowing HTTP/1.1 leaves this unset, and clients are then told that no connection is kept.
    Object.assign(server, { keepAliveTimeout: 60_000 })
    if (onUpgrade) server.on('upgrade', onUpgrade)
    const made = await listening(server, port)
    this.#servers.push(made)
    return made
  }

  /** Options for a server of this lab. */
  options(server: LabServer, rest: Partial<ConnectionsOptions> = {}): ConnectionsOptions {
    return { servers: server.url, tls: { trust: this.trust() }, ...rest }
  }

  connect(server: LabServer, rest: Partial<ConnectionsOptions> = {}): Connections {
    const connections = new Connections(this.options(server, rest))
    this.#owned.push(connections)
    return connections
  }

  transport(server: LabServer, rest: Partial<ConnectionsOptions> = {}): Transport {
    return createTransport(this.connect(server, rest))
  }

  /** Destroyed with the lab's own connections. */
  own(something: { destroy(): void }): void {
    this.#owned.push(something)
  }

  async clear(): Promise<void> {
    for (const each of this.#owned.splice(0)) each.destroy()
    for (const server of this.#servers.splice(0)) await server.stop()
  }
}

async function listening(server: Http2SecureServer, port: number): Promise<LabServer> {
  let count = 0
  const sockets = new Set<Socket>()
  server.on('secureConnection', (socket: TLSSocket) => {
    count++
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  })
  server.on('sessionError', () => {})
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `https://127.0.0.1:${bound}`,
    port: bound,
    server,
    sockets,
    connections: () => count,
    stop: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function authority(): Promise<CertificateAuthority> {
  const key = await generateEcKey()
  const order = { commonName: 'ca', key, now: Date.now(), lifetimeMs: hourMs }
  const { certificate, certPem } = await issueAuthorityCertificate(order)
  return { name: 'ca', certificate, bundlePem: certPem, key }
}

async function issue(
  ca: CertificateAuthority,
  commonName: string,
  usage: 'client auth' | 'server auth',
): Promise<ClientCertificate> {
  const made = await issueKeyAndCertificate({
    ca,
    subject: { commonName },
    usages: [usage],
    ...(usage === 'server auth' && { sans: ['127.0.0.1', '::1', 'localhost', 'kubernetes'] }),
    now: Date.now(),
    lifetimeMs: hourMs,
  })
  return { certPem: made.certPem, keyPem: privateKeyPem(made.key) }
}

/** A GET without headers. */
export function get(path: string, signal?: AbortSignal): TransportRequest {
  return { method: 'GET', path, headers: {}, signal: signal ?? new AbortController().signal }
}

/** The text of a body, to its end. */
export async function textOf(body: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of body) text += String(chunk)
  return text
}

/** The JSON that a server answers to a GET. */
export async function ask<T>(transport: Transport, path = '/'): Promise<T> {
  const { body } = await transport.send(get(path))
  return JSON.parse(await textOf(body)) as T
}

/** Tells a client who it is in the server's eyes. */
export const whoAmI = (request: IncomingMessage, response: ServerResponse): void =>
  void response.end(JSON.stringify(seenIn(request)))
