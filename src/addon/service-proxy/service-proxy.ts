import type { ServerResponse } from 'node:http'
import {
  ApiError,
  type AuthorizedRequest,
  badRequest,
  hasReason,
  type KubeObject,
  pause,
  StreamCut,
  type UserInfo,
  unauthorized,
} from '../../core/index.ts'
import { hostOf, judgeUpgrade } from '../../http/index.ts'
import { declaredHeaders, isMarker, setMarker, wantsGroups } from './add-auth.ts'
import type { ServiceProxyParts } from './dependencies.ts'
import {
  BackendConnections,
  backendHeaders,
  type Forwarding,
  forwardRequest,
  forwardUpgrade,
  type LeavingClient,
} from './forward/index.ts'
import {
  type Admission,
  Budgets,
  limitsOfService,
  PageWindows,
  type SessionKind,
} from './limits.ts'
import { type ProxyMetrics, proxyMetrics } from './metrics.ts'
import { type Plan, planRequest } from './plan-request.ts'
import { refuseVersion } from './refuse-version.ts'
import { wantsPage, withReadableCodings } from './rewrite/html-stream.ts'
import { lostRight, requireCreate } from './rights.ts'
import { type CutReason, type Session, SessionBook } from './session.ts'
import { authorityOf } from './target.ts'

/** A client that asks to leave HTTP, as the server hands it over. */
export type UpgradingClient = Omit<LeavingClient, 'protocol'>

/** How often ages are looked at. */
const longestSweepMs = 1_000

/** A token is used only while a third of its minute is left. */
const longestRenewMs = 15_000

/** One request and where its answer goes. */
interface Asked {
  readonly authorized: AuthorizedRequest
  readonly response: ServerResponse
  readonly kind: SessionKind
  readonly signal: AbortSignal
}

/** Forwards requests to Services, Pods and nodes as their users, within limits, for as long as they may. */
export class ServiceProxy {
  readonly sessions: SessionBook
  readonly #parts: ServiceProxyParts
  readonly #connections: BackendConnections
  readonly #budgets: Budgets
  readonly #windows = new PageWindows()
  readonly #metrics: ProxyMetrics

  constructor(parts: ServiceProxyParts) {
    this.#parts = parts
    this.#connections = new BackendConnections(parts.dialer, parts.clock)
    this.#budgets = new Budgets(parts.clock)
    this.sessions = new SessionBook(parts.clock)
    this.#metrics = proxyMetrics(parts.metrics, () => this.sessions.size)
  }

  /** Forwards a request to the Service, Pod or node that its URL names. */
  async serve(
    authorized: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const plan = await planRequest(authorized, this.#parts, signal)
    const { method } = authorized.request
    if (plan.path === '' && (method === 'GET' || method === 'HEAD')) {
      redirect(plan, authorized, response)
      return
    }
    await this.#pass({ authorized, response, kind: 'Request', signal }, plan, (forwarding) =>
      forwardRequest(forwarding, response),
    )
  }

