import { createServer, type Server } from 'node:http'
import { type AddressInfo, isIPv6, type Socket } from 'node:net'
import { aborted, type Clock, type Component, type Logger, neverFails } from '../../core/index.ts'
import { defaultServerLimits, listenOnAll, maxForwardedHeaders } from '../../http/index.ts'
import type { Upstream } from '../../http/upstream/index.ts'
import type { AddonTokenVerifier } from '../token/verifier.ts'
import { AccessLog, type AccessLogLevel } from './access-log.ts'
import type { AudienceList } from './audiences.ts'
import { checkPlaces } from './check-options.ts'
import { GuardHandler } from './handler.ts'
import { createHealthServer } from './health-server.ts'
import { defaultOutput, type IdentityOutput, identityNameTest } from './identity-output.ts'
import { GuardMetrics } from './metrics.ts'
import { HeaderRules } from './read-request.ts'
import { Tunnels, tunnelLeewayMs } from './upgraded-connections.ts'
import { createUpstream, type Place } from './upstream.ts'

/** One port of the Pod and the add-on's port behind it. */
export interface PortPair {
  readonly listenPort: number
  readonly forward: Place
}

/** What a guard is made of. */
export interface GuardOptions {
  /** The Pod's own addresses; never the wildcard, whose port the add-on could not share. */
  readonly addresses: readonly string[]
  readonly ports: readonly PortPair[]
  /** Absent: no health port. */
  readonly health?: { readonly port: number; readonly probePath?: string }
  readonly verifier: AddonTokenVerifier
  readonly audiences: AudienceList
  readonly output?: IdentityOutput
  /** Headers that the add-on needs from clients although they look like claims to an identity. */
  readonly allowedRequestHeaders?: readonly string[]
  readonly limits?: Partial<GuardLimits>
  readonly accessLog?: { readonly level: AccessLogLevel; readonly write: (lines: string) => void }
  readonly clock: Clock
  readonly log: Logger
}

/** What a guard bears from its clients. */
export interface GuardLimits {
  readonly maxRequestMs: number
  readonly maxTunnelMs: number
  readonly tunnelIdleMs: number
  readonly headersTimeoutMs: number
  /** In which time a request body must bring a few kilobytes, unless the add-on keeps it waiting; 0 for no limit. */
  readonly bodyIdleMs: number
  readonly maxHeaderCount: number
  readonly idleTimeoutMs: number
  readonly maxConnections: number
  readonly lingerMs: number
}

/** Limits for people at browsers: five minutes a request, an hour a tunnel. */
export const defaultGuardLimits: GuardLimits = {
  maxRequestMs: 5 * 60_000,
  maxTunnelMs: 60 * 60_000,
  tunnelIdleMs: 10 * 60_000,
  headersTimeoutMs: 10_000,
  bodyIdleMs: defaultServerLimits.bodyIdleMs,
  maxHeaderCount: maxForwardedHeaders,
  idleTimeoutMs: 90_000,
  maxConnections: 10_000,
  lingerMs: 1_000,
}

const maxHeaderBytes = 32 * 1024

/** The sidecar: requests with a good token go to the add-on with their user's name, all others end here. */
export class Guard implements Component {
  readonly name = 'guard'
  readonly failed = neverFails()
  readonly metrics = new GuardMetrics()
  readonly #options: GuardOptions
  readonly #limits: GuardLimits
  readonly #rules: HeaderRules
  readonly #tunnels: Tunnels
  readonly #accessLog: AccessLog
  readonly #upstreams: Upstream[] = []
  readonly #sockets = new Set<Socket>()
  /** Those of them on which no token was accepted yet; the oldest first. */
  readonly #unauthenticated = new Set<Socket>()
  readonly #probes = new Set<Socket>()
  #servers: Server[] = []
  #isDraining = false

