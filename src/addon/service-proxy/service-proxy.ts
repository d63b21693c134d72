import type { ServerResponse } from 'node:http'
import {
  type AuthorizedRequest,
  badRequest,
  hasReason,
  type KubeObject,
  pause,
  type UserInfo,
} from '../../core/index.ts'
import {
  type ForwardOptions,
  type ForwardPolicy,
  forward,
  forwardUpgrade,
} from '../../http/forward/index.ts'
import {
  hostOf,
  judgeUpgrade,
  type Meters,
  type UpgradeVerdict,
  type UpgradingClient,
} from '../../http/index.ts'
import { declaredHeaders, isMarker, setMarker, wantsGroups } from './add-auth.ts'
import type { ServiceProxyParts } from './dependencies.ts'
import { AddonPolicy } from './forward-policy.ts'
import {
  type Admission,
  Budgets,
  limitsOfService,
  type PageWindow,
  PageWindows,
  type SessionKind,
} from './limits.ts'
import { type ProxyMetrics, proxyMetrics } from './metrics.ts'
import { type Plan, planRequest } from './plan-request.ts'
import { backendHeaders } from './request-headers.ts'
import { wantsPage, withReadableCodings } from './rewrite/html-stream.ts'
import { lostRight, requireCreate } from './rights.ts'
import { type Session, SessionBook } from './session.ts'
import { follow, inWords, wasCut } from './session-end.ts'
import { authorityOf } from './target.ts'
import { renewing, type TunnelRenewal } from './token-renewal.ts'
import { BackendUpstreams } from './upstreams.ts'

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

/** What a request holds while it is forwarded. */
interface Held {
  readonly admission: Admission
  readonly session: Session
  readonly window: PageWindow
}

/** A request that is ready to be sent. */
interface Prepared {
  readonly options: ForwardOptions
  /** How its tunnel is kept open at a guard, where it lasts no longer than a token; absent without an identity. */
  readonly renewal?: TunnelRenewal
}

/** Forwards requests to Services, Pods and nodes as their users, within limits, for as long as they may. */
export class ServiceProxy {
  readonly sessions: SessionBook
  readonly #parts: ServiceProxyParts
  readonly #upstreams: BackendUpstreams
  readonly #budgets: Budgets
  readonly #windows = new PageWindows()
  readonly #metrics: ProxyMetrics

  constructor(parts: ServiceProxyParts) {
    this.#parts = parts
    this.#upstreams = new BackendUpstreams(parts.dialer, parts.clock)
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
    await this.#pass({ authorized, response, kind: 'Request', signal }, plan, ({ options }) =>
      forward(authorized.request, response, options),
    )
  }

  /** Answers a request to leave HTTP. */
  async upgrade(
    authorized: AuthorizedRequest,
    client: UpgradingClient,
    signal: AbortSignal,
  ): Promise<void> {
    const { request } = authorized
    const { response } = client
    const verdict = judgeUpgrade(request)
    if (verdict.problem !== undefined) {
      if (verdict.status === 400) throw badRequest(verdict.problem)
      refuseVersion(response, verdict)
      return
    }
    const { protocol } = verdict
    await requireCreate(authorized, this.#parts, signal)
    const plan = await planRequest(authorized, this.#parts, signal)
    await this.#pass(
      { authorized, response, kind: 'Tunnel', signal },
      plan,
      async ({ options, renewal }) => {
        const closed = new AbortController()
        const policy = renewal ? renewing(options.policy, renewal, closed.signal) : options.policy
        await forwardUpgrade(request, client, { ...options, policy, protocol }).finally(() =>
          closed.abort(),
        )
      },
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
    this.#upstreams.close()
  }

  async #pass(
    asked: Asked,
    plan: Plan,
    send: (prepared: Prepared) => Promise<void>,
  ): Promise<void> {
    const admission = this.#admit(asked, plan)
    const session = this.#open(asked, plan)
    const unlink = follow(asked, session)
    const window = this.#windows.of(payerOf(asked))
    try {
      await send(await this.#prepare(asked, plan, { admission, session, window }))
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

  async #prepare(asked: Asked, plan: Plan, held: Held): Promise<Prepared> {
    const { request, authentication } = asked.authorized
    const { trigger, path, query } = plan
    if (trigger) this.#metrics.identified(trigger)
    const token = (): Promise<string> => this.#token(plan, authentication.user)
    const meters = metersOf(held)
    const options: ForwardOptions = {
      upstream: this.#upstreams.upstreamFor(plan.backend),
      path: `${path || '/'}${query}`,
      headers: this.#headersFor(asked, plan, held, trigger && (await token())),
      policy: this.#policyFor(asked, plan, held, meters),
      meters,
      signal: held.session.signal,
    }
    if (!trigger) return { options }
    const everyMs = Math.min(this.#parts.recheckMs, longestRenewMs)
    const { upstream, path: renewPath } = options
    return {
      options,
      renewal: { upstream, host: hostOf(request), path: renewPath, everyMs, token },
    }
  }

  #headersFor(
    { authorized: { request }, kind }: Asked,
    { prefix, path, service }: Plan,
    { session, window }: Held,
    token: string | undefined,
  ): string[] {
    const headers = backendHeaders(request, {
      uri: `${prefix}${path || '/'}`,
      auditId: session.facts.auditId,
      ...(token !== undefined && { token }),
      isOwnCookie: isMarker,
      isIdentityHeader: this.#identityTest(service),
    })
    // Taken before the page is requested: what is not requested in this coding needs no window.
    const hasRoom = (): boolean => kind === 'Tunnel' || !wantsPage(headers) || window.take()
    return withReadableCodings(headers, hasRoom)
  }

  #policyFor(
    { authorized: { request } }: Asked,
    plan: Plan,
    { window }: Held,
    { toClient }: Meters,
  ): ForwardPolicy {
    const { prefix, trigger, backend } = plan
    return new AddonPolicy({
      prefix,
      backend: authorityOf(backend),
      requestHost: hostOf(request),
      hasIdentity: trigger !== undefined,
      isOwnCookie: isMarker,
      isSandboxed: this.#isSandboxed(plan),
      isNavigation: request.headers['sec-fetch-mode'] === 'navigate',
      added: trigger === 'query' ? ['set-cookie', setMarker(prefix)] : [],
      toClient,
      window,
    })
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

const metersOf = ({ admission, session }: Held): Meters => ({
  toUpstream: (bytes) => {
    session.passed('toBackend', bytes)
    return admission.toUpstream(bytes)
  },
  toClient: (bytes) => {
    session.passed('toClient', bytes)
    return admission.toClient(bytes)
  },
})

/** Names the version of WebSocket that there is (RFC 6455 §4.4). Kubernetes has no reason for this status. */
function refuseVersion(
  response: ServerResponse,
  { problem, status, headers }: Extract<UpgradeVerdict, { problem: string }>,
): void {
  const body = `${JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: problem,
    code: status,
  })}\n`
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
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
