import type { Connections } from './connections.ts'

/** The path and query of a URL below the server's address; throws for a URL that is not the cluster's. */
export function pathBelow({ route, server }: Connections, url: URL): string {
  const known = route.addresses.all.find(({ origin }) => origin === url.origin)
  const path = url.pathname + url.search
  const base = known?.basePath ?? ''
  if (known && (path === base || path.startsWith(`${base}/`))) return path.slice(base.length) || '/'
  throw new TypeError(`requests go to ${server} only, not to ${url.origin}`)
}
