import type { Secret } from '../core/index.ts'
import type {
  ClientCertificate,
  ContextHost,
  Credential,
  CredentialSource,
  RequestFn,
  TransportTls,
} from '../credentials/index.ts'
import {
  ClientConfigInvalid,
  Connections,
  checkTlsMaterial,
  createTransport,
  type RequestHeaders,
  staticTrust,
  type Transport,
} from '../credentials/transport/index.ts'
import type { ResolvedContext } from '../kubeconfig/index.ts'

export type {
  RequestHeaders,
  Transport,
  TransportRequest,
  TransportResponse,
} from '../credentials/transport/index.ts'

type TokenFunction = () => Secret | undefined | Promise<Secret | undefined>

/** A certificate that stays and a token that a function of the caller hands out. */
export class FunctionSource implements CredentialSource {
  readonly #certificate: ClientCertificate | undefined
  readonly #token: TokenFunction | undefined

  constructor(certificate: ClientCertificate | undefined, token: TokenFunction | undefined) {
    this.#certificate = certificate
    this.#token = token
  }

  async current(): Promise<Credential> {
    const token = await this.#token?.()
    return {
      ...(token && { token }),
      ...(this.#certificate && { clientCertificate: this.#certificate }),
    }
  }

  async renew(used: Credential): Promise<Credential | undefined> {
    const next = await this.current()
    return next.token?.reveal() === used.token?.reveal() ? undefined : next
  }

  /** Only the token can change, and no connection depends on that. */
  onRotate(): () => void {
    return () => {}
  }

  dispose(): void {}
}

/** How to reach an API server and prove who one is. */
export interface HttpsTransportOptions {
  /** An https address; a path in it goes before every request's path. */
  readonly server: string
  /** Whom to believe; without it the roots that Node.js knows. */
  readonly caPem?: string
  readonly clientCertPem?: string
  readonly clientKeyPem?: Secret
  /** Asked for every request, so that tokens may rotate, and once more when the server refuses one. */
  readonly token?: () => Secret | undefined | Promise<Secret | undefined>
  /** The name that the server's certificate must have, if it is not the one in `server`. */
  readonly serverName?: string
  /** Believes any server: whoever sits in between reads and changes everything. */
  readonly insecureSkipTlsVerify?: boolean
  /** Sent with every request, for example to impersonate. */
  readonly headers?: RequestHeaders
}

/** A transport over TLS that keeps its connections; it follows no redirects. */
export function httpsTransport(options: HttpsTransportOptions): Transport {
  const certificate = certificateOf(options)
  checkTlsMaterial(options.caPem, certificate)
  const connections = new Connections({
    servers: options.server,
    tls: tlsOf(options),
    credentials: new FunctionSource(certificate, options.token),
    wrappers: [withoutOwnAuthorization],
    ...(options.headers && { headers: options.headers }),
  })
  if (connections.server.startsWith('https:')) return createTransport(connections)
  throw new ClientConfigInvalid('the address of the API server must begin with https://')
}

function tlsOf({ caPem, serverName, insecureSkipTlsVerify }: HttpsTransportOptions): TransportTls {
  return {
    ...(caPem !== undefined && { trust: staticTrust(caPem) }),
    ...(serverName !== undefined && { serverName }),
    ...(insecureSkipTlsVerify && { insecureSkipVerify: true }),
  }
}

function certificateOf(options: HttpsTransportOptions): ClientCertificate | undefined {
  const { clientCertPem: certPem, clientKeyPem: keyPem } = options
  if (certPem !== undefined && keyPem) return { certPem, keyPem }
  if (certPem === undefined && !keyPem) return undefined
  throw new ClientConfigInvalid('a client certificate and its key must be given together')
}

/** Whoever makes the transport says who uses it; a request cannot claim another identity. */
const withoutOwnAuthorization =
  (next: RequestFn): RequestFn =>
  (request) => {
    const { authorization: _, ...headers } = request.headers
    return next({ ...request, headers })
  }

/** The cluster and the user that a context names, and what else is known of it. */
export type ClusterContext = Pick<ResolvedContext, 'cluster' | 'user'> & Partial<ResolvedContext>

/**
 * A transport for a context of a kubeconfig, with everything that it says: plugins, files, proxies, addresses.
 * Plugins run under this process unless a host is given. Nothing is read or run before the first request.
 */
export async function transportFromKubeconfig(
  context: ClusterContext,
  host?: ContextHost,
): Promise<Transport> {
  // Loaded here, so that a client without a kubeconfig does not pay for plugins and files.
  const { connectContext } = await import('../credentials/provider/index.ts')
  const connections = await connectContext(
    { ...nameless, ...context },
    host ?? (await thisProcess()),
  )
  const { credentials, tls } = connections.options
  return {
    ...createTransport(connections),
    destroy: () => {
      connections.destroy()
      credentials?.dispose()
      tls?.trust?.dispose()
    },
  }
}

const nameless = { contextName: '', clusterName: '', userName: '', namespace: 'default' }

async function thisProcess(): Promise<ContextHost> {
  const { nodePluginHost } = await import('../credentials/exec/index.ts')
  const plugins = nodePluginHost()
  return { plugins, proxyEnv: plugins.env }
}
