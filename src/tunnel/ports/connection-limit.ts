import type { Server, Socket } from 'node:net'
import { sourceOf } from '../addresses/index.ts'
import { FairLimit } from './fair-limit.ts'

/** Keeps the connections of a port below a limit, shared fairly between the addresses they come from. */
export class ConnectionLimit {
  readonly #places: FairLimit
  readonly #onDrop: () => void
  readonly #leaveOf = new Map<string, () => void>()

  /** `onDrop` hears of every connection that had to go. */
  constructor(limit: number, onDrop: () => void = () => {}) {
    this.#places = new FairLimit(limit)
    this.#onDrop = onDrop
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
    const drop = (): void => {
      socket.destroy()
      this.#onDrop()
    }
    const leave = name === undefined ? undefined : this.#places.enter(name.source, drop)
    if (name === undefined || leave === undefined) {
      drop()
      return false
    }
    this.#leaveOf.set(name.peer, leave)
    socket.once('close', () => {
      leave()
      // The same port may have come again before we heard of this end.
      if (this.#leaveOf.get(name.peer) === leave) this.#leaveOf.delete(name.peer)
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
  return { source: sourceOf(remoteAddress), peer: `${remoteAddress} ${remotePort}` }
}
