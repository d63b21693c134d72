import type { Credential, CredentialSource } from '../credential.ts'
import { AddressSet, parseServers } from './addresses.ts'
import { sameCertificate } from './dial.ts'
import { ConnectionFailed } from './errors.ts'
import { Generation, type Route } from './generation.ts'
import { defaultHeartbeat, type Heartbeat } from './http2-body.ts'
import { chooseProxy, type ProxyEnv } from './outbound-proxy.ts'
import type { RequestHeaders, RequestWrapper, TransportTls } from './types.ts'

const defaultMaxConnections = 100
const defaultConnectTimeoutMs = 10_000

/** How to reach a cluster and prove who one is. */
export interface ConnectionsOptions {
  /** The server's address, or all of them: the first names the cluster, the others are asked when it is gone. */
  readonly servers: string | readonly string[]
  readonly tls?: TransportTls
  /** Without it requests are anonymous. An `http://` server gets no credential. */
  readonly credentials?: CredentialSource
  /** Sends credentials to an `http://` server too, where anybody on the way can read them. */
  readonly allowHttp?: boolean
  readonly wrappers?: readonly RequestWrapper[]
  /** Sent with every request in place of the caller's, for example to impersonate; names in lower case. */
  readonly headers?: RequestHeaders
  /** The cluster's proxy; goes before those of `env`. */
  readonly proxyUrl?: string
  /** HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read from it. */
  readonly env?: ProxyEnv
  readonly disableCompression?: boolean
  /**
   * What goes by HTTP/2 if the server speaks it: with `auto`, the default, watches and followed logs, of which
   * many share a connection; with `2` everything; with `1.1` nothing. Short requests cost less by HTTP/1.1.
   */
  readonly http?: 'auto' | '1.1' | '2'
  /**
   * At most so many HTTP/1.1 connections for requests; watches and upgrades come on top. At most as many by
   * HTTP/2, each of which carries what the server allows.
   */
  readonly maxConnections?: number
  readonly connectTimeoutMs?: number
  /** How an HTTP/2 connection with an open request is found dead: a ping every 30 s, answered within 15. */
  readonly heartbeat?: Heartbeat
  /** How long requests of a replaced certificate may go on; they are cut at once unless given. */
  readonly graceMs?: number
}

/** A credential and the connections that prove it. */
export interface Identity {
  readonly credential: Credential | undefined
  readonly generation: Generation
}

/** The connections to one cluster: one generation for each client certificate, and only the newest serves. */
export class Connections {
  /** The address that names the cluster, for messages. */
  readonly server: string
  readonly options: ConnectionsOptions
  readonly route: Route
  readonly #source: CredentialSource | undefined
  readonly #replaced = new WeakSet<Credential>()
  readonly #leave: (() => void)[] = []
  #newest: Generation | undefined
  #destroyed = false
  #anonymous: Generation | undefined
  readonly #retired = new Set<WeakRef<Generation>>()

  constructor(options: ConnectionsOptions) {
    const { servers, tls = {}, credentials } = options
    const all = parseServers(typeof servers === 'string' ? [servers] : servers)
    const [first] = all
    this.options = options
    this.server = first.origin + first.basePath
    this.#source = first.tls || options.allowHttp ? credentials : undefined
    this.route = routeOf(all, options)
    const rotated = this.#source?.onRotate((next, previous) => this.#rotate(next, previous))
    const distrusted = tls.trust?.onChange(() => this.#closeIdle())
    for (const leave of [rotated, distrusted]) if (leave) this.#leave.push(leave)
  }

  /** Where the source is asked and a refusal is reported; absent if requests are anonymous. */
  get source(): CredentialSource | undefined {
    return this.#source
  }

  /** Who we are now. */
  async identity(signal?: AbortSignal): Promise<Identity> {
    return this.identityOf(await this.#source?.current(signal))
  }

  /** Whether a request with these headers goes without our credential and certificate: it brings its own. */
  isAnonymous(headers: RequestHeaders): boolean {
    return !this.#source || headers['authorization'] !== undefined
  }

  /** Who sends a request with these headers; their names are in lower case. */
  async identityFor(headers: RequestHeaders, signal?: AbortSignal): Promise<Identity> {
    if (!this.isAnonymous(headers)) return this.identity(signal)
    return { credential: undefined, generation: this.anonymous() }
  }

  /** A credential that the source has handed out, with its connections. */
  identityOf(credential: Credential | undefined): Identity {
    if (this.#destroyed) throw destroyed()
    if (!this.#newest || (credential && !this.#replaced.has(credential))) this.#renew(credential)
    return { credential, generation: this.#newest ?? this.anonymous() }
  }

  /** Connections that show no certificate, for requests that bring an identity of their own. */
  anonymous(): Generation {
    if (this.#destroyed) throw destroyed()
    if (this.#newest && !this.#newest.certificate) return this.#newest
    this.#anonymous ??= new Generation(this.route, undefined)
    return this.#anonymous
  }

  /** Goes to other addresses of the same cluster from now on; requests under way are not disturbed. */
  useServers(servers: readonly string[]): void {
    this.route.addresses.replace(servers)
    this.#closeIdle()
  }

  /** Cuts every connection, also those of earlier certificates, and leaves the source alone. */
  destroy(): void {
    for (const leave of this.#leave.splice(0)) leave()
    const reason = destroyed()
    this.#destroyed = true
    for (const retired of this.#retired) retired.deref()?.cut(reason)
    this.#newest?.cut(reason)
    this.#anonymous?.cut(reason)
    this.#newest = undefined
    this.#anonymous = undefined
  }

  #rotate(next: Credential, previous: Credential): void {
    this.#replaced.add(previous)
    if (this.#newest) this.#renew(next)
  }

  #renew(credential: Credential | undefined): void {
    const certificate = credential?.clientCertificate
    const old = this.#newest
    if (old && sameCertificate(old.certificate, certificate)) return
    this.#newest = new Generation(this.route, certificate)
    if (!old) return
    old.retire(this.options.graceMs ?? 0)
    for (const each of this.#retired) if (!each.deref()) this.#retired.delete(each)
    this.#retired.add(new WeakRef(old))
  }

  #closeIdle(): void {
    this.#newest?.closeIdle()
    this.#anonymous?.closeIdle()
  }
}

const destroyed = (): ConnectionFailed =>
  new ConnectionFailed('the connections to the cluster were closed by their owner')

function routeOf(
  all: ReturnType<typeof parseServers>,
  { tls = {}, connectTimeoutMs, maxConnections, heartbeat, http, ...proxies }: ConnectionsOptions,
): Route {
  const [first] = all
  return {
    addresses: new AddressSet(all),
    proxy: chooseProxy(first, proxies),
    tls,
    connectTimeoutMs: connectTimeoutMs ?? defaultConnectTimeoutMs,
    maxConnections: maxConnections ?? defaultMaxConnections,
    heartbeat: heartbeat ?? defaultHeartbeat,
    http2: http === '1.1' || !first.tls ? false : undefined,
  }
}
