import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { ConnectionLimit } from './connection-limit.ts'
import { listen, portOf, stopListening, type TcpPlace } from './listen.ts'

/** What is answered at one path. */
export type PathHandler = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/** Far more than probes and scrapers open. */
const mostConnections = 250

/** A small HTTP server with a fixed set of paths. */
export class HttpEndpoint {
  readonly #purpose: string
  readonly #server: Server

  /** `purpose` names it in errors. */
  constructor(purpose: string, paths: Readonly<Record<string, PathHandler>>) {
    this.#purpose = purpose
    this.#server = createServer(
      {
        headersTimeout: 10_000,
        requestTimeout: 30_000,
        connectionsCheckingInterval: 5_000,
        maxHeaderSize: 16_384,
      },
      (request, response) => answer(paths, request, response),
    )
    new ConnectionLimit(mostConnections).watch(this.#server)
    // One connection that could not be accepted is no reason to die.
    this.#server.on('error', () => {})
  }

  /** The port that it has; 0 while it does not listen. */
  get port(): number {
    return portOf(this.#server)
  }

  /** Opens the port and says where it is. */
  listen(place: TcpPlace): Promise<string> {
    return listen(this.#server, place, this.#purpose)
  }

  async close(): Promise<void> {
    const closed = stopListening(this.#server)
    this.#server.closeAllConnections()
    await closed
  }
}

function answer(
  paths: Readonly<Record<string, PathHandler>>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const text = `http://localhost${request.url ?? ''}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  const handler = url && Object.hasOwn(paths, url.pathname) ? paths[url.pathname] : undefined
  if (!url || !handler) return sendText(response, 404, '404 page not found\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return sendText(response, 405, 'method not allowed\n')
  }
  handler(request, response, url)
}

/** Answers with plain text that no cache keeps. */
export function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(text)
}
