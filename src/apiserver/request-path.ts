import { badRequest } from '../core/index.ts'

// Unreserved and harmless characters only, no empty segment, no dot segment.
const clean = /^(?:\/(?!\/)(?!\.{1,2}(?:\/|$))[!$&'()*+,\-.0-9:;=@A-Z_a-z~]*)+$/
const foreignToPaths = /[^\x21-\x7e]|[\\#]/
const ambiguousWhenDecoded = /[/\\%\x00-\x1f\x7f]/
const dotSegment = /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i
const brokenEscape = /%(?![0-9a-f]{2})|%00/i

const refuse = (why: string) =>
  badRequest(`the path of the request is refused: ${why}; send it in its plain form`)

/** Reads one segment of a path; throws a 400 for one that two readers could understand in two ways. */
export type SegmentReader = (segment: string) => string

const plain: SegmentReader = (segment) => segment

const decoded: SegmentReader = (segment) => {
  if (segment === '') throw refuse('it has an empty segment')
  if (foreignToPaths.test(segment)) throw refuse('it has a character that paths do not have')
  const text = segment.includes('%') ? percentDecoded(segment) : segment
  if (ambiguousWhenDecoded.test(text))
    throw refuse('a segment hides a separator or a control character')
  if (text === '.' || text === '..') throw refuse('it has a dot segment')
  return text
}

function percentDecoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw refuse('it has a broken percent-encoding')
  }
}

/** How the segments of `path` are to be read: as they are when all are plain, else checked one by one. */
export function segmentReaderFor(path: string): SegmentReader {
  if (!path.startsWith('/'))
    throw badRequest('the request target must be a path that begins with "/"')
  return clean.test(path) ? plain : decoded
}

/** Refuses what would climb or break in a part of the path that we hand on without reading it. */
export function checkUnread(rest: string): void {
  if (dotSegment.test(rest)) throw refuse('it has a dot segment')
  if (brokenEscape.test(rest)) throw refuse('it has a broken percent-encoding')
  if (foreignToPaths.test(rest)) throw refuse('it has a character that paths do not have')
}
