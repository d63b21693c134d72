/** Where an add-on is, seen by itself and by its reader. */
export interface UrlPlaces {
  /** The path of the proxy to the add-on, without a slash at its end. */
  readonly prefix: string
  /** `host:port` of the backend. */
  readonly backend: string
  /** The host that the reader asked for. */
  readonly requestHost: string
}

const absolute = /^(?:(https?):)?\/\/([^/?#]*)([^]*)$/i

/**
 * A URL that an add-on has written, as its reader must have it: paths from the root and URLs of the add-on's own
 * host begin with the proxy's path. Everything else stays: it leads elsewhere, or is relative and right already.
 */
export function rewriteUrl(url: string, places: UrlPlaces): string {
  const found = absolute.exec(url)
  if (!found) return url.startsWith('/') ? belowPrefix(url, places.prefix) : url
  const [, scheme, host = '', rest = ''] = found
  const own = isHost(host, places.backend, scheme)
  if (!own && !isHost(host, places.requestHost, scheme)) return url
  const path = belowPrefix(rest.startsWith('/') ? rest : `/${rest}`, places.prefix)
  // The reader cannot know the backend's address; its own it knows.
  return own ? path : url.slice(0, url.length - rest.length) + path
}

function isHost(host: string, expected: string, scheme: string | undefined): boolean {
  if (expected === '') return false
  const wanted = expected.toLowerCase()
  const found = host.toLowerCase()
  if (found === wanted) return true
  const port = scheme?.toLowerCase() === 'https' ? ':443' : ':80'
  return found + port === wanted || found === wanted + port
}

function belowPrefix(path: string, prefix: string): string {
  if (path === prefix || /^[/?#]/.test(path.startsWith(prefix) ? path.slice(prefix.length) : 'x'))
    return path
  return prefix + withoutClimbing(path)
}

/** Browsers follow `..` upwards, and above the prefix there are other add-ons. */
function withoutClimbing(path: string): string {
  const [, bare = '', tail = ''] = /^([^?#]*)([^]*)$/.exec(path) ?? []
  if (!/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i.test(bare)) return path
  const { pathname } = new URL(bare.replace(/^[/\\]+/, '/'), 'http://add-on')
  return pathname + tail
}
