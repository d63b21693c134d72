import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isIPv6, type Socket } from 'node:net'
import {
  aborted,
  type Clock,
  type Component,
  type Logger,
  neverFails,
  type ProxyTarget,
} from '../core/index.ts'
import { type ForwardOptions, forward, forwardUpgrade } from '../http/forward/index.ts'
import {
  allowedHeaders,
  defaultServerLimits,
  endByBodyProblem,
  hasBody,
  isIdentityHeader,
  judgeUpgrade,
  listenOnAll,
  rememberByName,
  upgradingClient,
  watchBody,
} from '../http/index.ts'
import type { Upstream } from '../http/upstream/index.ts'
import type { HostName } from './addon-origin.ts'
import { ApiReader } from './api-reader.ts'
import { withRefusalsChecked } from './credential-check.ts'
import {
  type ForwardPlan,
  type HeaderRewriting,
  ProxyPolicy,
  requestHeaders,
} from './forward-policy.ts'
import { gatherHome } from './home-contents.ts'
import { homeHeaders, renderHome } from './home-page.ts'
import { asPrefix, type Planner, planRequest } from './plan-request.ts'
import { answerFailure, isMalformed, malformed, pageNotFound, Refusal } from './refusal.ts'
import { type FilterOptions, RequestFilter } from './request-filter.ts'
import { SeenCookies } from './seen-cookies.ts'
import { ServiceLookup } from './services.ts'
import { StaticFiles } from './static-files.ts'
import type { ApiTransport } from './transport.ts'
import { listenOnUnixSocket, removeUnixSocket } from './unix-socket.ts'
import { AuthenticatedUpstream } from './upstream.ts'

/** What Go, and so kubectl, does where no period is given. */
const defaultKeepAliveMs = 15_000

/** Where a proxy listens. */
export type ListenPlace =
  | { readonly address: string; readonly port: number }
  | { readonly unixSocket: string }

/** What a local proxy is made of. */
export interface LocalProxyOptions {
  readonly listen: ListenPlace
  readonly transport: ApiTransport
  /** Where the page at `/` looks for services if nothing else may be listed. */
  readonly namespace: string
  readonly apiPrefix: string
  /** The directory of static files and the path under which they are served. */
  readonly www?: { readonly directory: string; readonly prefix: string }
  /** Absent: nothing is filtered, and whoever reaches the proxy acts as the user. */
  readonly filter?: FilterOptions
  /** TCP keep-alive period of upgraded connections in milliseconds; 0 is the default period. */
  readonly keepAliveMs: number
  /** Headers that are passed on although their names look like claims to an identity. */
  readonly allowedRequestHeaders?: readonly string[]
  readonly clock: Clock
  readonly log: Logger
}

/** A local HTTP server that forwards to an API server as the user, as `kubectl proxy` does. */
export class LocalProxy implements Component {
  readonly name = 'proxy'
  readonly failed = neverFails()
  readonly #options: LocalProxyOptions
  readonly #api: ApiReader
  readonly #planner: Planner
  readonly #files: StaticFiles | undefined
  readonly #rewriting: HeaderRewriting
  readonly #upstreams: { readonly api: Upstream; readonly addons: Upstream }
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Connections on which a malformed request was seen. Later requests on them are ignored. */
  readonly #poisoned = new WeakSet<Socket>()
  /** The newest response of each connection: responses are sent in the order of their requests. */
  readonly #responding = new WeakMap<Socket, ServerResponse>()

