import type { ServerResponse } from 'node:http'
import type { DescribedPath } from '../../api/index.ts'
import { type AuthorizedRequest, methodNotAllowed, notServed } from '../../core/index.ts'
import type { RouteHandler } from '../pipeline/types.ts'

/** A non-resource path and its handler. */
export interface PathRoute {
  /** Exact, or a prefix when it ends in `/*`. */
  readonly path: string
  /** GET unless given; HEAD goes with GET. */
  readonly methods?: readonly string[]
  /** False for paths that are not listed at `/`. */
  readonly listed?: boolean
  /** As OpenAPI shows it; without it OpenAPI does not contain the path. */
  readonly described?: DescribedPath
  readonly handle: RouteHandler
}

/** The table of non-resource paths; `/` lists them. */
export class PathRoutes {
  readonly #exact = new Map<string, PathRoute>()
  /** The longest prefix first. */
  readonly #prefixes: readonly { readonly prefix: string; readonly route: PathRoute }[]

  constructor(routes: readonly PathRoute[]) {
    for (const route of routes) if (!isPrefix(route)) this.#exact.set(route.path, route)
    if (!this.#exact.has('/')) this.#exact.set('/', indexOf(routes))
    this.#prefixes = routes
      .filter(isPrefix)
      .map((route) => ({ prefix: route.path.slice(0, -1), route }))
      .sort((a, b) => b.prefix.length - a.prefix.length)
  }

  /** Serves a request; throws 404 for an unknown path and 405 for a method that it does not have. */
  handle(
    request: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): void | Promise<void> {
    const { path } = request.info
    const route =
      this.#exact.get(path) ?? this.#prefixes.find(({ prefix }) => path.startsWith(prefix))?.route
    if (route === undefined) throw notServed()
    checkMethod(route, request, response)
    return route.handle(request, response, signal)
  }
}

const isPrefix = ({ path }: PathRoute): boolean => path.endsWith('/*')

function checkMethod(
  route: PathRoute,
  { request }: AuthorizedRequest,
  response: ServerResponse,
): void {
  const allowed = route.methods ?? ['GET']
  const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
  if (allowed.includes(method)) return
  response.setHeader('Allow', allowed.includes('GET') ? [...allowed, 'HEAD'] : [...allowed])
  throw methodNotAllowed()
}

function indexOf(routes: readonly PathRoute[]): PathRoute {
  const listed = routes.filter((route) => route.listed !== false && !isPrefix(route))
  const paths = [...new Set(listed.map((route) => route.path))].sort()
  return { path: '/', handle: (_request, response) => sendJson(response, { paths }) }
}

/** Responds 200 with `value` as JSON. */
export function sendJson(response: ServerResponse, value: unknown): void {
  send(response, 'application/json', `${JSON.stringify(value, undefined, 2)}\n`)
}

/** Responds 200 with `text`. */
export function send(response: ServerResponse, contentType: string, text: string): void {
  const body = Buffer.from(text)
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': body.length })
  response.end(body)
}
