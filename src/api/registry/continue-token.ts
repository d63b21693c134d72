import { badRequest, isRecord } from '../../core/index.ts'

/** Where the next page of a list goes on. */
export interface ContinuePoint {
  /** The revision that all pages show; -1 for the newest after the first one has expired. */
  readonly revision: number
  /** The last key of the page before. */
  readonly after: string
}

const version = 'meta.k8s.io/v1'

/** The opaque `continue` value for a point in `prefix`. */
export function encodeContinue(point: ContinuePoint, prefix: string): string {
  const token = { v: version, rv: point.revision, start: point.after.slice(prefix.length) }
  return Buffer.from(JSON.stringify(token)).toString('base64url')
}

/** Reads a `continue` value; throws a 400 when it is none of ours. */
export function decodeContinue(text: string, prefix: string): ContinuePoint {
  const token = parse(text)
  if (
    !isRecord(token) ||
    token['v'] !== version ||
    typeof token['start'] !== 'string' ||
    typeof token['rv'] !== 'number' ||
    !Number.isSafeInteger(token['rv'])
  )
    throw badRequest('continue key is not valid: it does not come from this server')
  return { revision: token['rv'], after: prefix + token['start'] }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}
