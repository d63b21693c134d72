import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../core/index.ts'
import { ResponseParser } from './response-parser.ts'
import type { Asking, WireExchange } from './wire-exchange.ts'

/** Any stream; what only sockets can do is asked of those that can. */
type WireStream = Duplex & Partial<Pick<Socket, 'ref' | 'unref'>>

/** Opens a connection, unless the signal aborts before. */
export type OpenConnection = (signal: AbortSignal) => Promise<WireStream>

/** What a connection tells its pool. */
export interface ConnectionOwner {
  readonly clock: Clock
  /** It can carry the next request. */
  readonly free: () => void
  readonly gone: () => void
}

const idleMs = 30_000

/** One connection, with at most one request at a time. */
export class WireConnection implements WireExchange {
  readonly #stream: WireStream
  readonly #owner: ConnectionOwner
  /** Until when an idle connection may be used, on the monotonic clock. */
  #goodUntil = Number.POSITIVE_INFINITY
  #asking: Asking | undefined
  #parser: ResponseParser | undefined
  #served = 0
  #hasHeard = false
  /** How long it may be idle. */
  #allowedMs = idleMs

  constructor(stream: WireStream, owner: ConnectionOwner) {
    this.#stream = stream
    this.#owner = owner
    stream.on('data', (bytes: Buffer) => this.#take(bytes))
    stream.on('error', (error) => this.#fail(error))
    stream.on('end', () => this.#ended())
    stream.on('close', () => {
      this.#fail(new Error('it closed the connection'))
      this.#owner.gone()
    })
  }

  /** Whether an idle connection can be used at this time of the monotonic clock. */
  isGoodAt(now: number): boolean {
    return now < this.#goodUntil && this.#stream.writable
  }

  begin(asking: Asking): void {
    asking.carrier = this
    this.#asking = asking
    this.#hasHeard = false
    this.#parser = new ResponseParser(asking.listener, asking.isHead)
    this.#stream.ref?.()
    this.#stream.write(asking.bytes, 'latin1')
  }

  hold(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  cancel(): void {
    this.#stream.destroy()
  }

  /** The request that it carried is over. */
  #release(): Asking | undefined {
    const asking = this.#asking
    this.#asking = undefined
    if (asking) asking.carrier = undefined
    return asking
  }

  #take(bytes: Buffer): void {
    const asking = this.#asking
    const parser = this.#parser
    if (!asking || !parser) {
      // Nobody has asked for this.
      this.#stream.destroy()
      return
    }
    this.#hasHeard = true
    try {
      parser.take(bytes)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      this.#stream.destroy()
      return
    }
    asking.listener.settle()
    if (parser.isDone) this.#done(parser)
  }

  #ended(): void {
    if (this.#parser?.mayEnd) {
      this.#parser.close()
      this.#release()?.listener.settle()
    }
    // What breaks off is told when it is closed.
    this.#stream.destroy()
  }

  #done(parser: ResponseParser): void {
    this.#release()
    this.#served += 1
    // A second less, since the other side counts from its last byte and we from the arrival of it.
    if (parser.keepAliveMs !== undefined)
      this.#allowedMs = Math.min(idleMs, parser.keepAliveMs - 1000)
    if (!parser.keepsConnection || this.#allowedMs <= 0 || this.#stream.destroyed) {
      this.#stream.destroy()
      return
    }
    this.#stream.resume()
    this.#stream.unref?.()
    this.#goodUntil = this.#owner.clock.monotonic() + this.#allowedMs
    this.#owner.free()
  }

  #fail(error: Error): void {
    this.#release()?.listener.failed(error, this.#served > 0 && !this.#hasHeard)
  }
}
