/** What the soak wants to know of an object in an answer or an event. */
export interface Seen {
  readonly name: string
  readonly uid: string
  readonly version: string
  /** The number that its writer gave to the write. */
  readonly serial: string
}

/** A change that is known to be committed; a deletion's own version is not told to who asked for it. */
export type Change = { readonly put: string } | { readonly deleted: true }

/** All that is known of one object. Only one writer works on it, so its history has no forks. */
export interface ObjectLedger {
  readonly name: string
  readonly changes: Change[]
  now: Seen | undefined
}

/** An event as an observer reports it. */
export interface ObservedEvent {
  readonly type: string
  readonly version: string
  /** Not watched but found out by a new list. */
  readonly relisted?: boolean
}

const told = (change: Change | undefined): string => {
  if (change === undefined) return 'nothing'
  return 'put' in change ? `version ${change.put}` : 'a deletion'
}

function isSame(change: Change | undefined, event: ObservedEvent): boolean {
  if (change === undefined) return false
  return 'put' in change
    ? event.type !== 'DELETED' && event.version === change.put
    : event.type === 'DELETED'
}

/** Compares with an observer that never lists anew: it must have seen every change, once and in order. */
export function everyChangeOnce(
  { name, changes }: ObjectLedger,
  events: readonly ObservedEvent[],
): string[] {
  const length = Math.max(changes.length, events.length)
  let isThere = false
  for (let at = 0; at < length; at++) {
    const change = changes[at]
    const event = events[at]
    const saw = event ? `${event.type} ${event.version}` : 'nothing'
    if (event === undefined || !isSame(change, event)) {
      return [`${name}: change ${at + 1} was ${told(change)}, the watch saw ${saw}`]
    }
    const expected: string = event.type === 'DELETED' ? 'DELETED' : isThere ? 'MODIFIED' : 'ADDED'
    if (event.type !== expected) {
      return [`${name}: change ${at + 1} should be ${expected}, the watch saw ${saw}`]
    }
    isThere = event.type !== 'DELETED'
  }
  return []
}

/**
 * Compares with an informer. A new list lets it skip changes, never repeat or reorder them, and in
 * the end it must know the last one.
 */
export function inOrderOnce(
  { name, changes }: ObjectLedger,
  events: readonly ObservedEvent[],
): string[] {
  let at = 0
  for (const event of events) {
    const found = changes.findIndex((change, index) => index >= at && isSame(change, event))
    if (found < 0) {
      const before = told(changes[at - 1])
      return [`${name}: the informer saw ${event.type} ${event.version} after ${before}`]
    }
    at = found + 1
  }
  const last = changes.at(-1)
  if (at < changes.length && !(isGone(last) && isGone(changes[at - 1]))) {
    return [`${name}: the informer stopped at ${told(changes[at - 1])}, the end is ${told(last)}`]
  }
  return []
}

const isGone = (change: Change | undefined): boolean => change === undefined || 'deleted' in change
