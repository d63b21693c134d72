import { excerpt } from '../core/index.ts'

/** The status codes of gRPC that occur here. */
export const grpcStatus = {
  ok: 0,
  unknown: 2,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const

/** A status message is for people; what it quotes of a peer is shorter still. */
const maxMessageBytes = 1_024

/** A message as `grpc-message` carries it: percent-encoded where it is not plain ASCII. */
export const encodeGrpcMessage = (text: string): string =>
  [...Buffer.from(text).subarray(0, maxMessageBytes)]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('')

/** The text behind a `grpc-message`, cut to what a message may quote; what is not well encoded is left as it came. */
export function decodeGrpcMessage(text: string): string {
  try {
    return excerpt(decodeURIComponent(text))
  } catch {
    return excerpt(text)
  }
}
