import type { Socket } from 'node:net'
import type { Clock, ClusterView, Logger, UserInfo } from '../../core/index.ts'
import type { CallRequest } from '../../grpc/index.ts'
import { sourceOf } from '../addresses/source.ts'
import { FairLimit } from '../ports/fair-limit.ts'
import { type AgentIdentity, identityOfCertificate, identityOfToken } from './agent-identity.ts'
import { AgentRefused, ClientDistrusted } from './agent-registry.ts'
import { describeAgent } from './agent-session.ts'
import { type AgentCheck, createTokenCheck, TokenWatch } from './agent-tokens.ts'
import { type ClientTrust, type RevocationList, trustIn } from './client-trust.ts'
import type { AgentPortConfig } from './config.ts'
import type { TlsFiles } from './listening/tls-files.ts'

/** By what agents are let in. */
export interface AgentAdmissionParts {
  readonly agents: AgentPortConfig
  /** For token reviews. */
  readonly view: ClusterView | undefined
  /** Whom not to let in; nobody is revoked without it. */
  readonly revocations: RevocationList | undefined
  readonly clock: Clock
  readonly log: Logger
}

const mostAgents = 20_000
/** Where each agent has a name of its own, it needs one; more are for those that begin anew. */
const mostPerName = 20

const refused = (detail: string): AgentRefused =>
  new AgentRefused('the agent could not be authenticated', { detail })

/** Decides who may be an agent: by certificate or token, by what it says of itself, and while there is room. */
export class AgentAdmission {
  readonly #parts: AgentAdmissionParts
  readonly #checkToken: AgentCheck | undefined
  readonly #tokenWatch: TokenWatch | undefined
  /** The review of a connection's last token. */
  readonly #reviews = new WeakMap<Socket, Promise<unknown>>()
  /** By request: streams of one connection may bring different tokens. */
  readonly #identities = new WeakMap<CallRequest, AgentIdentity>()
  readonly #places: FairLimit
  readonly #placed = new WeakSet<Socket>()
  #trust: ClientTrust | undefined

  constructor(parts: AgentAdmissionParts) {
    const { organization } = parts.agents
    this.#parts = parts
    this.#checkToken = tokenCheckOf(parts)
    this.#tokenWatch = this.#checkToken && tokenWatchOf(this.#checkToken, parts)
    this.#places = new FairLimit(mostAgents, organization === undefined ? undefined : mostPerName)
  }

  /** Believes the CAs of these files from now on. */
  follow(tls: TlsFiles): void {
    const { agents, revocations, clock, log } = this.#parts
    if (agents.tls.clientCaFile === undefined) return
    const needsHolder = agents.organization !== undefined
    this.#trust = trustIn(tls, { revocations, needsHolder, clock, log })
  }

  /** Lets an agent in, or throws AgentRefused or AgentMetadataInvalid. */
  async admit(request: CallRequest): Promise<void> {
    const { metadata, socket, signal } = request
    this.#checkCertificate(socket)
    const user = await this.#reviewInTurn(metadata, socket, signal)
    const identity = user ? identityOfToken(user) : identityOfCertificate(socket)
    if (!identity) throw refused('there is no credential')
    this.#identities.set(request, identity)
    describeAgent(metadata)
    this.#takePlace(socket)
    this.#tokenWatch?.follow(socket, metadata)
  }

  /** Whom connections of an agent count for: its name where each has its own, else where it comes from. */
  peerOf(socket: Socket): string {
    const { organization } = this.#parts.agents
    const holder = organization === undefined ? undefined : this.#trust?.admit(socket)
    return holder?.commonName ?? sourceOf(socket.remoteAddress ?? '')
  }

  /** Who the agent of an admitted request has proven to be. */
  identityOf(request: CallRequest): AgentIdentity {
    const identity = this.#identities.get(request)
    if (!identity) throw new TypeError('the request was not admitted')
    return identity
  }

  #checkCertificate(socket: Socket): void {
    const { organization } = this.#parts.agents
    try {
      const holder = this.#trust?.admit(socket)
      if (organization === undefined || holder?.organizations.includes(organization)) return
      throw refused(`the certificate of ${holder?.commonName} does not name ${organization}`)
    } catch (error) {
      throw error instanceof ClientDistrusted ? refused(error.message) : error
    }
  }

  /** One after another: a review asks the cluster, and whoever causes it has proven nothing yet. */
  async #reviewInTurn(
    metadata: CallRequest['metadata'],
    socket: Socket,
    signal: AbortSignal,
  ): Promise<UserInfo | undefined> {
    const check = this.#checkToken
    if (!check) return undefined
    const before = this.#reviews.get(socket) ?? Promise.resolve()
    const review = before.then(() => {
      if (signal.aborted) throw refused('it took too long or was given up')
      return check(metadata, signal)
    })
    const settled = review.catch(() => {}) // told to whoever waits for it
    this.#reviews.set(socket, settled)
    return review
  }

  #takePlace(socket: Socket): void {
    if (this.#placed.has(socket)) return
    const giveWay = new AgentRefused('the connection gave way to newer ones')
    const leave = this.#places.enter(this.peerOf(socket), () => socket.destroy(giveWay))
    if (!leave) throw refused('too many agents are connected')
    this.#placed.add(socket)
    socket.once('close', leave)
  }
}

function tokenCheckOf({ agents, view }: AgentAdmissionParts): AgentCheck | undefined {
  const { tokens, tls } = agents
  if (tokens) {
    if (!view) throw new TypeError('agents with tokens need a cluster that reviews them')
    return createTokenCheck({ view, ...tokens })
  }
  if (tls.clientCaFile === undefined) throw new TypeError('agents would need no credential at all')
  return undefined
}

function tokenWatchOf(
  check: AgentCheck,
  { agents, clock, log }: AgentAdmissionParts,
): TokenWatch | undefined {
  const { reviewEveryMs: everyMs = 0, cutsExpired = false } = agents.tokens ?? {}
  return everyMs > 0 ? new TokenWatch({ check, everyMs, cutsExpired, clock, log }) : undefined
}
