import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Authentication, wellKnown } from '../../core/index.ts'
import { partyOf, socketBucket } from '../fairness/fairness.ts'

/** How many connections may be open at once. */
export interface ConnectionLimits {
  readonly total: number
  readonly perAddress: number
}

interface Connection {
  /** As accepted, before TLS: closing it ends everything on it. */
  readonly socket: Socket
  readonly peer: string
  readonly address: string
  /** The user, or the namespace of a service account; `undefined` until a request has proven an identity. */
  owner: string | undefined
}

/** Connections by the party that holds them, each with its oldest first. */
class Holders {
  readonly #groups = new Map<string, Set<Connection>>()
  size = 0

  add(party: string, connection: Connection): void {
    const group = this.#groups.get(party) ?? new Set()
    this.#groups.set(party, group.add(connection))
    this.size++
  }

  delete(party: string, connection: Connection): void {
    const group = this.#groups.get(party)
    if (!group?.delete(connection)) return
    this.size--
    if (group.size === 0) this.#groups.delete(party)
  }

  /** The oldest connection of the party with most of them. */
  oldestOfLargest(): Connection | undefined {
    let largest: ReadonlySet<Connection> | undefined
    for (const group of this.#groups.values())
      if (largest === undefined || group.size > largest.size) largest = group
    const [oldest] = largest ?? []
    return oldest
  }
}

/** Connections that share a limit, of which a quarter is for those without a credential. */
class ConnectionPool {
  readonly unauthenticated = new Holders()
  readonly authenticated = new Holders()
  readonly maxUnauthenticated: number

  constructor(limit: number) {
    this.maxUnauthenticated = Math.ceil(limit / 4)
  }

  get size(): number {
    return this.unauthenticated.size + this.authenticated.size
  }

  add(connection: Connection): void {
    const { owner, address } = connection
    if (owner === undefined) this.unauthenticated.add(address, connection)
    else this.authenticated.add(owner, connection)
  }

  delete(connection: Connection): void {
    const { owner, address } = connection
    if (owner === undefined) this.unauthenticated.delete(address, connection)
    else this.authenticated.delete(owner, connection)
  }

  /** What is closed for a new connection: users give way only for the part that is not theirs. */
  surplus(): Connection | undefined {
    const isTheirs = this.unauthenticated.size < this.maxUnauthenticated
    const fromUsers = isTheirs ? this.authenticated.oldestOfLargest() : undefined
    return fromUsers ?? this.unauthenticated.oldestOfLargest()
  }
}

/**
 * Counts the connections of a server and closes those that are too many. A connection is unauthenticated until a
 * request on it has proven an identity. A limit keeps no new connection out: the oldest connection of the party that
 * holds most of them is closed, which is an address among the unauthenticated ones and a user among the others.
 * Connections of administrators are not closed for others.
 */
export class ConnectionGate {
  readonly #limits: ConnectionLimits
  readonly #all: ConnectionPool
  readonly #perAddress = new Map<string, ConnectionPool>()
  /** By where they come from: before TLS and after it, a connection has two objects. */
  readonly #byPeer = new Map<string, Connection>()
  readonly #known = new WeakSet<object>()
  #dropped = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
    this.#all = new ConnectionPool(limits.total)
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#byPeer.size
  }

  /** Connections that were dropped since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Connections without a credential that are open now. */
  get unauthenticated(): number {
    return this.#all.unauthenticated.size
  }

  /** For a server's `connection` event. Nothing is sent: before TLS no response is possible. */
  readonly admit = (socket: Socket): void => {
    const address = socketBucket(socket.remoteAddress ?? '')
    const { total, perAddress } = this.#limits
    const there = this.#perAddress.get(address)
    if (there && there.size >= perAddress) this.#drop(there.surplus())
    if (this.unauthenticated >= this.#all.maxUnauthenticated || this.open >= total)
      this.#drop(this.#all.surplus())
    if (this.open >= total) {
      this.#dropped++
      socket.destroy()
      return
    }
    const connection = { socket, peer: peerOf(socket), address, owner: undefined }
    this.#byPeer.set(connection.peer, connection)
    this.#add(connection)
    socket.once('close', () => this.#release(connection))
  }

  /** For authenticated requests: their connections count for the user, not for the address. */
  readonly authenticated = (
    { socket }: Pick<IncomingMessage, 'socket'>,
    { user }: Pick<Authentication, 'user'>,
  ): void => {
    if (user.username === wellKnown.anonymous || this.#known.has(socket)) return
    this.#known.add(socket)
    const connection = this.#byPeer.get(peerOf(socket))
    if (connection === undefined) return
    this.#delete(connection)
    connection.owner = partyOf(user.username)
    // What is in no pool is never closed for others.
    if (!user.groups.includes(wellKnown.masters)) this.#add(connection)
    const { authenticated, maxUnauthenticated } = this.#all
    if (authenticated.size > Math.max(1, this.#limits.total - maxUnauthenticated))
      this.#drop(authenticated.oldestOfLargest())
  }

  #add(connection: Connection): void {
    this.#all.add(connection)
    const there =
      this.#perAddress.get(connection.address) ?? new ConnectionPool(this.#limits.perAddress)
    this.#perAddress.set(connection.address, there)
    there.add(connection)
  }

  #delete(connection: Connection): void {
    this.#all.delete(connection)
    const there = this.#perAddress.get(connection.address)
    there?.delete(connection)
    if (there?.size === 0) this.#perAddress.delete(connection.address)
  }

  #drop(connection: Connection | undefined): void {
    if (connection === undefined) return
    this.#dropped++
    this.#release(connection)
    connection.socket.destroy()
  }

  /** Releases everything; safe to call twice. */
  #release(connection: Connection): void {
    if (this.#byPeer.get(connection.peer) !== connection) return
    this.#byPeer.delete(connection.peer)
    this.#delete(connection)
  }
}

/** A client may connect to several of our addresses from one port. */
const peerOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`
