import type { StoredRecord } from '../contract.ts'
import { countUpTo, keyAt, positionIn, type Run, sliceRun } from './run-slices.ts'

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
