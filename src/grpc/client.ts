import { excerpt, onAbort, systemClock } from '../core/index.ts'
import {
  authorityOf,
  type GrpcTarget,
  openSocket,
  targetName,
  unreachableReason,
} from './connect.ts'
import {
  type HeaderField,
  Http2Connection,
  type Http2Stream,
  type StreamClosure,
} from './http2/index.ts'
import { encodeMessage, GrpcMessageError, MessageReader } from './messages.ts'
import {
  fieldsOf,
  GrpcError,
  type GrpcFailure,
  grpcContentType,
  grpcStatus,
  headerOf,
  type Metadata,
  metadataOf,
  statusIn,
  UnreachableError,
} from './status.ts'

/** Received messages that may wait for their reader; above, the server's window is not opened again. */
const maxUnreadBytes = 1024 * 1024

const closedReason =
  'connection closed before a response; the server may not trust the client certificate'

/** A request of a client and the response headers; messages are up to the caller. */
export class ClientStream {
  readonly connection: Http2Connection
  readonly stream: Http2Stream
  /** Metadata of the response. Rejects with GrpcError if the server refused the call, else with UnreachableError. */
  readonly response: Promise<Metadata>
  /** The status in the trailers, or in a response without messages. */
  status: GrpcFailure | undefined
  /** Why the response cannot be used. */
  failure: Error | undefined

  constructor(
    connection: Http2Connection,
    target: GrpcTarget,
    path: string,
    metadata: readonly HeaderField[],
  ) {
    this.connection = connection
    this.stream = connection.open([
      [':method', 'POST'],
      [':scheme', target.tls === 'cleartext' ? 'http' : 'https'],
      [':path', path],
      [':authority', authorityOf(target)],
      ['content-type', grpcContentType],
      ['te', 'trailers'],
      ...metadata,
    ])
    this.response = new Promise((resolve, reject) => {
      let hasResponse = false
      this.stream.observe({
        headers: (fields) => {
          // An informational response is followed by the final one.
          if (headerOf(fields, ':status')?.startsWith('1')) return
          this.status = statusIn(fields)
          if (!hasResponse) {
            hasResponse = true
            this.failure = problemOf(fields, targetName(target))
            if (this.failure) reject(this.failure)
            else resolve(metadataOf(fields))
          }
        },
        closed: (closure) => {
          const reason = closure.error ? unreachableReason(closure.error) : closedReason
          reject(new UnreachableError(targetName(target), reason, closure.error))
        },
      })
    })
    // A caller that only reads messages learns of the failure there.
    this.response.catch(() => {})
  }
}

function problemOf(fields: readonly HeaderField[], server: string): Error | undefined {
  const refused = statusIn(fields)
  if (refused && refused.grpcStatus !== grpcStatus.ok) return new GrpcError(server, refused)
  const status = headerOf(fields, ':status')
  if (status !== '200')
    return new UnreachableError(
      server,
      `server responded with HTTP status ${excerpt(status ?? '')}`,
    )
  if (!headerOf(fields, 'content-type')?.startsWith(grpcContentType))
    return new UnreachableError(server, 'server does not speak gRPC')
  return undefined
}

/** Options of one call. */
export interface CallOptions {
  readonly metadata?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Sent as `grpc-timeout` and enforced here; no deadline if absent. */
  readonly timeoutMs?: number
  /** Default 4 MiB. */
  readonly maxMessageBytes?: number
}

/** A call with messages in both directions. */
export class GrpcCall {
  readonly #server: string
  readonly #stream: ClientStream
  readonly #reader: MessageReader
  readonly #release: () => void
  #messages: Buffer[] = []
  #unreadBytes = 0
  /** Set once the call is over. */
  #outcome: { readonly error?: Error } | undefined
  #wake: () => void = () => {}

  constructor(stream: ClientStream, server: string, options: CallOptions) {
    this.#server = server
    this.#stream = stream
    this.#reader = new MessageReader((message) => this.#received(message), options.maxMessageBytes)
    const cancel = (status: number, message: string) => (): void =>
      this.#end(new GrpcError(server, { grpcStatus: status, message }))
    const { signal, timeoutMs } = options
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(cancel(grpcStatus.deadlineExceeded, 'deadline exceeded'), timeoutMs)
    const aborted = cancel(grpcStatus.cancelled, 'cancelled by the caller')
    const removeListener = onAbort(signal, aborted)
    this.#release = () => {
      clearTimeout(timer)
      removeListener()
    }
    stream.response.catch((error: Error) => this.#end(error))
    stream.stream.start({
      data: (chunk) => this.#receive(chunk),
      finished: () => this.#end(this.#errorOf({})),
      progress: () => {},
      closed: (closure) => this.#end(this.#errorOf(closure)),
    })
    if (signal.aborted) aborted()
  }

  /** Metadata of the response. */
  get response(): Promise<Metadata> {
    return this.#stream.response
  }

  send(message: Buffer): void {
    this.#stream.stream.write([encodeMessage(message)])
  }

  /** Ends our messages; the server's go on. */
  end(): void {
    this.#stream.stream.end()
  }

  cancel(): void {
    const failure = { grpcStatus: grpcStatus.cancelled, message: 'cancelled' }
    this.#end(new GrpcError(this.#server, failure))
  }

