import type { Http2Stream } from 'node:http2'
import type { Clock } from '../../core/index.ts'
import type { Carrier, CarrierEvents } from '../link/index.ts'
import { LinkBroken } from './errors.ts'
import { Heartbeat } from './keepalive.ts'
import type { Keepalive } from './options.ts'

/** What differs between the two ends of a stream. */
export interface StreamEnd {
  /** Ends our direction in gRPC's way. */
  finish(): void
  /** Ends both at once. */
  abort(error: Error | undefined): void
  /** Why the stream is gone; nothing if that was in order. */
  verdict(): Error | undefined
}

/** A gRPC stream as the carrier of a link. */
export class Http2Carrier implements Carrier {
  readonly #stream: Http2Stream
  readonly #end: StreamEnd
  readonly #heartbeat: Heartbeat | undefined
  #events: CarrierEvents | undefined
  #reason: Error | undefined
  #isEnding = false

  constructor(stream: Http2Stream, end: StreamEnd, keepalive: Keepalive, clock: Clock) {
    this.#stream = stream
    this.#end = end
    this.#heartbeat =
      stream.session && new Heartbeat(stream.session, keepalive, clock, () => this.#silent())
    stream.on('error', (error) => {
      this.#reason ??= error
    })
  }

  get backlog(): number {
    return this.#stream.writableLength
  }

  get roundTripMs(): number {
    return this.#heartbeat?.roundTripMs ?? 0
  }

  /** Learns how far away the peer is, so that windows can grow with the distance. */
  measure(): void {
    this.#heartbeat?.ping()
  }

  start(events: CarrierEvents): void {
    this.#events = events
    const stream = this.#stream
    if (stream.destroyed) {
      queueMicrotask(() => this.#closed())
      return
    }
    stream.on('data', (chunk: Buffer) => {
      this.#heartbeat?.heard()
      events.data(chunk)
    })
    stream.on('end', () => {
      this.#isEnding = true
      this.#end.finish()
    })
    stream.on('close', () => this.#closed())
  }

  write(parts: readonly Buffer[]): void {
    const stream = this.#stream
    if (this.#isEnding || stream.destroyed || stream.writableEnded) return
    const last = parts.length - 1
    stream.cork()
    for (let index = 0; index < last; index++) stream.write(parts[index])
    stream.write(parts[last], this.#progress)
    stream.uncork()
  }

  readonly #progress = (): void => this.#events?.progress()

  end(): void {
    this.#isEnding = true
    this.#end.finish()
  }

  destroy(error?: Error): void {
    this.#isEnding = true
    this.#reason ??= error
    this.#end.abort(error)
  }

  #silent(): void {
    this.destroy(new LinkBroken('the other end of the link does not answer any more'))
  }

  #closed(): void {
    this.#heartbeat?.stop()
    const events = this.#events
    this.#events = undefined
    events?.ended(this.#reason ?? this.#end.verdict())
  }
}
