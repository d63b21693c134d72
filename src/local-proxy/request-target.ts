import { malformed, Refusal } from './refusal.ts'

/** The target of a request, taken apart once. */
export interface Target {
  /** As sent, without the query. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
}

const maxPathLength = 8 * 1024

/** Reads a request's target; nothing but a path and a query is let through. */
export function readTarget(url: string): Target {
  if (!url.startsWith('/')) throw malformed('the target of a request must be a path')
  // Node lets these pass; the next reader may end the path at them or take them for slashes.
  if (/[#\\\0-\x20\x7f]/.test(url)) throw malformed('the target has characters that no URL has')
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  if (path.length > maxPathLength) throw new Refusal(414, 'URI Too Long')
  return { path, query: mark < 0 ? '' : url.slice(mark) }
}

/** A path as the API server reads it, for decisions; bytes that are no UTF-8 stay what they are. */
export function decodePath(path: string): string {
  if (!path.includes('%')) return path
  if (/%(?![0-9a-f]{2})/i.test(path)) throw malformed('the path has a broken % escape')
  try {
    return decodeURIComponent(path)
  } catch {
    return path.replaceAll(/%([0-9a-f]{2})/gi, (_match, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
}

/** The path without empty and dot segments, in the way Go cleans it; the same text if it has none. */
export function cleanPath(path: string): string {
  if (!/\/(?:\/|\.{1,2}(?:\/|$))/.test(path)) return path
  const kept: string[] = []
  const segments = path.split('/').slice(1)
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  const isOpen = path.endsWith('/') && kept.length > 0
  return `/${kept.join('/')}${isOpen ? '/' : ''}`
}
