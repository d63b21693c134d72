import { SallyportError } from '../core/index.ts'

/** Each message has a prefix: a flag for compression and the length. */
export const messagePrefixBytes = 5
/** The largest message that grpc-go accepts by default. */
export const defaultMaxMessageBytes = 4 * 1024 * 1024

/** A peer sent a message that cannot be read. */
export class GrpcMessageError extends SallyportError {
  readonly code = 'GRPC_MESSAGE_INVALID'
}

/** A message with its prefix. */
export function encodeMessage(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(messagePrefixBytes + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  message.copy(framed, messagePrefixBytes)
  return framed
}

/** The length in a message prefix. @throws GrpcMessageError if the message is compressed or longer than `maxBytes` */
export function messageLength(prefix: Buffer, at: number, maxBytes: number): number {
  if (prefix[at] !== 0) throw new GrpcMessageError('message is compressed')
  const length = prefix.readUInt32BE(at + 1)
  if (length > maxBytes)
    throw new GrpcMessageError(`message of ${length} bytes is above the limit of ${maxBytes}`)
  return length
}

/** Splits the bytes of a stream into messages. */
export class MessageReader {
  readonly #onMessage: (message: Buffer) => void
  readonly #maxBytes: number
  readonly #prefix = Buffer.alloc(messagePrefixBytes)
  #prefixUsed = 0
  #message: Buffer | undefined
  #messageUsed = 0

  constructor(onMessage: (message: Buffer) => void, maxBytes = defaultMaxMessageBytes) {
    this.#onMessage = onMessage
    this.#maxBytes = maxBytes
  }

  /** Whether no message has begun that is not complete. */
  get isComplete(): boolean {
    return this.#prefixUsed === 0
  }

  /** @throws GrpcMessageError */
  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#message) {
        const copied = chunk.copy(this.#message, this.#messageUsed, at)
        this.#messageUsed += copied
        at += copied
      } else at = this.#readPrefix(chunk, at)
      if (this.#message && this.#messageUsed === this.#message.length) this.#deliver(this.#message)
    }
  }

  #readPrefix(chunk: Buffer, at: number): number {
    const copied = chunk.copy(this.#prefix, this.#prefixUsed, at)
    this.#prefixUsed += copied
    if (this.#prefixUsed === messagePrefixBytes) {
      this.#message = Buffer.allocUnsafe(messageLength(this.#prefix, 0, this.#maxBytes))
      this.#messageUsed = 0
    }
    return at + copied
  }

  #deliver(message: Buffer): void {
    this.#message = undefined
    this.#prefixUsed = 0
    this.#onMessage(message)
  }
}
