import type { StoredRecord } from '../store.ts'

/** Records in key order; never changed once made, replaced instead. */
export type Run = readonly StoredRecord[]

interface Slice {
  readonly from: number
  readonly to: number
  readonly run: Run
}

const maxSlicesPerRun = 8
const slicesOf = new WeakMap<Run, Slice[]>()

/**
 * Part of a run. The same part of the same run is the same array again (as long as it is among the
 * last few asked for), so that what callers keep by run also holds at the edges of a range.
 */
function sliceRun(run: Run, from: number, to: number): Run {
  if (from === 0 && to === run.length) return run
  let slices = slicesOf.get(run)
  if (slices === undefined) slicesOf.set(run, (slices = []))
  const known = slices.find((slice) => slice.from === from && slice.to === to)
  if (known) return known.run
  const made = { from, to, run: run.slice(from, to) }
  if (slices.length === maxSlicesPerRun) slices.shift()
  slices.push(made)
  return made.run
}

/** Where `key` is in `run`, or would be: the index of the first record whose key is not before it. */
export function positionIn(run: Run, key: string): number {
  let low = 0
  let high = run.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keyAt(run, middle) < key) low = middle + 1
    else high = middle
  }
  return low
}

/** How many of these sorted keys are not after `key`. */
function countUpTo(firstKeys: readonly string[], key: string): number {
  let low = 0
  let high = firstKeys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((firstKeys[middle] as string) <= key) low = middle + 1
    else high = middle
  }
  return low
}

/** The key of the record at `index`, which must be inside the run. */
function keyAt(run: Run, index: number): string {
  return (run[index] as StoredRecord).key
}

/** Small enough that copying a run on each write costs little, large enough that runs are few. */
const maxRunLength = 128
const minRunLength = maxRunLength / 4
/** Leaves room for inserts, so that a freshly loaded index does not split at every first write. */
const loadedRunLength = (maxRunLength * 3) / 4

/**
 * An ordered map from key to record. It is made of immutable runs that are replaced on write: a
 * range is a snapshot that costs no copying and stays true while writes go on.
 */
export class RecordIndex {
  #runs: Run[] = []
  #firstKeys: string[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Replaces the whole content; `records` must be in key order. */
  load(records: readonly StoredRecord[]): void {
    this.#runs = []
    for (let i = 0; i < records.length; i += loadedRunLength) {
      this.#runs.push(records.slice(i, i + loadedRunLength))
    }
    this.#firstKeys = this.#runs.map((run) => keyAt(run, 0))
    this.#size = records.length
  }

  get(key: string): StoredRecord | undefined {
    const run = this.#runs[this.#runFor(key)]
    if (run === undefined) return undefined
    const found = run[positionIn(run, key)]
    return found?.key === key ? found : undefined
  }

  set(record: StoredRecord): void {
    const at = this.#runFor(record.key)
    const run = this.#runs[at]
    if (run === undefined) {
      this.#replace(at, 0, [[record]])
      this.#size++
      return
    }
    const position = positionIn(run, record.key)
    if (run[position]?.key === record.key) {
      const changed = run.slice()
      changed[position] = record
      this.#runs[at] = changed
      return
    }
    this.#size++
    const longer = run.toSpliced(position, 0, record)
    this.#replace(at, 1, longer.length > maxRunLength ? halves(longer, position) : [longer])
  }

  remove(key: string): void {
    const at = this.#runFor(key)
    const run = this.#runs[at]
    if (run === undefined) return
    const position = positionIn(run, key)
    if (run[position]?.key !== key) return
    this.#size--
    this.#shrink(at, run.toSpliced(position, 1))
  }

  /** All records with `from` <= key < `to`; without `to`, to the end. */
  runs(from: string, to: string | undefined): Run[] {
    const first = this.#runFor(from)
    const end = to === undefined ? this.#runs.length : countUpTo(this.#firstKeys, to)
    const found = this.#runs.slice(first, end)
    cutEdge(found, found.length - 1, (run) => [
      0,
      to === undefined ? run.length : positionIn(run, to),
    ])
    cutEdge(found, 0, (run) => [positionIn(run, from), run.length])
    return found
  }

  /** The run that holds `key` or would receive it. */
  #runFor(key: string): number {
    return Math.max(0, countUpTo(this.#firstKeys, key) - 1)
  }

  #shrink(at: number, shorter: Run): void {
    const neighbour = at > 0 ? at - 1 : at + 1
    const other = this.#runs[neighbour]
    if (shorter.length === 0) this.#replace(at, 1, [])
    else if (shorter.length < minRunLength && other && other.length <= maxRunLength / 2) {
      const joined = neighbour < at ? [...other, ...shorter] : [...shorter, ...other]
      this.#replace(Math.min(at, neighbour), 2, [joined])
    } else this.#replace(at, 1, [shorter])
  }

