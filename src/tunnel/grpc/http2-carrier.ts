import type { Clock } from '../../core/index.ts'
import type { Carrier, CarrierEvents } from '../link/index.ts'
import { LinkBroken } from './errors.ts'
import type { Http2Connection, Http2Stream, StreamEnding } from './http2/index.ts'
import { Heartbeat } from './keepalive.ts'
import type { Keepalive } from './options.ts'

/** What differs between the two ends of a stream. */
export interface StreamEnd {
  /** Ends our direction in gRPC's way. */
  finish(): void
  /** Ends both at once. */
  abort(error: Error | undefined): void
  /** Why the stream is gone; nothing if that was in order. */
  verdict(ending: StreamEnding): Error | undefined
}

/** The stream under a carrier, and its connection. */
export interface CarrierParts {
  readonly stream: Http2Stream
  readonly connection: Http2Connection
  readonly end: StreamEnd
}

/** A gRPC stream as the carrier of a link. */
export class Http2Carrier implements Carrier {
  readonly #parts: CarrierParts
  readonly #heartbeat: Heartbeat
  #reason: Error | undefined

  constructor(parts: CarrierParts, keepalive: Keepalive, clock: Clock) {
    this.#parts = parts
    this.#heartbeat = new Heartbeat(parts.connection, keepalive, clock, () =>
      this.destroy(new LinkBroken('the other end of the link does not answer any more')),
    )
  }

  get backlog(): number {
    return this.#parts.stream.backlog
  }

  get roundTripMs(): number {
    return this.#parts.connection.roundTripMs
  }

  /** Learns how far away the peer is, so that windows can grow with the distance. */
  measure(): void {
    this.#heartbeat.ping()
  }

  start(events: CarrierEvents): void {
    const { stream, end } = this.#parts
    stream.start({
      data: (chunk) => events.data(chunk),
      progress: () => events.progress(),
      finished: () => end.finish(),
      closed: (ending) => {
        this.#heartbeat.stop()
        events.ended(this.#reason ?? end.verdict(ending))
      },
    })
  }

  throttle(isOn: boolean): void {
    this.#parts.stream.throttle(isOn)
  }

  allow(bytes: number): void {
    this.#parts.stream.allow(bytes)
  }

  write(parts: readonly Buffer[]): void {
    this.#parts.stream.write(parts)
  }

  end(): void {
    this.#parts.end.finish()
  }

  destroy(error?: Error): void {
    this.#reason ??= error
    this.#parts.end.abort(error)
  }
}
