import type { Secret } from '../core/index.ts'
import type { ClientCertificate, RequestFn, TransportTls } from '../credentials/index.ts'
import {
  ClientConfigInvalid,
  Connections,
  checkTlsMaterial,
  createTransport,
  type RequestHeaders,
  staticTrust,
  type Transport,
} from '../credentials/transport/index.ts'
import { FunctionSource } from './function-source.ts'

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
