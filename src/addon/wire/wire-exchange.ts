import type { ResponseListener } from './response-parser.ts'

/** Hears what comes of a request. */
export interface AnswerListener extends ResponseListener {
  /** All that has arrived so far has been told. */
  settle(): void
  /** No more will come; `isStale` if a kept connection was closed before a byte of the answer. */
  failed(error: Error, isStale: boolean): void
}

/** A request under way. */
export interface WireExchange {
  /** Reads no further until it is resumed. */
  hold(): void
  resume(): void
  /** Cuts the connection unless the answer is complete. */
  cancel(): void
}

/** A request and whatever it waits for now: its turn, a connection, or the answer. */
export class Asking implements WireExchange {
  readonly bytes: string
  readonly isHead: boolean
  readonly listener: AnswerListener
  /** Absent once the answer is complete: the connection is then another's. */
  carrier: Partial<WireExchange> | undefined

  constructor(bytes: string, isHead: boolean, listener: AnswerListener) {
    this.bytes = bytes
    this.isHead = isHead
    this.listener = listener
  }

  hold(): void {
    this.carrier?.hold?.()
  }

  resume(): void {
    this.carrier?.resume?.()
  }

  cancel(): void {
    this.carrier?.cancel?.()
  }
}
