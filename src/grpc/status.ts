import { excerpt, SallyportError } from '../core/index.ts'
import type { HeaderField } from './http2/index.ts'

/** Status codes of gRPC. */
export const grpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const

/** A status other than OK and its message. */
export interface GrpcFailure {
  readonly grpcStatus: number
  readonly message: string
}

/** A call ended with a status other than OK: the server's, or ours where it sent none. */
export class GrpcError extends SallyportError {
  readonly code = 'GRPC_ERROR'
  readonly grpcStatus: number
  /** The message without the name of the server. */
  readonly text: string

  constructor(server: string, { grpcStatus, message }: GrpcFailure, cause?: unknown) {
    super(`call to ${server} failed: ${message} (gRPC status ${grpcStatus})`, { cause })
    this.grpcStatus = grpcStatus
    this.text = message
  }
}

/** No connection to the server, or the server does not speak gRPC. */
export class UnreachableError extends SallyportError {
  readonly code = 'GRPC_UNREACHABLE'
  /** The cause without the name of the server. */
  readonly reason: string

  constructor(server: string, reason: string, cause?: unknown) {
    super(`cannot connect to ${server}: ${reason}`, { cause })
    this.reason = reason
  }
}

/** Messages are for people; quotes of a peer are shorter still. */
const maxMessageBytes = 1_024

/** Encodes a message for `grpc-message`: percent-encoded where it is not plain ASCII. */
const encodeGrpcMessage = (text: string): string =>
  [...Buffer.from(text).subarray(0, maxMessageBytes)]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('')

/** Decodes a `grpc-message` and shortens it to what a message may quote; malformed encoding is kept as it is. */
function decodeGrpcMessage(text: string): string {
  try {
    return excerpt(decodeURIComponent(text))
  } catch {
    return excerpt(text)
  }
}

/** The status in trailers or in a response without a body; absent if there is none. */
export function statusIn(fields: readonly HeaderField[]): GrpcFailure | undefined {
  const status = headerOf(fields, 'grpc-status')
  if (status === undefined) return undefined
  const text = decodeGrpcMessage(headerOf(fields, 'grpc-message') ?? '')
  const isNumber = /^\d{1,9}$/.test(status)
  return {
    grpcStatus: isNumber ? Number(status) : grpcStatus.unknown,
    message: text || `gRPC status ${excerpt(status)}`,
  }
}

/** The content type of every request and response. */
export const grpcContentType = 'application/grpc'

/** All values by lower-case name. */
export type Metadata = Readonly<Record<string, readonly string[]>>

/** Groups header fields by name, without pseudo-header fields. */
export function metadataOf(fields: readonly HeaderField[]): Metadata {
  const metadata: Record<string, string[]> = Object.create(null)
  for (const [name, value] of fields) {
    if (name.startsWith(':')) continue
    const values = metadata[name]
    if (values) values.push(value)
    else metadata[name] = [value]
  }
  return metadata
}

/** The first value of a header field. */
export const headerOf = (fields: readonly HeaderField[], name: string): string | undefined =>
  fields.find(([other]) => other === name)?.[1]

/** Metadata as header fields, with names in lower case as HTTP/2 requires. */
export const fieldsOf = (metadata: Readonly<Record<string, string>>): HeaderField[] =>
  Object.entries(metadata).map(([name, value]) => [name.toLowerCase(), value])

/** Trailers with a status. */
export const trailersOf = (status: number, message = ''): HeaderField[] => [
  ['grpc-status', String(status)],
  ...fieldsOf(message === '' ? {} : { 'grpc-message': encodeGrpcMessage(message) }),
]
