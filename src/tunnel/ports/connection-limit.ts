import type { Server, Socket } from 'node:net'
import { sourceOf } from '../addresses/source.ts'
import { FairLimit } from './fair-limit.ts'

/** What becomes of connections. */
export interface ConnectionLimitEvents {
  /** One had to go. */
  dropped?(): void
  /** One has ended by itself and was never released. */
  left?(socket: Socket, address: string): void
}

/** Keeps the connections of a port below a limit, shared fairly between the addresses they come from. */
export class ConnectionLimit {
  readonly #places: FairLimit
  readonly #events: ConnectionLimitEvents
  readonly #holderOf: (address: string) => string
  readonly #leaveOf = new Map<string, () => void>()

  /** `holderOf` tells who has an address: by default whoever has its IPv6 network. */
  constructor(limit: number, events: ConnectionLimitEvents = {}, holderOf = sourceOf) {
    this.#places = new FairLimit(limit)
    this.#events = events
    this.#holderOf = holderOf
  }

  /** Connections that count. */
  get size(): number {
    return this.#places.taken
  }

  /** Counts every connection of a server from its first byte on; below TLS, if there is any. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => void this.enter(socket))
  }

  /** Counts a connection until it closes; if it is one too many it is destroyed, and the answer is no. */
  enter(socket: Socket): boolean {
    const name = nameOf(socket)
    let isDropped = false
    const drop = (): void => {
      isDropped = true
      socket.destroy()
      this.#events.dropped?.()
    }
    const leave = name && this.#places.enter(this.#holderOf(name.address), drop)
    if (!name || !leave) {
      drop()
      return false
    }
    this.#leaveOf.set(name.peer, leave)
    socket.once('close', () => {
      leave()
      const isStranger = this.#leaveOf.get(name.peer) === leave
      if (isStranger && !isDropped) this.#events.left?.(socket, name.address)
      // The same port may have come again before we heard of this end.
      if (isStranger) this.#leaveOf.delete(name.peer)
    })
    return true
  }

  /** A connection has proven who it is, and counts no more; `socket` may be the one that TLS has made of it. */
  release(socket: Socket): void {
    const name = nameOf(socket)
    if (!name) return
    this.#leaveOf.get(name.peer)?.()
    this.#leaveOf.delete(name.peer)
  }
}

/** TLS makes another socket of a connection, but its address and port are those of one connection only. */
function nameOf({ remoteAddress, remotePort }: Socket) {
  if (remoteAddress === undefined) return undefined
  return { address: remoteAddress, peer: `${remoteAddress} ${remotePort}` }
}
