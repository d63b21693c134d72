import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What a link does to bytes on their way; what it lets through stays in order, as TCP promises. */
export interface Weather {
  /** How long each piece is on its way. */
  readonly delayMs: number
  /** The share of pieces that are lost and sent again, which holds up all behind them. */
  readonly lossRate: number
  /** How long a lost piece is late. */
  readonly retransmitMs: number
}

const mostOnTheWay = 16 << 20

/** A link without faults. */
export const fairWeather: Weather = { delayMs: 0, lossRate: 0, retransmitMs: 200 }

/** A TCP relay that delays, stalls and cuts, at the wish of a test. */
export class BadRelay {
  weather: Weather
  readonly #target: { readonly host: string; readonly port: number }
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket))
  readonly #open = new Set<Socket>()

  constructor(target: { readonly host: string; readonly port: number }, weather: Weather) {
    this.#target = target
    this.weather = weather
  }

  static async start(port: number, weather: Weather = fairWeather): Promise<BadRelay> {
    const relay = new BadRelay({ host: '127.0.0.1', port }, weather)
    relay.#server.listen(0, '127.0.0.1')
    await once(relay.#server, 'listening')
    return relay
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections through it that are open now. */
  get connections(): number {
    return this.#open.size / 2
  }

  /** Resets every connection, as a router that forgot them. */
  cut(): void {
    for (const socket of this.#open) socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(near: Socket): void {
    const far = connect({ ...this.#target, allowHalfOpen: true, noDelay: true })
    near.setNoDelay(true)
    this.#carry(near, far)
    this.#carry(far, near)
    this.#keep(near, far)
    this.#keep(far, near)
  }

  #keep(socket: Socket, other: Socket): void {
    this.#open.add(socket)
    socket
      .on('error', () => {})
      .once('close', () => {
        this.#open.delete(socket)
        other.destroy()
      })
  }

  /** One direction: pieces leave in order, each not before its time, and many are on their way at once. */
  #carry(from: Socket, to: Socket): void {
    const queue: { readonly at: number; readonly piece: Buffer | undefined }[] = []
    let lastAt = 0
    let onTheWay = 0
    const arrive = (): void => {
      for (;;) {
        const first = queue[0]
        if (!first || to.destroyed) return
        const waitMs = first.at - performance.now()
        if (waitMs >= 1) {
          setTimeout(arrive, waitMs)
          return
        }
        queue.shift()
        onTheWay -= first.piece?.length ?? 0
        if (first.piece === undefined) to.end()
        else if (!to.write(first.piece)) {
          to.once('drain', () => {
            from.resume()
            arrive()
          })
          return
        } else if (onTheWay < mostOnTheWay) from.resume()
      }
    }
    const send = (piece: Buffer | undefined): void => {
      const { delayMs, lossRate, retransmitMs } = this.weather
      const late = Math.random() < lossRate ? retransmitMs : 0
      lastAt = Math.max(lastAt, performance.now() + delayMs + late)
      queue.push({ at: lastAt, piece })
      if (queue.length === 1 && !to.writableNeedDrain) arrive()
    }
    from.on('data', (piece: Buffer) => {
      onTheWay += piece.length
      if (onTheWay >= mostOnTheWay || to.writableNeedDrain) from.pause()
      send(piece)
    })
    from.once('end', () => send(undefined))
  }
}
