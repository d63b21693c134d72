import { pageNotFound } from './refusal.ts'

/** Under which paths what is served. */
export interface RouteOptions {
  readonly apiPrefix: string
  /** Absent where no files are served. */
  readonly staticPrefix?: string
}

/** What a path of the plain origin stands for. */
export type Route =
  | { readonly kind: 'api'; readonly path: string }
  | { readonly kind: 'static'; readonly path: string }
  | { readonly kind: 'redirect'; readonly path: string }

/** A prefix with a slash at both ends. */
export const asPrefix = (text: string): string =>
  `${text.startsWith('/') ? '' : '/'}${text}${text.endsWith('/') ? '' : '/'}`

/** Finds the longest prefix of a path; below one of `/api` the path stays whole, others are taken off. */
export function findRoute(path: string, { apiPrefix, staticPrefix }: RouteOptions): Route {
  const prefixes = [apiPrefix, ...(staticPrefix === undefined ? [] : [staticPrefix])]
  const [prefix] = prefixes
    .filter((each) => path.startsWith(each))
    .sort((a, b) => b.length - a.length)
  if (prefix === undefined) {
    if (prefixes.includes(`${path}/`)) return { kind: 'redirect', path: `${path}/` }
    throw pageNotFound()
  }
  // An exact prefix without its slash goes before a shorter one, as in Go.
  if (prefixes.some((each) => each === `${path}/` && each.length > prefix.length))
    return { kind: 'redirect', path: `${path}/` }
  if (prefix === staticPrefix) return { kind: 'static', path: path.slice(prefix.length) }
  if (prefix.startsWith('/api')) return { kind: 'api', path }
  return { kind: 'api', path: `/${path.slice(prefix.length)}` }
}
