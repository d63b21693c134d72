import type { StoredRecord, StoreEvent } from '../../contract.ts'
import { positionIn } from '../../mirror/run-slices.ts'
import { structuralDamage } from '../damage.ts'
import { type FramedRecord, recordKinds } from '../format/record-codec.ts'
import type { RecordMaker } from './lost-values.ts'

/**
 * Rebuilds the events of a checkpoint. Each one only carries what it replaced, so they are walked
 * from the newest to the oldest, taking the live records back in time.
 */
export function rebuildEvents(
  past: readonly FramedRecord[],
  live: readonly StoredRecord[],
  maker: RecordMaker,
): StoreEvent[] {
  const earlier = new Map<string, StoredRecord | undefined>()
  const heldAfter = (key: string): StoredRecord | undefined => {
    if (earlier.has(key)) return earlier.get(key)
    const record = live[positionIn(live, key)]
    return record?.key === key ? record : undefined
  }
  const events: StoreEvent[] = []
  for (const framed of past.toReversed()) {
    const { key, previousRevision } = framed
    const previous = previousRevision > 0 ? maker.make(framed, previousRevision) : undefined
    const event = eventOf(framed, heldAfter(key), previous)
    if (event === undefined) {
      throw structuralDamage(maker.path, framed.offset, `the history of ${key} has a gap`)
    }
    earlier.set(key, previous)
    events.push(event)
  }
  return events.reverse()
}

/** `undefined` when the event does not lead to what the key held after it. */
function eventOf(
  framed: FramedRecord,
  after: StoredRecord | undefined,
  previous: StoredRecord | undefined,
): StoreEvent | undefined {
  const { key, revision } = framed
  if (framed.kind === recordKinds.pastPut) {
    if (after?.revision !== revision) return undefined
    return previous ? { type: 'put', record: after, previous } : { type: 'put', record: after }
  }
  if (after || !previous) return undefined
  return { type: 'delete', record: { key, value: previous.value, revision }, previous }
}
