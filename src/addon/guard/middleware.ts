import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, type Logger, silentLogger, systemClock } from '../../core/index.ts'
import type { AddonUser } from '../token/claims.ts'
import { type AudienceList, staticAudiences } from './audiences.ts'
import { authenticate, openVerifier, type Proof, type TrustOptions } from './authenticate.ts'
import { checkMiddleware } from './check-options.ts'
import { developmentUser } from './development-user.ts'
import { defaultGuardLimits } from './guard.ts'
import {
  defaultOutput,
  type IdentityOutput,
  identityNameTest,
  stateIdentity,
} from './identity-output.ts'
import { HeaderRules, protocolOf, readRequest } from './read-request.ts'
import { GuardRefused, refusalBody, refusalHeaders, refusalText } from './refusal.ts'
import { ApplicationTunnels, isUpgrade } from './upgraded-connections.ts'

/** Whom an application believes, and how it wants to be told. */
export interface MiddlewareOptions extends TrustOptions {
  /** The Services of this application as `namespace/name`, or a list that is kept elsewhere. */
  readonly audiences: readonly string[] | AudienceList
  readonly output?: IdentityOutput
  /** Headers that the application needs from clients although they look like claims to an identity. */
  readonly allowedRequestHeaders?: readonly string[]
  /** Who a request without a token is from, on this machine only: from loopback, to loopback, not forwarded. */
  readonly developmentUser?: string
  /** How long a WebSocket lasts however often its token is renewed; an hour unless said otherwise. */
  readonly maxTunnelMs?: number
  readonly clock?: Clock
  readonly log?: Logger
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void
type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void
type Next = () => void

/** The part of a Fastify instance that the plugin uses. */
interface FastifyLike {
  addHook(
    name: 'onRequest',
    hook: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>,
  ): unknown
}

interface FastifyRequestLike {
  readonly raw: IncomingMessage
}

interface FastifyReplyLike {
  code(status: number): unknown
  headers(values: Record<string, string | number>): unknown
  send(body?: string): unknown
}

/** Knows the users of requests, in front of a handler of node:http, Express or Fastify. */
export interface AddonGuard {
  /** The user of a request, whose headers then state it, and whose WebSocket ends with its token; rejects with GuardRefused. */
  authenticate(request: IncomingMessage): Promise<AddonUser>
  /** The user of a request that was let through, be it Node's or Fastify's. */
  userOf(request: IncomingMessage | FastifyRequestLike): AddonUser | undefined
  /** A listener for node:http that lets only requests of known users through. */
  listener(handle: Listener): Listener
  /** The same for requests that ask for another protocol. */
  upgradeListener(handle: UpgradeListener): UpgradeListener
  /** Middleware for Express and Connect. */
  readonly express: (request: IncomingMessage, response: ServerResponse, next: Next) => void
  /** A plugin for Fastify. */
  readonly fastify: (instance: FastifyLike, options: unknown, done: () => void) => void
  /** Stops following keys and cuts the WebSockets that were let through. */
  close(): void
}

/** Opens a guard within an application: the same checks as the sidecar's, without a process of its own. */
export async function createGuard(options: MiddlewareOptions): Promise<AddonGuard> {
  checkMiddleware(options)
  const { audiences, clock = systemClock, log = silentLogger } = options
  const ended = new AbortController()
  const verifier = await openVerifier(options, { clock, log, signal: ended.signal })
  const list = 'has' in audiences ? audiences : staticAudiences(audiences)
  if (options.developmentUser !== undefined)
    log.warn({ user: options.developmentUser }, 'requests of this machine need no token')
  return new RequestGuard(options, { verifier, audiences: list, log }, clock, () => ended.abort())
}

class RequestGuard implements AddonGuard {
  readonly #options: MiddlewareOptions
  readonly #proof: Proof
  readonly #clock: Clock
  readonly #output: IdentityOutput
  readonly #rules: HeaderRules
  readonly #users = new WeakMap<IncomingMessage, AddonUser>()
  readonly #tunnels: ApplicationTunnels
  readonly #stop: () => void

  constructor(options: MiddlewareOptions, proof: Proof, clock: Clock, stop: () => void) {
    this.#options = options
    this.#proof = proof
    this.#clock = clock
    this.#stop = stop
    const { maxTunnelMs: maxAgeMs = defaultGuardLimits.maxTunnelMs } = options
    this.#tunnels = new ApplicationTunnels({ clock, maxAgeMs }, proof.log)
    this.#output = options.output ?? defaultOutput
    this.#rules = new HeaderRules(identityNameTest(this.#output, options.allowedRequestHeaders))
  }