  constructor(options: LocalProxyOptions) {
    const { www, filter, clock } = options
    const transport = withRefusalsChecked(options.transport, clock)
    this.#options = { ...options, transport }
    this.#api = new ApiReader(transport)
    this.#upstreams = {
      api: new AuthenticatedUpstream(transport, false),
      addons: new AuthenticatedUpstream(transport, true),
    }
    const allowed = allowedHeaders(options.allowedRequestHeaders ?? [])
    this.#rewriting = {
      server: transport.server,
      cookies: new SeenCookies(),
      isIdentityHeader: rememberByName((name) => isIdentityHeader(name, allowed)),
    }
    const services = new ServiceLookup(this.#api, options.namespace, clock)
    this.#files = www && new StaticFiles(www.directory)
    this.#planner = {
      routes: {
        apiPrefix: asPrefix(options.apiPrefix),
        ...(www && { staticPrefix: asPrefix(www.prefix) }),
      },
      ...(filter && { filter: new RequestFilter(filter) }),
      services,
    }
    this.#server = this.#createServer()
  }

  /** Where it listens, in the words of kubectl: `127.0.0.1:8001` or the path of the socket. */
  get address(): string {
    const { listen } = this.#options
    if ('unixSocket' in listen) return listen.unixSocket
    const bound = this.#server.address()
    if (typeof bound !== 'object' || !bound) return `${listen.address}:${listen.port}`
    return isIPv6(bound.address)
      ? `[${bound.address}]:${bound.port}`
      : `${bound.address}:${bound.port}`
  }

  async start(): Promise<void> {
    const { listen } = this.#options
    if ('unixSocket' in listen) await listenOnUnixSocket(this.#server, listen.unixSocket)
    else
      await listenOnAll(
        () => this.#server,
        [{ host: listen.address, option: '--port' }],
        listen.port,
      )
  }

  async stop(deadline: AbortSignal): Promise<void> {
    const { listen, transport } = this.#options
    const wasListening = this.#server.listening
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await Promise.race([closed, aborted(deadline)])
    for (const socket of this.#sockets) socket.destroy()
    transport.destroy()
    await closed
    if (wasListening && 'unixSocket' in listen) await removeUnixSocket(listen.unixSocket)
  }

  #createServer(): Server {
    const server = createServer({
      // Node would respond itself and then serve what follows on the connection.
      requireHostHeader: false,
      maxHeaderSize: defaultServerLimits.maxHeaderBytes,
      headersTimeout: defaultServerLimits.headersTimeoutMs,
      keepAliveTimeout: defaultServerLimits.idleTimeoutMs,
      // Uploads may take as long as they take.
      requestTimeout: 0,
    })
    // Beyond a count Node would drop headers without a word; their size is limited anyway.
    server.maxHeadersCount = 0
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => {
      this.#responding.set(request.socket, response)
      void this.#serve(request, response)
    })
    server.on('upgrade', (request, socket, head) => {
      // Its response would be taken for that of the request before it.
      const isBusy = this.#responding.get(request.socket)?.writableFinished === false
      if (isBusy || this.#poisoned.has(request.socket)) socket.destroy()
      else void this.#upgrade(request, head)
    })
    server.on('connect', (request: IncomingMessage, socket, head: Buffer) => {
      socket.on('error', () => {})
      const { response } = upgradingClient(request, head)
      answerFailure(request, response, malformed('this is no forward proxy'), this.#options.log)
    })
    return server
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log } = this.#options
    if (this.#poisoned.has(request.socket)) return
    try {
      const planned = planRequest(request, this.#planner)
      if (hasBody(request))
        watchBody(request, defaultServerLimits, (problem) =>
          endByBodyProblem(request, response, problem),
        )
      const plan = planned instanceof Promise ? await planned : planned
      switch (plan.kind) {
        case 'forward':
          await forward(request, response, this.#forwardOptions(request, plan))
          break
        case 'static':
          await this.#serveFile(plan.path, request, response)
          break
        case 'home':
          await this.#serveHome(plan.host, request, response)
          break
        case 'redirect':
          response.writeHead(307, { Location: plan.location, 'Content-Length': 0 }).end()
          break
      }
    } catch (error) {
      // Before the next turn: a request in the same packet is already at the door.
      if (isMalformed(error)) this.#poisoned.add(request.socket)
      answerFailure(request, response, error, log)
    }
    // Without its query, in which logins pass their codes.
    const path = request.url?.replace(/\?.*/s, '')
    log.debug({ method: request.method, path, status: response.statusCode }, 'request served')
  }

  async #upgrade(request: IncomingMessage, head: Buffer): Promise<void> {
    const { keepAliveMs, log } = this.#options
    // Node stops listening here, and an error without a listener would end the process.
    request.socket.on('error', (err) => log.debug({ err }, 'upgraded connection failed'))
    const client = upgradingClient(request, head)
    try {
      const plan = await planRequest(request, this.#planner)
      const protocol = protocolOf(request)
      if (plan.kind !== 'forward') throw malformed('there is nothing to upgrade here')
      await forwardUpgrade(request, client, {
        ...this.#forwardOptions(request, plan),
        protocol,
        keepAliveMs: keepAliveMs || defaultKeepAliveMs,
      })
    } catch (error) {
      answerFailure(request, client.response, error, log)
    }
  }

  #forwardOptions(request: IncomingMessage, plan: ForwardPlan): ForwardOptions {
    const { place, path } = plan
    return {
      upstream: place.kind === 'api' ? this.#upstreams.api : this.#upstreams.addons,
      path,
      headers: requestHeaders(request, plan, this.#rewriting),
      policy: new ProxyPolicy(place, this.#rewriting),
      lingerMs: defaultServerLimits.lingerMs,
    }
  }

  async #serveFile(path: string, request: IncomingMessage, response: ServerResponse) {
    if (!this.#files) throw pageNotFound()
    await this.#files.serve(path, request, response)
  }

  async #serveHome(
    host: HostName,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { transport, namespace } = this.#options
    const contents = await gatherHome(this.#api, namespace, AbortSignal.timeout(10_000))
    const { routes, services } = this.#planner
    const { apiPrefix } = routes
    const apiMount = apiPrefix.startsWith('/api') ? '' : apiPrefix.slice(0, -1)
    const hostOf = (service: ProxyTarget): string => services.hostOf(service)
    const page = renderHome(contents, { server: transport.server, host, apiMount, hostOf })
    response.writeHead(200, { ...homeHeaders, 'Content-Length': Buffer.byteLength(page) })
    response.end(request.method === 'HEAD' ? undefined : page)
  }
}

/** The protocol that a request wants to change to; throws a Refusal unless it may be forwarded. */
function protocolOf(request: IncomingMessage): string {
  const verdict = judgeUpgrade(request)
  if (verdict.problem === undefined) return verdict.protocol
  if (verdict.status === 400) throw malformed(verdict.problem)
  throw new Refusal(verdict.status, `Upgrade Required: ${verdict.problem}`, verdict.headers)
}
