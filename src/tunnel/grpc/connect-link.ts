import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import type { Socket } from 'node:net'
import {
  agreed,
  capabilityHeader,
  formatCapabilities,
  type Link,
  parseCapabilities,
} from '../link/index.ts'
import { LinkBroken, LinkRefused, LinkUnreachable } from './errors.ts'
import { decodeGrpcMessage, grpcStatus } from './grpc-status.ts'
import type { StreamEnd } from './http2-carrier.ts'
import {
  connectionWindowBytes,
  grpcContentType,
  http2Settings,
  maxSessionMemory,
} from './http2-settings.ts'
import { linkOfStream } from './link-of-stream.ts'
import { nameOfPeer, openSocket } from './open-socket.ts'
import type { ConnectLinkOptions } from './options.ts'
import { metadataOf } from './raw-metadata.ts'

const defaultHandshakeTimeoutMs = 10_000
/** How long the other end may take to end a stream that we have ended. */
const closeGraceMs = 2_000

function openSession(options: ConnectLinkOptions, socket: Socket): ClientHttp2Session {
  const scheme = options.tls === 'cleartext' ? 'http' : 'https'
  const authority = options.socketPath ? 'localhost' : nameOfPeer(options)
  const session = connect(`${scheme}://${authority}`, {
    createConnection: () => socket,
    settings: http2Settings,
    maxSessionMemory,
  })
  session.setLocalWindowSize(connectionWindowBytes)
  // Whatever happens to the session is seen at its only stream as well.
  session.on('error', () => {})
  return session
}

function request(options: ConnectLinkOptions, session: ClientHttp2Session): ClientHttp2Stream {
  const stream = session.request(
    {
      ...options.metadata,
      ...(options.capabilities.length > 0 && {
        [capabilityHeader]: formatCapabilities(options.capabilities),
      }),
      ':method': 'POST',
      ':path': options.path ?? '/AgentService/Connect',
      'content-type': grpcContentType,
      te: 'trailers',
    },
    { endStream: false },
  )
  stream.on('error', () => {})
  return stream
}

interface Answer {
  readonly headers: IncomingHttpHeaders & { ':status'?: number }
  readonly rawHeaders: readonly string[]
}

function answerOf(
  stream: ClientHttp2Stream,
  options: ConnectLinkOptions,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown): void => {
      reject(new LinkUnreachable(nameOfPeer(options), why, cause))
    }
    const aborted = (): void => fail('it took too long or was given up')
    signal.addEventListener('abort', aborted, { once: true })
    stream.once('error', (error) => fail(error.message, error))
    stream.once('close', () => {
      signal.removeEventListener('abort', aborted)
      fail('the connection was closed before there was an answer')
    })
    stream.once(
      'response',
      (headers: IncomingHttpHeaders, _flags: number, rawHeaders?: unknown) => {
        signal.removeEventListener('abort', aborted)
        resolve({ headers, rawHeaders: Array.isArray(rawHeaders) ? rawHeaders.map(String) : [] })
      },
    )
    if (signal.aborted) aborted()
  })
}

function check({ headers }: Answer, options: ConnectLinkOptions): void {
  const where = nameOfPeer(options)
  const status = headers['grpc-status']
  if (status !== undefined) {
    const text = decodeGrpcMessage(String(headers['grpc-message'] ?? ''))
    throw new LinkRefused(where, Number(status), text || `gRPC status ${String(status)}`)
  }
  if (headers[':status'] !== 200)
    throw new LinkUnreachable(where, `it answered with HTTP status ${headers[':status']}`)
  if (!headers['content-type']?.startsWith(grpcContentType))
    throw new LinkUnreachable(where, 'it does not speak gRPC')
}

/** Why the peer's part of a stream ended, seen from the client. */
function clientEnd(session: ClientHttp2Session, stream: ClientHttp2Stream): StreamEnd {
  let trailers: IncomingHttpHeaders | undefined
  let isOurs = false
  let wentAway = false
  stream.once('trailers', (received) => {
    trailers = received
  })
  // grpc-go's last word before it closes a connection; no failure.
  session.once('goaway', (code) => {
    wentAway = code === constants.NGHTTP2_NO_ERROR
  })
  stream.once('close', () => session.destroy())
  return {
    finish: () => {
      isOurs = true
      stream.end()
      setTimeout(() => session.destroy(), closeGraceMs).unref()
    },
    abort: () => {
      isOurs = true
      session.destroy()
    },
    verdict: () => {
      const status = Number(trailers?.['grpc-status'] ?? grpcStatus.ok)
      if (status !== grpcStatus.ok)
        return new LinkBroken(
          `the server ended the link: ${decodeGrpcMessage(String(trailers?.['grpc-message'] ?? ''))}`,
        )
      if (trailers || isOurs || wentAway) return undefined
      return new LinkBroken('the connection to the server was lost')
    },
  }
}

/** Opens a link; rejects with LinkRefused or LinkUnreachable. */
export async function connectLink(options: ConnectLinkOptions): Promise<Link> {
  const timeout = AbortSignal.timeout(options.handshakeTimeoutMs ?? defaultHandshakeTimeoutMs)
  const signal = AbortSignal.any([options.signal, timeout])
  const socket = await openSocket(options, signal)
  const session = openSession(options, socket)
  try {
    const stream = request(options, session)
    const end = clientEnd(session, stream)
    const answer = await answerOf(stream, options, signal)
    check(answer, options)
    const metadata = metadataOf(answer.rawHeaders)
    const capabilities = agreed(options.capabilities, parseCapabilities(metadata[capabilityHeader]))
    const side = options.path === '/ProxyService/Proxy' ? 'front-end' : 'agent'
    return linkOfStream({ stream, end, side, capabilities, metadata }, options)
  } catch (error) {
    session.destroy()
    throw error
  }
}
