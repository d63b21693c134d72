import { RecentIds } from '../../grpc/http2/index.ts'
import { destination } from '../protocol/index.ts'
import type { LinkChannel } from './channel.ts'
import { type Directions, directionsOf, type LinkSide } from './link.ts'

/** Closed channels whose last packets may still be in flight. */
const maxClosedIds = 4_096

/** The channels of one direction, by connection id. */
export class ChannelTable {
  readonly #channels = new Map<number, LinkChannel>()
  readonly #closedIds = new RecentIds(maxClosedIds)

  get size(): number {
    return this.#channels.size
  }

  get(connectId: number): LinkChannel | undefined {
    return this.#channels.get(connectId)
  }

  add(channel: LinkChannel): void {
    this.#closedIds.delete(channel.connectId)
    this.#channels.set(channel.connectId, channel)
  }

  remove(channel: LinkChannel): void {
    if (this.#channels.delete(channel.connectId)) this.#closedIds.add(channel.connectId)
  }

  isClosed(connectId: number): boolean {
    return this.#closedIds.has(connectId)
  }

  values(): readonly LinkChannel[] {
    return [...this.#channels.values()]
  }
}

/** The channels of a link. */
export class ChannelTables {
  /** Channels that we have dialled. */
  readonly outbound = new ChannelTable()
  /** Channels that the peer has dialled. */
  readonly inbound = new ChannelTable()
  readonly directions: Directions
  readonly #hasReverseDials: boolean

  constructor(side: LinkSide, hasReverseDials: boolean) {
    this.directions = directionsOf(side, hasReverseDials)
    this.#hasReverseDials = hasReverseDials
  }

  get size(): number {
    return this.outbound.size + this.inbound.size
  }

  all(): readonly LinkChannel[] {
    return [...this.inbound.values(), ...this.outbound.values()]
  }

  remove(channel: LinkChannel): void {
    const table = channel.isDialledByUs ? this.outbound : this.inbound
    table.remove(channel)
  }

  /** Bytes that all channels hold, and the channel that holds most. */
  load(): { readonly fullest: LinkChannel | undefined; readonly heldBytes: number } {
    let fullest: LinkChannel | undefined
    let heldBytes = 0
    for (const channel of this.all()) {
      heldBytes += channel.heldBytes
      if (fullest === undefined || channel.heldBytes > fullest.heldBytes) fullest = channel
    }
    return { fullest, heldBytes }
  }

  /** Whether the peer dials connections with this `dest`. Without reverse dials there is one direction, whatever `dest` is. */
  isInbound(dest: number): boolean {
    const isReverse = this.#hasReverseDials && dest === destination.controlPlane
    const direction = isReverse ? destination.controlPlane : destination.unset
    return direction === this.directions.inbound
  }

  of(dest: number): ChannelTable {
    return this.isInbound(dest) ? this.inbound : this.outbound
  }
}
