import {
  errorCode,
  type HeaderField,
  type Http2Connection,
  type Http2Stream,
  type StreamEnding,
} from '../../grpc/http2/index.ts'
import { encodeGrpcMessage, fieldsOf, grpcContentType, grpcStatus } from '../../grpc/index.ts'
import type { StreamEnd } from '../link/grpc-link.ts'
import { LinkBroken } from './errors.ts'

const trailersOf = (status: number, message: string): HeaderField[] => [
  ['grpc-status', String(status)],
  ...fieldsOf(message === '' ? {} : { 'grpc-message': encodeGrpcMessage(message) }),
]

/** Answers without a message: headers and trailers in one. */
export function refuseStream(
  stream: Http2Stream,
  refusal: { readonly httpStatus?: number; readonly grpcStatus: number; readonly message: string },
): void {
  stream.refuse([
    [':status', String(refusal.httpStatus ?? 200)],
    ['content-type', grpcContentType],
    ...trailersOf(refusal.grpcStatus, refusal.message),
  ])
}

/** The server's end of a stream that has been let in. */
export class ServerStream implements StreamEnd {
  readonly #stream: Http2Stream
  readonly #connection: Http2Connection
  #isOrderly = false

  constructor(stream: Http2Stream, connection: Http2Connection) {
    this.#stream = stream
    this.#connection = connection
  }

  respond(metadata: Readonly<Record<string, string>>): void {
    this.#stream.sendHeaders([
      [':status', '200'],
      ['content-type', grpcContentType],
      ...fieldsOf(metadata),
    ])
  }

  finish(): void {
    this.#isOrderly = true
    this.#stream.end(trailersOf(grpcStatus.ok, ''))
  }

  abort(error: Error | undefined): void {
    this.#stream.end(trailersOf(grpcStatus.unknown, error?.message ?? ''))
    this.#stream.reset(errorCode.NO_ERROR)
    // A peer that is silent will not fetch the trailers either.
    if (error instanceof LinkBroken) this.#connection.destroy(error)
  }

  verdict({ error, resetCode }: StreamEnding): Error | undefined {
    // A Go client that is done cancels its stream or says GOAWAY.
    if (this.#isOrderly || this.#connection.wentAway) return undefined
    if (resetCode === errorCode.CANCEL || resetCode === errorCode.NO_ERROR) return undefined
    if (resetCode !== undefined) return new LinkBroken('the other end reset the link')
    return error ?? new LinkBroken('the connection of the other end was lost')
  }
}
