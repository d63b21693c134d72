import { badRequest } from '../core/index.ts'

/** The target of a request, split once. */
export interface RequestTarget {
  /** As sent, without the query. */
  readonly path: string
  /** With its question mark, or empty. */
  readonly query: string
}

/** Splits the target of a request at its query. */
export function splitTarget(url: string): RequestTarget {
  const mark = url.indexOf('?')
  return mark < 0 ? { path: url, query: '' } : { path: url.slice(0, mark), query: url.slice(mark) }
}

/** What is wrong with a target that must be a path with a query; absolute addresses could choose another host. */
export function targetProblem(url: string): string | undefined {
  if (!url.startsWith('/')) return 'the target of a request must be a path'
  // Node accepts these; the next reader may end the path at them or take them for slashes.
  return /[#\\\0-\x20\x7f]/.test(url) ? 'the target has characters that no URL has' : undefined
}

/** Whether a path may lead upwards or end early for some reader: dot segments and NUL in any encoding. */
export function isClimbing(path: string): boolean {
  // Most paths have nothing that could climb.
  if (!/%|\/\./.test(path)) return false
  const decoded = path
    .replaceAll(/%2e/gi, '.')
    .replaceAll(/%2f|%5c/gi, '/')
    .replaceAll(/;[^/]*/g, '')
  return /%00/.test(path) || /(?:^|\/)\.{1,2}(?:\/|$)/.test(decoded)
}

/** A path as an API server decodes it, for decisions; bytes that are not UTF-8 stay. @throws ApiError (400) */
export function decodePath(path: string): string {
  if (!path.includes('%')) return path
  if (/%(?![0-9a-f]{2})/i.test(path)) throw badRequest('the path has a broken % escape')
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
