import type { Duplex } from 'node:stream'
import { HeldChunks } from '../../../core/index.ts'
import { type ByteStream, type ByteStreamEvents, socketStream } from '../../link/index.ts'

/**
 * A stream on a client's socket that holds back what is written until the client has spoken, or for
 * `forMs` at most. kube-apiserver gives up a connection when bytes of the target arrive together with
 * the answer to CONNECT; whoever speaks first has read that answer.
 */
export function quietStart(socket: Duplex, forMs: number): ByteStream {
  return new QuietStart(socket, forMs)
}

class QuietStart implements ByteStream {
  readonly #socket: Duplex
  readonly #stream: ByteStream
  readonly #forMs: number
  #held: HeldChunks | undefined = new HeldChunks()
  #finishes = false
  #timer: NodeJS.Timeout | undefined

  constructor(socket: Duplex, forMs: number) {
    this.#socket = socket
    this.#stream = socketStream(socket)
    this.#forMs = forMs
  }

  get backlog(): number {
    return (this.#held?.bytes ?? 0) + this.#stream.backlog
  }

  start(events: ByteStreamEvents): void {
    this.#timer = setTimeout(() => this.#release(), this.#forMs)
    this.#stream.start({
      data: (chunk) => {
        if (this.#held) this.#release()
        events.data(chunk)
      },
      finished: () => events.finished(),
      drained: () => events.drained(),
      closed: (error) => {
        clearTimeout(this.#timer)
        events.closed(error)
      },
    })
  }

  write(chunk: Buffer): void {
    if (!this.#held) {
      this.#stream.write(chunk)
      return
    }
    this.#held.push(chunk)
  }

  consumed(bytes: number): void {
    this.#stream.consumed(bytes)
  }

  finish(): void {
    if (this.#held) this.#finishes = true
    else this.#stream.finish()
  }

  close(error?: Error): void {
    // Neither a unix socket nor TLS has a reset; an end without TLS's own close says as much.
    if (error) this.#socket.destroy()
    else {
      this.#release()
      this.#stream.close()
    }
    clearTimeout(this.#timer)
  }

  #release(): void {
    clearTimeout(this.#timer)
    const held = this.#held
    if (!held) return
    this.#held = undefined
    for (const chunk of held.take()) this.#stream.write(chunk)
    if (this.#finishes) this.#stream.finish()
  }
}
