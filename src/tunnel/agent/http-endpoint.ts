import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { CommandFailed, systemErrorCode } from '../../core/index.ts'

/** What is answered at one path. */
export type PathHandler = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/** A small HTTP server with a fixed set of paths. */
export class HttpEndpoint {
  readonly #name: string
  readonly #server: Server

  constructor(name: string, paths: Readonly<Record<string, PathHandler>>) {
    this.#name = name
    this.#server = createServer(
      { headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16_384 },
      (request, response) => answer(paths, request, response),
    )
    // One connection that could not be accepted is no reason to die.
    this.#server.on('error', () => {})
  }

  /** Listens; an empty host stands for every address. Resolves with the port. */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen({ port, ...(host !== '' && { host }) })
    try {
      await once(this.#server, 'listening')
    } catch (cause) {
      const code = systemErrorCode(cause) ?? 'unknown error'
      const where = `${host === '' ? 'every address' : host}, port ${port}`
      const why = code === 'EADDRINUSE' ? 'the port is in use' : code
      throw new CommandFailed('LISTEN_FAILED', `cannot serve ${this.#name} on ${where}: ${why}`, {
        hint: 'choose another port or address, or stop the program that uses it',
        cause,
      })
    }
    const address = this.#server.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
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
