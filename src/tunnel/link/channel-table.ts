import { RecentIds } from '../../grpc/http2/index.ts'
import type { LinkChannel } from './channel.ts'

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