  async authenticate(request: IncomingMessage): Promise<AddonUser> {
    return (await this.#enter(request)).user
  }

  close(): void {
    this.#stop()
    this.#tunnels.cutAll()
  }

  userOf(request: IncomingMessage | FastifyRequestLike): AddonUser | undefined {
    return this.#users.get('raw' in request ? request.raw : request)
  }

  listener(handle: Listener): Listener {
    return (request, response) => this.express(request, response, () => handle(request, response))
  }

  upgradeListener(handle: UpgradeListener): UpgradeListener {
    return (request, socket, head) => {
      socket.on('error', () => socket.destroy())
      this.#enter(request, socket).then(
        () => handle(request, socket, head),
        // Half closed, it would be there for as long as the other side likes.
        (error: unknown) => socket.end(refusalText(this.#toRefusal(error)), () => socket.destroy()),
      )
    }
  }

  // Frameworks take these without their object.
  readonly express: AddonGuard['express'] = (request, response, next) => {
    void this.#admit(request, response, () => next())
  }

  readonly fastify = Object.assign(
    (instance: FastifyLike, _options: unknown, done: () => void): void => {
      instance.addHook('onRequest', (request, reply) => this.#hook(request.raw, reply))
      done()
    },
    // What is registered beside the plugin is guarded as well.
    { [Symbol.for('skip-override')]: true },
  )

  async #hook(request: IncomingMessage, reply: FastifyReplyLike): Promise<unknown> {
    try {
      const { hasRenewed } = await this.#enter(request)
      if (!hasRenewed) return undefined
      reply.code(204)
      return reply.send()
    } catch (error) {
      const { status, headers, body } = this.#answerTo(error)
      reply.code(status)
      reply.headers(headers)
      return reply.send(body)
    }
  }

  async #admit(request: IncomingMessage, response: ServerResponse, go: () => void): Promise<void> {
    try {
      const { hasRenewed } = await this.#enter(request)
      if (hasRenewed) {
        response.writeHead(204).end()
        return
      }
    } catch (error) {
      const { status, headers, body } = this.#answerTo(error)
      response.writeHead(status, headers).end(body)
      return
    }
    // Outside of this promise: what the application throws is its own.
    queueMicrotask(go)
  }

  /** Lets a request in; `upgraded` is its connection if that has left HTTP. */
  async #enter(
    request: IncomingMessage,
    upgraded: Duplex | undefined = isUpgrade(request) ? request.socket : undefined,
  ): Promise<{ readonly user: AddonUser; readonly hasRenewed: boolean }> {
    if (upgraded) protocolOf(request)
    const developer = this.#developer(request)
    const user = developer ?? (await this.#verified(request))
    stateIdentity(request, user, { rules: this.#rules, output: this.#output })
    this.#users.set(request, user)
    // A developer has no token whose end could be awaited, and nobody who renews it.
    if (developer) return { user, hasRenewed: false }
    if (!upgraded) return { user, hasRenewed: this.#tunnels.renew(request, user) }
    this.#tunnels.follow(upgraded, user)
    return { user, hasRenewed: false }
  }

  #developer(request: IncomingMessage): AddonUser | undefined {
    const { developmentUser: name } = this.#options
    if (name === undefined) return undefined
    return developmentUser(request, name, this.#clock.now())
  }

  #verified(request: IncomingMessage): AddonUser | Promise<AddonUser> {
    // Frameworks put what is behind their mount point into `url`; the whole is what was sent.
    const { originalUrl = request.url } = request as { originalUrl?: string }
    const asSent = { ...pick(request), ...(originalUrl !== undefined && { url: originalUrl }) }
    return authenticate(readRequest(asSent, this.#rules).authorization, this.#proof)
  }

  #answerTo(error: unknown) {
    const refusal = this.#toRefusal(error)
    const body = refusalBody(refusal)
    // What is left of the request is not read.
    const headers = { ...refusalHeaders(refusal, body), Connection: 'close' }
    return { status: refusal.status, headers, body }
  }

  #toRefusal(error: unknown): GuardRefused {
    if (error instanceof GuardRefused) return error
    this.#proof.log.error({ err: error }, 'a request failed')
    return new GuardRefused(500, 'internal-error', 'the request could not be handled')
  }
}

const pick = ({ rawHeaders, method, httpVersion }: IncomingMessage) => ({
  rawHeaders,
  httpVersion,
  ...(method !== undefined && { method }),
})
