import { endToEndHeaders } from '../../http/index.ts'

/**
 * The headers of an add-on's answer as they go back, as a flat list. What was answered to one user must not be
 * handed to another by a cache on the way.
 */
export function answerHeaders(rawHeaders: readonly string[]): string[] {
  const headers = endToEndHeaders(rawHeaders)
  let isSaid = false
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    if (name.length !== cacheControl.length || name.toLowerCase() !== cacheControl) continue
    isSaid = true
    headers[index + 1] = privately(headers[index + 1] ?? '')
  }
  if (!isSaid) headers.push('Cache-Control', 'private')
  return headers
}

const cacheControl = 'cache-control'

const plain = /^(?:private|no-store)(?:, ?[\w-]+(?:=\d+)?)*$/i

/** `private` is put in front: with a list of fields, or behind a quote that is never closed, it would not count. */
function privately(directives: string): string {
  if (plain.test(directives) && !/public|s-maxage/i.test(directives)) return directives
  const kept = directives
    .split(',')
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !shared.test(directive))
  return ['private', ...kept].join(', ')
}

/** What speaks of shared caches. */
const shared = /^(?:public|private|s-maxage|proxy-revalidate)\b/i
