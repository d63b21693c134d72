/** A part of a file: from its first to its last byte. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The part that a Range header asks for: none if it is to be ignored, `unsatisfiable` if the file has no such part. */
export function readRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const text = header?.trim() ?? ''
  const suffix = /^bytes=-(\d{1,15})$/.exec(text)
  if (suffix) return within(Math.max(0, size - Number(suffix[1])), size - 1)
  const found = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(text)
  if (!found) return undefined
  const start = Number(found[1])
  const last = found[2] ? Number(found[2]) : size - 1
  if (found[2] && last < start) return undefined
  return within(start, Math.min(last, size - 1))
}

const within = (start: number, end: number): ByteRange | 'unsatisfiable' =>
  start <= end ? { start, end } : 'unsatisfiable'
