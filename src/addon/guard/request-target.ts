import { malformed } from './refusal.ts'

/**
 * Refuses targets that two readers could take in two ways; the others go on byte for byte. Only a path is let
 * through: an absolute address, or two slashes in front, could choose another host.
 */
export function checkTarget(url: string): void {
  if (!url.startsWith('/') || url.startsWith('//'))
    throw malformed('the target of a request must be a path')
  // Node lets these pass; the next reader may end the path at them or take them for slashes.
  if (/[#\\\0-\x20\x7f]/.test(url)) throw malformed('the target has characters that no URL has')
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  if (isPlain(path)) return
  const decoded = path
    .replaceAll(/%2e/gi, '.')
    .replaceAll(/%2f|%5c/gi, '/')
    .replaceAll(/;[^/]*/g, '')
  if (/%00/.test(path) || /(?:^|\/)\.{1,2}(?:\/|$)/.test(decoded))
    throw malformed('the path climbs, or ends at a null byte')
}

/** Most paths have nothing in them that could climb. */
const isPlain = (path: string): boolean => !/%|\/\./.test(path)