  /** Answers a request to leave HTTP. */
  async upgrade(
    authorized: AuthorizedRequest,
    client: UpgradingClient,
    signal: AbortSignal,
  ): Promise<void> {
    const { response } = client
    const verdict = judgeUpgrade(authorized.request)
    if (verdict.problem !== undefined) {
      if (verdict.status === 400) throw badRequest(verdict.problem)
      refuseVersion(response, verdict.problem)
      return
    }
    await requireCreate(authorized, this.#parts, signal)
    const plan = await planRequest(authorized, this.#parts, signal)
    const leaving = { ...client, claim: () => client.claim(), protocol: verdict.protocol }
    await this.#pass({ authorized, response, kind: 'Tunnel', signal }, plan, (forwarding) =>
      forwardUpgrade(forwarding, leaving),
    )
  }

  /** Watches over what is open until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { recheckMs } = this.#parts
    while (!signal.aborted) {
      await pause(Math.min(longestSweepMs, recheckMs), signal)
      // Not waited for: a check that takes its time must not keep the others from their end.
      void this.sessions.sweep(recheckMs, signal)
      this.#budgets.sweep()
    }
    this.#connections.close()
  }

  async #pass(
    asked: Asked,
    plan: Plan,
    forward: (forwarding: Forwarding) => Promise<void>,
  ): Promise<void> {
    const admission = this.#admit(asked, plan)
    const session = this.#open(asked, plan)
    const unlink = follow(asked, session)
    const window = this.#windows.of(payerOf(asked))
    try {
      const forwarding = await this.#forwarding(asked, plan, admission, session)
      // Asked for before the page is: what a backend is not asked for in this coding needs no place.
      const hasRoom = (): boolean =>
        asked.kind === 'Tunnel' || !wantsPage(forwarding.headers) || window.take()
      const headers = withReadableCodings(forwarding.headers, hasRoom)
      await forward({ ...forwarding, headers, window })
    } catch (error) {
      throw session.reason === undefined ? error : inWords(session.reason, error)
    } finally {
      unlink()
      window.leave()
      admission.leave()
      this.sessions.close(session)
      if (wasCut(session)) this.#metrics.cut(session.reason)
    }
  }

  #admit(asked: Asked, { service, target }: Plan): Admission {
    const { limits } = this.#parts
    const username = payerOf(asked)
    const own = service && limitsOfService(service, limits)
    const claims = [
      { key: `all ${username}`, limits },
      ...(own ? [{ key: `${target.namespace}/${target.name} ${username}`, limits: own }] : []),
    ]
    try {
      return this.#budgets.enter(asked.kind, claims)
    } catch (error) {
      if (hasReason(error, 'TooManyRequests')) this.#metrics.limited()
      throw error
    }
  }

  #open({ authorized, response, kind }: Asked, plan: Plan): Session {
    const { authentication, info, request, audit } = authorized
    const { service, backend, trigger } = plan
    const limits = (service && limitsOfService(service, this.#parts.limits)) ?? this.#parts.limits
    const verbs = kind === 'Tunnel' ? [info.verb, 'create'] : [info.verb]
    const endpoint = `${backend.scheme}://${authorityOf(backend)}`
    audit?.annotate('sallyport.dev/proxied-to', endpoint)
    if (trigger) audit?.annotate('sallyport.dev/add-auth', trigger)
    return this.sessions.open({
      kind,
      namespace: info.namespace || 'kube-system',
      target: `${info.resource}/${info.name}`,
      user: authentication.user.username,
      method: request.method ?? '',
      endpoint,
      identity: trigger ?? '',
      auditId: String(response.getHeader('audit-id') ?? ''),
      maxAgeMs: kind === 'Tunnel' ? limits.maxTunnelMs : limits.maxRequestMs,
      idleMs: limits.idleMs,
      lostRight: (until) => lostRight(authorized, verbs, this.#parts, until),
    })
  }

  async #forwarding(
    { authorized: { request, authentication } }: Asked,
    plan: Plan,
    admission: Admission,
    session: Session,
  ): Promise<Forwarding> {
    const { backend, prefix, trigger, path, query, service } = plan
    if (trigger) this.#metrics.identified(trigger)
    const token = trigger && (await this.#token(plan, authentication.user))
    const facts = {
      uri: `${prefix}${path || '/'}`,
      peer: request.socket.remoteAddress ?? '',
      auditId: session.facts.auditId,
      ...(token !== undefined && { token }),
      isOwnCookie: isMarker,
      isIdentityHeader: this.#identityTest(service),
    }
    return {
      connections: this.#connections,
      backend,
      request,
      path: `${path || '/'}${query}`,
      headers: backendHeaders(request, facts),
      places: {
        prefix,
        backend: authorityOf(backend),
        requestHost: hostOf(request),
        hasIdentity: trigger !== undefined,
        isOwnCookie: isMarker,
        isSandboxed: this.#isSandboxed(plan),
      },
      added: new Map(trigger === 'query' ? [['set-cookie', [setMarker(prefix)]]] : []),
      meters: {
        toBackend: (bytes) => {
          session.passed('toBackend', bytes)
          return admission.toBackend(bytes)
        },
        toClient: (bytes) => {
          session.passed('toClient', bytes)
          return admission.toClient(bytes)
        },
      },
      ...(trigger && {
        renewal: {
          everyMs: Math.min(this.#parts.recheckMs, longestRenewMs),
          token: () => this.#token(plan, authentication.user),
        },
      }),
      signal: session.signal,
    }
  }

  #identityTest(service: KubeObject | undefined): (name: string) => boolean {
    const { isIdentityHeader } = this.#parts
    const allowed = service && declaredHeaders(service)
    return allowed ? (name) => isIdentityHeader(name, allowed) : isIdentityHeader
  }

  /** Only Services: who may run a Pod in a namespace may not thereby use its place on the API's origin. */
  #isSandboxed({ target: { resource, namespace } }: Plan): boolean {
    return resource !== 'services' || !this.#parts.sameOriginNamespaces.has(namespace)
  }

