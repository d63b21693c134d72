import { type ApiError, badRequest, isRecord } from '../../core/index.ts'

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

const refused = (why: string): ApiError =>
  badRequest(`invalid continue token: continue key is not valid: ${why}`)

/** Reads a `continue` value; throws a 400 when it is none of ours. */
export function decodeContinue(text: string, prefix: string): ContinuePoint {
  const token = parse(text)
  if (!isRecord(token)) throw refused('it does not come from this server')
  const { v, rv, start } = token
  if (v !== version) throw refused(`server does not recognize this encoded version ${String(v)}`)
  if (typeof rv !== 'number' || !Number.isSafeInteger(rv) || rv === 0)
    throw refused(`incorrect encoded start resourceVersion (version ${version})`)
  if (typeof start !== 'string' || start === '')
    throw refused(`encoded start key empty (version ${version})`)
  // A store key has no such segments, so somebody has made this up.
  if (start.split('/').some((segment) => segment === '..' || segment === '.')) throw refused(start)
  return { revision: rv, after: prefix + start }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}
