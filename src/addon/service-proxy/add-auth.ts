import { ApiError, badRequest, goQuote, type KubeObject, WrongUsage } from '../../core/index.ts'
import { allowedHeaders, rawHeaderValues } from '../../http/index.ts'

/** Annotations by which a Service asks to be told who its users are; the second is the proposal's own. */
const annotations = [
  'sallyport.dev/add-auth',
  'alpha.service-proxy.kubernetes.io/proxy-authentication',
] as const

/** The annotation by which a Service asks for the groups of its users too. */
const groupsAnnotation = 'sallyport.dev/add-auth-groups'

/** The cookie by which the requests of a page ask for what its own address asked for; it is no secret. */
const markerCookie = 'sallyport-add-auth'

/** By what a request asks that its user be made known. */
export type Trigger = 'query' | 'annotation' | 'cookie'

/** A query without our parameter, and whether that was there. */
export interface ReadQuery {
  /** The bytes that go on; without a question mark. */
  readonly query: string
  readonly asked: boolean
}

/**
 * Takes `add-auth=true` out of a query and leaves all other bytes as they are. Anything else that a reader could take
 * for it (another value, another spelling of the name, a second one) is a 400: it must not reach the add-on, and
 * nobody should have to guess what it does.
 */
export function readAddAuth(query: string): ReadQuery {
  if (!/add|%/i.test(query)) return { query, asked: false }
  const kept: string[] = []
  let asked = false
  for (const pair of query.split('&')) {
    if (!looksLikeOurs(pair)) kept.push(pair)
    else if (pair !== 'add-auth=true')
      throw badRequest('the query parameter add-auth is written add-auth=true and in no other way')
    else if (asked) throw badRequest('the query parameter add-auth is there twice')
    else asked = true
  }
  return { query: asked ? kept.join('&') : query, asked }
}

/** Some readers split at semicolons, ignore case or take `_` for `-`. */
function looksLikeOurs(pair: string): boolean {
  return pair.split(';').some((part) => {
    const [name = ''] = part.split('=', 1)
    const plain = decoded(name)
      .trim()
      .toLowerCase()
      .replaceAll(/[_.+ ]/g, '-')
    return plain === 'add-auth'
  })
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Whether a Service always wants to know its users. */
export const wantsIdentity = ({ metadata }: KubeObject): boolean =>
  annotations.some((name) => metadata.annotations?.[name] === 'true')

/** Whether a Service wants to know the groups of its users. */
export const wantsGroups = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[groupsAnnotation] === 'true'

const headersAnnotation = 'sallyport.dev/allowed-request-headers'

/**
 * The headers that a Service declares to need although their names look like claims to an identity. A list that
 * cannot be read, or that names a header of Kubernetes or of ours, is a 503: its author expects something of it.
 */
export function declaredHeaders({ metadata }: KubeObject): ReadonlySet<string> | undefined {
  const text = metadata.annotations?.[headersAnnotation]
  if (text === undefined) return undefined
  try {
    return allowedHeaders(text.split(',').map((name) => name.trim()))
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error
    const why = `service ${goQuote(metadata.name)} has an invalid ${headersAnnotation}: ${error.message}`
    throw new ApiError('ServiceUnavailable', why, { cause: error })
  }
}

/** Whether a cookie, as `name=value` with or without attributes, is our marker. */
export const isMarker = (pair: string): boolean =>
  pair.trimStart().split('=', 1)[0]?.trim().toLowerCase() === markerCookie

/** Whether a request carries the marker. */
export const hasMarker = (rawHeaders: readonly string[]): boolean =>
  rawHeaderValues(rawHeaders, 'cookie')
    .flatMap((value) => value.split(';'))
    .some((pair) => pair.trim() === `${markerCookie}=true`)

/** Sets the marker for the pages below a path, and for this session of the browser. */
export const setMarker = (prefix: string): string =>
  `${markerCookie}=true; Path=${prefix}/; HttpOnly; SameSite=Strict`