  #token({ target, service }: Plan, user: UserInfo): Promise<string> {
    const { username, uid, groups } = user
    return this.#parts.minter.mint({
      user: username,
      ...(uid !== undefined && { uid }),
      ...(service && wantsGroups(service) && { groups }),
      namespace: target.namespace,
      service: target.name,
    })
  }
}

/** Whoever acts as others pays for it, or they could have as many budgets as there are others. */
function payerOf({ authorized }: Asked): string {
  const { user, impersonator } = authorized.authentication
  return (impersonator ?? user).username
}

/** An application's own links are right only below its own slash. */
function redirect(plan: Plan, { request }: AuthorizedRequest, response: ServerResponse): void {
  const [, query = ''] = /\?([^]*)$/.exec(request.url ?? '') ?? []
  response.writeHead(301, {
    Location: `${plan.prefix}/${query === '' ? '' : `?${query}`}`,
    'Content-Length': 0,
  })
  response.end()
}

/** Ends the session when its client or its credential is gone, and says in the audit log why it was ended. */
function follow({ authorized, response, kind, signal }: Asked, session: Session): () => void {
  const note = (): void => {
    if (wasCut(session)) authorized.audit?.annotate('sallyport.dev/ended', session.reason)
  }
  session.signal.addEventListener('abort', note, { once: true })
  const abort = (): void => {
    const reason = reasonOf(signal.reason)
    // A request under way at the end of the server is answered; what has no end is not waited for.
    const mayFinish = reason === 'shutdown' && kind === 'Request' && !isEventStream(response)
    if (!mayFinish) session.cut(reason)
  }
  const gone = (): void => {
    if (!response.writableFinished) session.cut('client-gone')
  }
  signal.addEventListener('abort', abort, { once: true })
  response.once('close', gone)
  if (signal.aborted) abort()
  return () => {
    signal.removeEventListener('abort', abort)
    response.off('close', gone)
  }
}

/** Clients end tunnels by going; of a request it means that the answer was not wanted any more. */
function wasCut(session: Session): session is Session & { readonly reason: CutReason } {
  const { reason, facts } = session
  return reason !== undefined && !(reason === 'client-gone' && facts.kind === 'Tunnel')
}

function reasonOf(error: unknown): CutReason {
  if (error instanceof StreamCut) return error.reason
  return hasReason(error, 'ServiceUnavailable') ? 'shutdown' : 'client-gone'
}

const isEventStream = (response: ServerResponse): boolean =>
  String(response.getHeader('content-type') ?? '').startsWith('text/event-stream')

/** What a client is told that has not been answered yet. */
function inWords(reason: CutReason, error: unknown): unknown {
  if (reason === 'max-age' || reason === 'idle')
    return new ApiError('Timeout', 'the add-on did not answer within the allotted time')
  if (reason === 'deleted')
    return new ApiError('ServiceUnavailable', 'the session was ended by somebody who may')
  if (reason === 'revoked') return unauthorized('the credential is no longer good')
  if (reason === 'not-authorized')
    return new ApiError('Forbidden', 'the right to this request was taken away while it was open')
  return error
}
