import { rawHeaderValues, withoutHeaders } from './raw-headers.ts'

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

// Whoever could have these dropped could change where a request goes or where its body ends.
const neverNominated: readonly string[] = ['host', 'content-length']

/**
 * The headers of a message that go on to the next hop (RFC 9110 section 7.6.1): without those of one
 * connection, and without those that `Connection` names. Add headers of our own afterwards, or a client
 * could have them dropped. Pseudo-headers of HTTP/2 stay behind as well.
 */
export function endToEndHeaders(rawHeaders: readonly string[]): string[] {
  const dropped = droppedBy(rawHeaderValues(rawHeaders, 'connection'))
  return withoutHeaders(rawHeaders, (name) => name[0] === ':' || dropped.has(name.toLowerCase()))
}

/** Nearly every message names nothing but what is dropped anyway. */
function droppedBy(connection: readonly string[]): ReadonlySet<string> {
  let dropped: Set<string> | undefined
  for (const value of connection) {
    for (const nominated of value.split(',')) {
      const name = nominated.trim().toLowerCase()
      if (hopByHop.has(name) || neverNominated.includes(name)) continue
      dropped ??= new Set(hopByHop)
      dropped.add(name)
    }
  }
  return dropped ?? hopByHop
}
