import type { EventSink, StoreEvent, Subscription } from '../store.ts'

interface Watcher {
  readonly sink: EventSink
  open: boolean
}

interface Delivery {
  readonly watchers: readonly Watcher[]
  readonly events: StoreEvent[]
}

/**
 * Who wants to hear of which prefix. Watchers of one prefix share one array of events, and finding
 * the prefixes of a key takes one lookup per prefix length in use, however many watchers there are.
 */
export class Subscriptions {
  readonly #onSinkFailure: (error: unknown) => void
  /** By length, then by prefix. The arrays are replaced, never changed: a dispatch may hold one. */
  readonly #watchers = new Map<number, Map<string, readonly Watcher[]>>()

  constructor(onSinkFailure: (error: unknown) => void) {
    this.#onSinkFailure = onSinkFailure
  }

  /** Calls `sink` with the `replay` of the past and then for every dispatched event of `prefix`. */
  add(prefix: string, sink: EventSink, replay: readonly StoreEvent[]): Subscription {
    const watcher: Watcher = { sink, open: true }
    const byPrefix = this.#watchers.get(prefix.length) ?? new Map<string, readonly Watcher[]>()
    this.#watchers.set(prefix.length, byPrefix)
    byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), watcher])
    if (replay.length > 0) this.#deliver(watcher, replay)
    return { close: () => this.#close(prefix, watcher) }
  }

  dispatch(events: readonly StoreEvent[]): void {
    if (this.#watchers.size === 0) return
    // Planned before the first sink is called: one that subscribes then gets these by its replay.
    for (const { watchers, events: share } of this.#plan(events)) {
      for (const watcher of watchers) this.#deliver(watcher, share)
    }
  }

  #plan(events: readonly StoreEvent[]): Iterable<Delivery> {
    const deliveries = new Map<readonly Watcher[], Delivery>()
    for (const event of events) {
      for (const [length, byPrefix] of this.#watchers) {
        const watchers = byPrefix.get(event.record.key.slice(0, length))
        if (watchers === undefined) continue
        const delivery = deliveries.get(watchers)
        if (delivery) delivery.events.push(event)
        else deliveries.set(watchers, { watchers, events: [event] })
      }
    }
    return deliveries.values()
  }

  #deliver(watcher: Watcher, events: readonly StoreEvent[]): void {
    if (!watcher.open) return
    try {
      watcher.sink(events)
    } catch (error) {
      // A commit must reach all others and its writer whatever one sink does.
      this.#onSinkFailure(error)
    }
  }

  #close(prefix: string, watcher: Watcher): void {
    if (!watcher.open) return
    watcher.open = false
    const byPrefix = this.#watchers.get(prefix.length)
    const rest = byPrefix?.get(prefix)?.filter((other) => other !== watcher) ?? []
    if (rest.length > 0) byPrefix?.set(prefix, rest)
    else byPrefix?.delete(prefix)
    if (byPrefix?.size === 0) this.#watchers.delete(prefix.length)
  }
}
