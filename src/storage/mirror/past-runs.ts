import type { StoredRecord } from '../contract.ts'
import { countUpTo, keyAt, positionIn, type Run, sliceRun } from './run-slices.ts'

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