  /**
   * The server's messages in order; ends with status OK. Leaving the loop cancels the call.
   * @throws GrpcError
   * @throws UnreachableError if the server does not speak gRPC
   */
  async *messages(): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const message = this.#messages.shift()
        if (message) {
          this.#consumed(message.length)
          yield message
        } else if (this.#outcome?.error) throw this.#outcome.error
        else if (this.#outcome) return
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      if (!this.#outcome) this.cancel()
    }
  }

  #receive(chunk: Buffer): void {
    if (this.#outcome) return
    if (this.#stream.failure) {
      this.#end(this.#stream.failure)
      return
    }
    try {
      this.#reader.push(chunk)
    } catch (error) {
      if (!(error instanceof GrpcMessageError)) throw error
      const failure = { grpcStatus: grpcStatus.internal, message: error.message }
      this.#end(new GrpcError(this.#server, failure, error))
    }
  }

  #received(message: Buffer): void {
    this.#messages.push(message)
    this.#unreadBytes += message.length
    if (this.#unreadBytes > maxUnreadBytes) this.#stream.stream.throttle(true)
    this.#wake()
  }

  #consumed(bytes: number): void {
    const before = this.#unreadBytes
    this.#unreadBytes -= bytes
    if (before > maxUnreadBytes && this.#unreadBytes <= maxUnreadBytes)
      this.#stream.stream.throttle(false)
  }

  #errorOf({ error, resetCode }: StreamClosure): Error | undefined {
    const { status, failure } = this.#stream
    if (failure) return failure
    if (status?.grpcStatus === grpcStatus.ok && this.#reader.isComplete) return undefined
    if (status && status.grpcStatus !== grpcStatus.ok) return new GrpcError(this.#server, status)
    const message =
      resetCode === undefined
        ? `call ended without a status${error ? `: ${unreachableReason(error)}` : ''}`
        : `server reset the stream with HTTP/2 error code ${resetCode}`
    return new GrpcError(this.#server, { grpcStatus: grpcStatus.unavailable, message }, error)
  }

  /** The call is over; the stream is reset if it is still open. */
  #end(error: Error | undefined): void {
    if (this.#outcome) return
    this.#release()
    this.#outcome = error ? { error } : {}
    this.#stream.stream.cancel()
    this.#wake()
  }
}

/** A connection to a gRPC server, with any number of calls at a time. */
export class GrpcConnection {
  readonly #target: GrpcTarget
  readonly http2: Http2Connection
  /** Resolves when the connection has closed. */
  readonly closed: Promise<Error | undefined>

  private constructor(
    target: GrpcTarget,
    http2: Http2Connection,
    closed: Promise<Error | undefined>,
  ) {
    this.#target = target
    this.http2 = http2
    this.closed = closed
  }

  /** @throws UnreachableError */
  static async connect(target: GrpcTarget, signal: AbortSignal): Promise<GrpcConnection> {
    const socket = await openSocket(target, signal)
    let resolveClosed: (error: Error | undefined) => void = () => {}
    const closed = new Promise<Error | undefined>((resolve) => {
      resolveClosed = resolve
    })
    const http2 = new Http2Connection(
      socket,
      {
        side: 'client',
        maxStreams: 0,
        clock: systemClock,
        ...(target.maxFrameBytes !== undefined && { maxFrameBytes: target.maxFrameBytes }),
      },
      { request: () => {}, idle: () => {}, closed: resolveClosed },
    )
    return new GrpcConnection(target, http2, closed)
  }

  /** Opens a stream whose bytes the caller reads and writes itself. */
  openStream(path: string, metadata: Readonly<Record<string, string>>): ClientStream {
    return new ClientStream(this.http2, this.#target, path, fieldsOf(metadata))
  }

  /** Begins a call of a streaming method, for example `/etcdserverpb.Watch/Watch`. @throws GrpcError */
  call(path: string, options: CallOptions): GrpcCall {
    const server = targetName(this.#target)
    if (this.http2.isGoingAway || this.http2.streamCount >= this.http2.maxPeerStreams) {
      const message = 'server accepts no more streams on this connection'
      throw new GrpcError(server, { grpcStatus: grpcStatus.unavailable, message })
    }
    const { metadata = {}, timeoutMs } = options
    const stream = this.openStream(path, {
      ...(timeoutMs !== undefined && { 'grpc-timeout': `${Math.ceil(timeoutMs)}m` }),
      ...metadata,
    })
    return new GrpcCall(stream, server, options)
  }

  /** Calls a unary method. @throws GrpcError */
  async unary(path: string, request: Buffer, options: CallOptions): Promise<Buffer> {
    const call = this.call(path, options)
    call.send(request)
    call.end()
    const responses: Buffer[] = []
    for await (const message of call.messages()) responses.push(message)
    const [response] = responses
    if (response && responses.length === 1) return response
    const message = `server sent ${responses.length} messages in response to a unary call`
    throw new GrpcError(targetName(this.#target), { grpcStatus: grpcStatus.internal, message })
  }

  /** Sends GOAWAY and closes; calls under way fail. */
  close(): void {
    this.http2.close()
  }

  destroy(error?: Error): void {
    this.http2.destroy(error)
  }
}
