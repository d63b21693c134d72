import type { Writable } from 'node:stream'
import type { Clock, RedactedText } from '../../core/index.ts'
import type { Exchange } from '../pipeline/exchange.ts'
import type { AuditTrail } from '../pipeline/types.ts'
import { type AuditStage, auditLine } from './event.ts'

/** Where audit lines go. Never blocks and never throws: what cannot be kept is counted. */
export interface AuditSink {
  write(line: RedactedText): void
  /** Lines that were lost since the start. */
  readonly dropped: number
  /** Resolves when all that was written is safe. */
  close(): Promise<void>
}

/** What may wait to be written before lines are dropped. */
export const maxBufferedAuditBytes = 16 * 2 ** 20

/** What an audit recorder works with. */
export interface AuditOptions {
  readonly sink: AuditSink
  readonly clock: Clock
  /** Also records that a request came in; off unless given, because its end tells the same and more. */
  readonly requestReceived?: boolean
}

/** Records every exchange as `audit.k8s.io/v1` events. */
export class AuditRecorder implements AuditTrail {
  readonly #options: AuditOptions
  #events = 0

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** Events recorded since the start, for the metrics. */
  get events(): number {
    return this.#events
  }

  received(exchange: Exchange): void {
    if (this.#options.requestReceived) this.#record(exchange, 'RequestReceived')
  }

  started(exchange: Exchange): void {
    this.#record(exchange, 'ResponseStarted')
  }

  complete(exchange: Exchange): void {
    this.#record(exchange, 'ResponseComplete')
  }

  #record(exchange: Exchange, stage: AuditStage): void {
    const { sink, clock } = this.#options
    this.#events++
    // Counted from the start of the request: so the stages are in order whatever the wall clock does.
    const now = exchange.receivedAt + (clock.monotonic() - exchange.startedAt)
    sink.write(auditLine(exchange, stage, now))
  }
}

/** Writes audit lines to a stream that belongs to somebody else, such as the standard output. */
export function auditToStream(
  stream: Writable,
  maxBufferedBytes = maxBufferedAuditBytes,
): AuditSink {
  let dropped = 0
  return {
    write(line) {
      if (stream.writableLength > maxBufferedBytes || stream.destroyed) dropped++
      else stream.write(line)
    },
    get dropped() {
      return dropped
    },
    close: () =>
      new Promise((resolve) => {
        if (stream.destroyed) resolve()
        else stream.write('', () => resolve())
      }),
  }
}
