import { createHash } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Clock, type Dialer, withinTime } from '../../core/index.ts'
import { Http1Upstream, type Upstream } from '../../http/upstream/index.ts'
import { authorityOf, type ProxyBackend } from './target.ts'

/** For the connection and its handshake together. */
const maxOpenMs = 20_000
const maxConnectionsPerBackend = 2_048
const maxBackends = 1_024

/** Connections to backends, kept for the next request to the same vetted address. */
export class BackendUpstreams {
  readonly #dialer: Dialer
  readonly #clock: Clock
  /** The one used last is the last one. */
  readonly #upstreams = new Map<string, Upstream>()

  constructor(dialer: Dialer, clock: Clock) {
    this.#dialer = dialer
    this.#clock = clock
  }

  upstreamFor(backend: ProxyBackend): Upstream {
    const key = keyOf(backend)
    const known = this.#upstreams.get(key) ?? this.#create(backend)
    this.#upstreams.delete(key)
    this.#upstreams.set(key, known)
    if (this.#upstreams.size > maxBackends) this.#dropOldest()
    return known
  }

  close(): void {
    for (const upstream of this.#upstreams.values()) upstream.close()
    this.#upstreams.clear()
  }

  #create(backend: ProxyBackend): Upstream {
    const open = (signal: AbortSignal): Promise<Duplex> =>
      withinTime(maxOpenMs, signal, (within) => this.#open(backend, within))
    return new Http1Upstream(open, this.#clock, maxConnectionsPerBackend)
  }

  async #open(backend: ProxyBackend, signal: AbortSignal): Promise<Duplex> {
    const connection = await this.#dialer.dial(backend, signal)
    if (backend.scheme === 'http') return connection
    try {
      return await secured(connection, backend, signal)
    } catch (error) {
      connection.destroy()
      throw error
    }
  }

  #dropOldest(): void {
    const [oldest] = this.#upstreams
    if (!oldest) return
    const [key, upstream] = oldest
    upstream.close()
    this.#upstreams.delete(key)
  }
}

function keyOf(backend: ProxyBackend): string {
  const { scheme, trust } = backend
  const trusted = trust && createHash('sha256').update(trust.caPem).digest('base64')
  return [scheme, authorityOf(backend), trusted, trust?.serverName].join(' ')
}

function secured(
  connection: Duplex,
  { trust }: ProxyBackend,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const socket = connectTls({
    socket: connection,
    ALPNProtocols: ['http/1.1'],
    // Kubernetes verifies no backend; a Service that names a CA is verified.
    rejectUnauthorized: trust !== undefined,
    ...(trust && { ca: trust.caPem, servername: trust.serverName }),
  })
  // Whoever uses it listens too; between two users nobody would, and an error would end the process.
  for (const each of [connection, socket]) each.on('error', () => {})
  return new Promise((resolve, reject) => {
    const end = (cause: unknown): void => {
      socket.destroy()
      reject(cause instanceof Error ? cause : new Error('the TLS handshake failed', { cause }))
    }
    const abort = (): void => end(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', end)
      resolve(socket)
    })
    socket
      .once('error', end)
      .once('close', () => end(new Error('the backend closed the connection')))
  })
}
