import type { Agent } from 'node:https'
import {
  authorizationOf,
  ClientConfigInvalid,
  type Connections,
  createAgent,
  createTransport,
  pathBelow,
  type RequestHeaders,
  type Transport,
  withIdentity,
} from '../transport/index.ts'

/** What is used of the module `@kubernetes/client-node` 1.x. */
export interface ClientNodeModule {
  readonly ServerConfiguration: new (url: string, variables: Record<string, string>) => unknown
  readonly ResponseContext: new (
    status: number,
    headers: Record<string, string>,
    body: { text(): Promise<string>; binary(): Promise<Buffer> },
  ) => unknown
  createConfiguration(options: object): unknown
  wrapHttpLibrary(library: { send(request: ClientNodeRequest): Promise<unknown> }): unknown
}

/** A request as its generated code makes it. */
interface ClientNodeRequest {
  getUrl(): string
  getHttpMethod(): string
  getHeaders(): Record<string, string>
  getBody(): unknown
  getSignal(): AbortSignal | undefined
}

/** What is used of its KubeConfig. */
export interface ClientNodeConfig {
  getCurrentCluster(): { readonly server: string } | null
}

/** What its KubeConfig fills in for watches, logs and WebSockets. */
interface HttpsOptions {
  headers?: RequestHeaders | undefined
  agent?: unknown
}

/** A request that waits for its identity, in the other half of its code. */
interface SecurityContext {
  setHeaderParam(name: string, value: string): void
  setAgent(agent: Agent): void
}

/**
 * Lets a KubeConfig of `@kubernetes/client-node` use our connections and credentials: API clients that it
 * makes from now on, watches, informers, logs, exec, attach and port-forward. API requests are replayed
 * after a 401; for the others, whose requests are made elsewhere, the next one has the new credential.
 * The package itself is not changed, only this object.
 */
export function connectKubeConfig<Config extends ClientNodeConfig>(
  clientNode: ClientNodeModule,
  config: Config,
  connections: Connections,
): Config {
  const { server = '' } = config.getCurrentCluster() ?? {}
  if (!URL.canParse(server) || new URL(server).origin !== new URL(connections.server).origin)
    throw new ClientConfigInvalid(
      `the current cluster of the KubeConfig is not ${connections.server}, where these connections go`,
    )
  const agent = createAgent(connections)
  const library = clientNode.wrapHttpLibrary(httpLibrary(clientNode, connections))
  return Object.assign(config, {
    makeApiClient: <Client>(type: new (configuration: unknown) => Client): Client =>
      new type(
        clientNode.createConfiguration({
          baseServer: new clientNode.ServerConfiguration(connections.server, {}),
          authMethods: { default: identifiedElsewhere },
          httpApi: library,
        }),
      ),
    applyToHTTPSOptions: async (options: HttpsOptions): Promise<void> => {
      options.headers = await identityHeaders(connections, options.headers ?? {})
      options.agent = agent
    },
    applySecurityAuthentication: async (context: SecurityContext): Promise<void> => {
      for (const [name, value] of Object.entries(await identityHeaders(connections, {})))
        context.setHeaderParam(name, String(value))
      context.setAgent(agent)
    },
  })
}

/** The library below sets the identity, for a header that is there already would not be renewed. */
const identifiedElsewhere = {
  getName: (): string => 'sallyport',
  applySecurityAuthentication: async (): Promise<void> => {},
}

async function identityHeaders(
  connections: Connections,
  headers: RequestHeaders,
): Promise<RequestHeaders> {
  const { credential } = await connections.identity()
  return withIdentity(
    headers,
    connections.options.headers,
    credential && authorizationOf(credential),
  )
}

/** Sends the requests of its generated code. */
function httpLibrary(clientNode: ClientNodeModule, connections: Connections) {
  const transport = createTransport(connections)
  return {
    send: async (request: ClientNodeRequest): Promise<unknown> => {
      const { status, headers, body } = await sendWith(transport, connections, request)
      const chunks: Buffer[] = []
      for await (const chunk of body) chunks.push(chunk as Buffer)
      const bytes = Buffer.concat(chunks)
      const flat = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
      return new clientNode.ResponseContext(status, Object.fromEntries(flat), {
        text: async () => bytes.toString('utf8'),
        binary: async () => bytes,
      })
    },
  }
}

async function sendWith(
  transport: Transport,
  connections: Connections,
  request: ClientNodeRequest,
): ReturnType<Transport['send']> {
  const headers = Object.entries(request.getHeaders()).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  )
  const body = bytesOf(request.getBody())
  return transport.send({
    method: request.getHttpMethod(),
    path: pathBelow(connections, new URL(request.getUrl())),
    headers: Object.fromEntries(headers),
    ...(body && { body }),
    signal: request.getSignal() ?? new AbortController().signal,
  })
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  throw new TypeError('a request to the cluster has a body that is neither text nor bytes')
}

/** What an authenticator of `@kubernetes/client-node` may set. */
interface AuthenticatorOptions {
  headers?: unknown
  cert?: unknown
  key?: unknown
}

/** Its interface `Authenticator`, for `KubeConfig.addAuthenticator`. */
export interface ClientNodeAuthenticator {
  isAuthProvider(user: unknown): boolean
  applyAuthentication(user: unknown, options: AuthenticatorOptions): Promise<void>
}

/**
 * Hands our credential to a KubeConfig that otherwise stays as it is, with a connection for each request. It is
 * asked only for users that the package has no way of its own for; `connectKubeConfig` has no such limits.
 */
export function clientNodeAuthenticator(connections: Connections): ClientNodeAuthenticator {
  return {
    isAuthProvider: () => true,
    applyAuthentication: async (_user, options) => {
      const { credential } = await connections.identity()
      if (!credential) return
      const authorization = authorizationOf(credential)
      if (authorization !== undefined)
        options.headers = { ...Object(options.headers), Authorization: authorization }
      const { clientCertificate } = credential
      if (!clientCertificate) return
      options.cert = clientCertificate.certPem
      options.key = clientCertificate.keyPem.reveal()
    },
  }
}