  constructor(options: GuardOptions) {
    const { output = defaultOutput, clock, accessLog } = options
    checkPlaces(options)
    this.#options = options
    this.#limits = { ...defaultGuardLimits, ...options.limits }
    const isIdentity = identityNameTest(output, options.allowedRequestHeaders)
    this.#rules = new HeaderRules(isIdentity, this.#limits.maxHeaderCount)
    const maxAgeMs = this.#limits.maxTunnelMs
    this.#tunnels = new Tunnels({ clock, maxAgeMs, leewayMs: tunnelLeewayMs })
    this.#accessLog = new AccessLog(accessLog?.level ?? 'none', clock, accessLog?.write ?? ignore)
    this.metrics.gauge('sallyport_guard_tunnels', 'Open tunnels', () => this.#tunnels.size)
    this.metrics.gauge('sallyport_guard_connections', 'Open connections', () => this.#sockets.size)
  }

  /** Where it listens, as `address:port` once it has started; the health port last. */
  get places(): readonly string[] {
    return this.#servers.map((server) => placeOf(server.address()))
  }

  async start(): Promise<void> {
    const { addresses, ports, health } = this.#options
    const at = (option: string) => addresses.map((host) => ({ host, option }))
    for (const { listenPort, forward } of ports) {
      const upstream = createUpstream(forward, this.#options.clock)
      this.#upstreams.push(upstream)
      const create = () => this.#createServer(upstream, listenPort)
      this.#servers.push(
        ...(await listenOnAll(create, at('--listen-port or --forward'), listenPort)),
      )
    }
    if (health) {
      const create = () => this.#createHealthServer(health.probePath)
      this.#servers.push(...(await listenOnAll(create, at('--health-port'), health.port)))
    }
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#isDraining = true
    const servers = this.#servers
    this.#servers = []
    const closed = Promise.all(
      servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))),
    )
    for (const server of servers) server.closeIdleConnections()
    this.#tunnels.cutAll('shutting-down')
    await Promise.race([closed, aborted(deadline)])
    for (const socket of [...this.#sockets, ...this.#probes]) socket.destroy()
    for (const upstream of this.#upstreams) upstream.destroy()
    await closed
    this.#accessLog.flush()
  }

  #createServer(upstream: Upstream, port: number): Server {
    const { verifier, audiences, output = defaultOutput, clock, log } = this.#options
    const handler = new GuardHandler({
      upstream,
      port,
      proof: { verifier, audiences, log },
      rules: this.#rules,
      output,
      tunnels: this.#tunnels,
      unauthenticated: this.#unauthenticated,
      limits: this.#limits,
      metrics: this.metrics,
      accessLog: this.#accessLog,
      clock,
      log,
    })
    const { headersTimeoutMs, idleTimeoutMs, maxRequestMs } = this.#limits
    const server = createServer({
      maxHeaderSize: maxHeaderBytes,
      // Node would respond itself and then serve what follows on the connection.
      requireHostHeader: false,
      headersTimeout: Math.min(headersTimeoutMs, maxRequestMs),
      requestTimeout: maxRequestMs,
      keepAliveTimeout: idleTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
    })
    // Beyond a count Node would drop headers without a word; their size is limited anyway.
    server.maxHeadersCount = 0
    server.on('connection', (socket) => {
      // A client without a token must not keep others out: its oldest connection makes room.
      if (this.#sockets.size >= this.#limits.maxConnections) this.#closeUnauthenticated()
      this.#unauthenticated.add(socket)
      socket.once('close', () => this.#unauthenticated.delete(socket))
      this.#accept(socket, this.#sockets)
    })
    server.on('request', (request, response) => {
      if (this.#isDraining) response.shouldKeepAlive = false
      void handler.serve(request, response)
    })
    for (const event of ['upgrade', 'connect'])
      server.on(event, (request, _socket, head) => void handler.upgrade(request, head))
    return server
  }

  #createHealthServer(probePath: string | undefined): Server {
    const [upstream] = this.#upstreams
    const server = createHealthServer({
      metrics: this.metrics,
      unready: () => {
        const { audiences, verifier } = this.#options
        return this.#isDraining ? 'draining' : (audiences.problem ?? verifier.problem)
      },
      ...(probePath !== undefined && upstream && { probe: { path: probePath, upstream } }),
    })
    // Counted apart: whoever fills the other ports must not make the kubelet end the Pod.
    server.on('connection', (socket) => this.#accept(socket, this.#probes))
    return server
  }

  #closeUnauthenticated(): void {
    const [oldest] = this.#unauthenticated
    if (oldest === undefined) return
    this.#unauthenticated.delete(oldest)
    this.#sockets.delete(oldest)
    oldest.destroy()
  }

  #accept(socket: Socket, open: Set<Socket>): void {
    if (open.size >= this.#limits.maxConnections) {
      socket.destroy()
      return
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }
}

const ignore = (): void => {}

function placeOf(address: AddressInfo | string | null): string {
  if (typeof address !== 'object' || !address) return String(address)
  return isIPv6(address.address)
    ? `[${address.address}]:${address.port}`
    : `${address.address}:${address.port}`
}
