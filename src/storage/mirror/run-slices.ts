import type { StoredRecord } from '../contract.ts'

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
export function sliceRun(run: Run, from: number, to: number): Run {
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
export function countUpTo(firstKeys: readonly string[], key: string): number {
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
export function keyAt(run: Run, index: number): string {
  return (run[index] as StoredRecord).key
}
