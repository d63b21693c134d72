import type { StoredRecord } from '../../storage/index.ts'
import { itemHeadBytes, runLength } from '../registry/object-bytes.ts'
import type { RunCache } from './run-cache.ts'

type Run = readonly StoredRecord[]

const comma = Buffer.from(',')
/** A run that is larger is not rendered as a whole: nobody could afford a copy per reader. */
const maxRenderedBytes = 2 ** 20

const lengths = new WeakMap<Run, number>()

function lengthOf(run: Run): number {
  const known = lengths.get(run)
  if (known !== undefined) return known
  const length = runLength(run)
  lengths.set(run, length)
  return length
}

/** The parts of a list that are rendered, compressed and kept as one: whole runs, or records of large ones. */
export type ListPart = Run | StoredRecord

/** Splits runs so that no part is large unless its one record is. */
export function* listParts(runs: readonly Run[]): Generator<ListPart> {
  for (const run of runs) {
    if (run.length === 0) continue
    if (lengthOf(run) <= maxRenderedBytes) yield run
    else yield* run
  }
}

const isRun = (part: ListPart): part is Run => Array.isArray(part)

/** The bytes of a part as pieces; a record's own bytes are not copied. */
export function piecesOf(part: ListPart, rendered: RunCache): readonly Buffer[] {
  return isRun(part) ? [rendered.get(part)] : [itemHeadBytes(part), part.value]
}

/** How long the items of a list are together, with the commas between them. */
export function lengthOfItems(runs: readonly Run[]): number {
  const filled = runs.filter((run) => run.length > 0)
  return filled.reduce((sum, run) => sum + lengthOf(run), Math.max(0, filled.length - 1))
}

/** The bytes of all items, with commas between them. */
export function* itemPieces(runs: readonly Run[], rendered: RunCache): Generator<Buffer> {
  let isFirst = true
  for (const part of listParts(runs)) {
    if (!isFirst) yield comma
    isFirst = false
    yield* piecesOf(part, rendered)
  }
}