  #replace(at: number, count: number, runs: readonly Run[]): void {
    if (count === 1 && runs.length === 1) {
      const [run] = runs as [Run]
      this.#runs[at] = run
      this.#firstKeys[at] = keyAt(run, 0)
      return
    }
    this.#runs.splice(at, count, ...runs)
    this.#firstKeys.splice(at, count, ...runs.map((run) => keyAt(run, 0)))
  }
}

/** Splits a run; one that grows at its end keeps most on the left, as keys often come in order. */
function halves(run: Run, inserted: number): readonly Run[] {
  const middle = inserted === run.length - 1 ? loadedRunLength : run.length >>> 1
  return [run.slice(0, middle), run.slice(middle)]
}

function cutEdge(runs: Run[], index: number, bounds: (run: Run) => [number, number]): void {
  const run = runs[index]
  if (run === undefined) return
  const [from, to] = bounds(run)
  if (from >= to) runs.splice(index, 1)
  else runs[index] = sliceRun(run, from, to)
}

/** What keys hold instead of what the runs say; `undefined` = the key is not there. */
export type Changes = ReadonlyMap<string, StoredRecord | undefined>

/** The runs with some keys set or removed. Runs without such a key stay the same arrays. */
export function withChanges(runs: readonly Run[], changes: Changes): Run[] {
  if (changes.size === 0) return [...runs]
  if (runs.length === 0) return nonEmpty([merged([], [...changes.keys()], changes)])
  const firstKeys = runs.map((run) => keyAt(run, 0))
  const changedKeysOf = new Map<number, string[]>()
  for (const key of changes.keys()) {
    const at = Math.max(0, countUpTo(firstKeys, key) - 1)
    const keys = changedKeysOf.get(at)
    if (keys) keys.push(key)
    else changedKeysOf.set(at, [key])
  }
  return nonEmpty(
    runs.map((run, at) => {
      const keys = changedKeysOf.get(at)
      return keys ? merged(run, keys, changes) : run
    }),
  )
}

/** The first `limit` records of the runs, and how many that leaves out; no limit or 0 takes all. */
export function takeRecords(
  runs: readonly Run[],
  limit: number | undefined,
): { readonly runs: readonly Run[]; readonly remaining: number } {
  if (!limit) return { runs, remaining: 0 }
  const taken: Run[] = []
  let room = limit
  let remaining = 0
  for (const run of runs) {
    const count = Math.min(room, run.length)
    if (count > 0) taken.push(sliceRun(run, 0, count))
    room -= count
    remaining += run.length - count
  }
  return { runs: taken, remaining }
}

/** `run` with what `keys` held instead. */
function merged(run: Run, keys: readonly string[], changes: Changes): Run {
  const result: StoredRecord[] = []
  let replaced = 0
  for (const record of run) {
    if (!changes.has(record.key)) {
      result.push(record)
      continue
    }
    replaced++
    const held = changes.get(record.key)
    if (held) result.push(held)
  }
  // Most changes are to keys that are still there; only the others need to be put into order.
  if (replaced === keys.length) return result
  for (const key of keys) {
    const held = changes.get(key)
    if (held && run[positionIn(run, key)]?.key !== key) result.push(held)
  }
  return result.sort((a, b) => (a.key < b.key ? -1 : 1))
}

const nonEmpty = (runs: readonly Run[]): Run[] => runs.filter((run) => run.length > 0)

/** A half-open range of keys; without `to` it has no end. */
export interface KeyRange {
  readonly from: string
  readonly to: string | undefined
}

/** The keys that start with `prefix` and, if given, sort after `after`. */
export function prefixRange(prefix: string, after?: string): KeyRange {
  // A key with a NUL added is the very next key in string order.
  const from = after !== undefined && after >= prefix ? `${after}\0` : prefix
  return { from, to: endOfPrefix(prefix) }
}

/** Whether `key` lies in `range`. */
export function inRange(range: KeyRange, key: string): boolean {
  return key >= range.from && (range.to === undefined || key < range.to)
}

function endOfPrefix(prefix: string): string | undefined {
  for (let length = prefix.length; length > 0; length--) {
    const last = prefix.charCodeAt(length - 1)
    if (last < 0xffff) return prefix.slice(0, length - 1) + String.fromCharCode(last + 1)
  }
  return undefined
}
