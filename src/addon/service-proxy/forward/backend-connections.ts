import { createHash } from 'node:crypto'
import type { Agent } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { type Clock, type Dialer, withinTime } from '../../../core/index.ts'
import { ConnectionPool } from '../../../http/pool/index.ts'
import { WirePool } from '../../wire/index.ts'
import { authorityOf, type ProxyBackend } from '../target.ts'

/** For the connection and its handshake together. */
const openMs = 20_000
/** For requests with a body, and as many for those without. */
const maxPerBackend = 1_024
const maxBackends = 1_024

const never = new AbortController().signal

interface KeptPools {
  readonly byClient: ConnectionPool
  readonly byWire: WirePool
  /** Closes what is idle, and lets no connection come back. */
  readonly retire: () => void
}

/** Connections to backends, kept for the next request to the same vetted address. */
export class BackendConnections {
  readonly #dialer: Dialer
  readonly #clock: Clock
  /** The one used last is the last one. */
  readonly #pools = new Map<string, KeptPools>()

  constructor(dialer: Dialer, clock: Clock) {
    this.#dialer = dialer
    this.#clock = clock
  }

  /** What Node's http client takes connections from. */
  agentFor(backend: ProxyBackend): Agent {
    // Node's client wants of its agent just what a pool has; its types want the whole class.
    return this.#poolsFor(backend).byClient as unknown as Agent
  }

  /** What requests without a body take connections from. */
  wireFor(backend: ProxyBackend): WirePool {
    return this.#poolsFor(backend).byWire
  }

  /** A connection that is nobody else's, for another protocol. */
  open(backend: ProxyBackend, signal: AbortSignal): Promise<Duplex> {
    return withinTime(openMs, signal, (within) => this.#open(backend, within))
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

  close(): void {
    for (const { retire } of this.#pools.values()) retire()
    this.#pools.clear()
  }

  #poolsFor(backend: ProxyBackend): KeptPools {
    const key = keyOf(backend)
    const known = this.#pools.get(key) ?? this.#create(backend)
    this.#pools.delete(key)
    this.#pools.set(key, known)
    this.#dropOldest()
    return known
  }

  #create(backend: ProxyBackend): KeptPools {
    const supply = {
      tls: backend.scheme === 'https',
      retired: false,
      openHttp1: () => this.open(backend, never),
    }
    const byClient = new ConnectionPool(supply, maxPerBackend)
    const open = (signal: AbortSignal): Promise<Duplex> => this.open(backend, signal)
    const byWire = new WirePool(open, this.#clock, maxPerBackend)
    const retire = (): void => {
      supply.retired = true
      byClient.closeIdle()
      byWire.retire()
    }
    return { byClient, byWire, retire }
  }

  #dropOldest(): void {
    if (this.#pools.size <= maxBackends) return
    for (const [key, { retire }] of this.#pools) {
      retire()
      this.#pools.delete(key)
      return
    }
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
    socket.once('error', end).once('close', () => end(new Error('it closed the connection')))
  })
}
