import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Secret, systemErrorCode } from '../core/index.ts'
import { ClientConfigInvalid, connectionFailed } from './client-errors.ts'
import type { RequestHeaders, Transport, TransportRequest, TransportResponse } from './transport.ts'

/** Less than any API server keeps an idle connection, so that we rarely write into a closed one. */
const idleMs = 30_000
/** After this silence the kernel asks whether the server is still there. */
const keepAliveMs = 15_000

/** How to reach an API server and prove who one is. */
export interface HttpsTransportOptions {
  /** An https address; a path in it goes before every request's path. */
  readonly server: string
  /** Whom to believe; without it the roots that Node.js knows. */
  readonly caPem?: string
  readonly clientCertPem?: string
  readonly clientKeyPem?: Secret
  /** Asked for every request, so that tokens may rotate. */
  readonly token?: () => Secret | undefined | Promise<Secret | undefined>
  /** The name that the server's certificate must have, if it is not the one in `server`. */
  readonly serverName?: string
  /** Believes any server: whoever sits in between reads and changes everything. */
  readonly insecureSkipTlsVerify?: boolean
  /** Sent with every request, for example to impersonate. */
  readonly headers?: RequestHeaders
}

/** A transport of HTTP/1.1 over TLS that keeps its connections; it follows no redirects. */
export function httpsTransport(options: HttpsTransportOptions): Transport {
  return new HttpsTransport(options)
}

class HttpsTransport implements Transport {
  readonly server: string
  readonly #options: HttpsTransportOptions
  readonly #target: { readonly host: string; readonly port: string; readonly basePath: string }
  readonly #agent: Agent

  constructor(options: HttpsTransportOptions) {
    const url = serverUrl(options.server)
    const basePath = url.pathname.replace(/\/+$/, '')
    this.server = url.origin + basePath
    this.#options = options
    // A URL writes IPv6 addresses in brackets, a socket does not.
    const host = url.hostname.replace(/^\[|\]$/g, '')
    this.#target = { host, port: url.port || '443', basePath }
    this.#agent = new Agent({
      keepAlive: true,
      timeout: idleMs,
      secureContext: secureContext(options),
      rejectUnauthorized: options.insecureSkipTlsVerify !== true,
      ...(options.serverName !== undefined && { servername: options.serverName }),
    })
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    request.signal.throwIfAborted()
    const headers = { ...request.headers, ...(await this.#identity()) }
    for (;;) {
      const outgoing = this.#open(request, headers)
      try {
        const response = await answerTo(outgoing, request.body)
        return { status: response.statusCode ?? 0, headers: response.headers, body: response }
      } catch (error) {
        request.signal.throwIfAborted()
        if (!mayRepeat(outgoing, request, error)) throw connectionFailed(this.server, error)
      }
    }
  }

  destroy(): void {
    this.#agent.destroy()
  }

  /** Set last, so that no request can claim another identity. */
  async #identity(): Promise<RequestHeaders> {
    const token = await this.#options.token?.()
    return { ...this.#options.headers, ...(token && { authorization: bearer(token) }) }
  }

  #open(request: TransportRequest, headers: RequestHeaders): ClientRequest {
    const { host, port, basePath } = this.#target
    const outgoing = httpsRequest({
      host,
      port,
      agent: this.#agent,
      method: request.method,
      path: basePath + request.path,
      headers: headers as Record<string, string | string[]>,
      signal: request.signal,
    })
    outgoing.once('socket', (socket) => socket.setKeepAlive(true, keepAliveMs))
    return outgoing
  }
}

function bearer(token: Secret): string {
  const text = token.reveal()
  if (/^[\x21-\x7e]+$/.test(text)) return `Bearer ${text}`
  throw new ClientConfigInvalid('the token is empty or has characters that no header can carry')
}

function answerTo(outgoing: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.on('error', reject) // stays: a cut after the answer's head is reported here as well
    outgoing.end(body)
  })
}

/** A kept connection that the server has just closed says nothing about the server; reads go again. */
function mayRepeat(outgoing: ClientRequest, request: TransportRequest, error: unknown): boolean {
  const code = systemErrorCode(error)
  const closed = code === 'ECONNRESET' || code === 'EPIPE'
  return outgoing.reusedSocket && closed && request.method === 'GET'
}

function serverUrl(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url?.protocol !== 'https:')
    throw new ClientConfigInvalid('the address of the API server must begin with https://')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new ClientConfigInvalid(
      'the address of the API server must have no user, password, query or fragment',
    )
  return url
}

function secureContext(options: HttpsTransportOptions): SecureContext {
  const { caPem, clientCertPem, clientKeyPem } = options
  if ((clientCertPem === undefined) !== (clientKeyPem === undefined))
    throw new ClientConfigInvalid('a client certificate and its key must be given together')
  try {
    return createSecureContext({
      minVersion: 'TLSv1.2',
      ...(caPem !== undefined && { ca: caPem }),
      ...(clientCertPem !== undefined && { cert: clientCertPem }),
      ...(clientKeyPem !== undefined && { key: clientKeyPem.reveal() }),
    })
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown'
    throw new ClientConfigInvalid(
      `the CA, the client certificate or its key cannot be used (${code})`,
      { cause },
    )
  }
}
