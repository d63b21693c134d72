import type { LinkChannel } from './channel.ts'

/** Ids of channels that are over, whose last packets may still be on their way. */
const rememberedIds = 4_096

/** The channels of one direction, by connection id. */
export class ChannelTable {
  readonly #channels = new Map<number, LinkChannel>()
  readonly #gone = new Set<number>()

  get size(): number {
    return this.#channels.size
  }

  get(connectId: number): LinkChannel | undefined {
    return this.#channels.get(connectId)
  }

  add(channel: LinkChannel): void {
    this.#gone.delete(channel.connectId)
    this.#channels.set(channel.connectId, channel)
  }

  remove(channel: LinkChannel): void {
    if (!this.#channels.delete(channel.connectId)) return
    this.#gone.add(channel.connectId)
    if (this.#gone.size <= rememberedIds) return
    for (const oldest of this.#gone) {
      this.#gone.delete(oldest)
      return
    }
  }

  isGone(connectId: number): boolean {
    return this.#gone.has(connectId)
  }

  values(): readonly LinkChannel[] {
    return [...this.#channels.values()]
  }
}
