import type { ServerResponse } from 'node:http'
import type { DescribedPath } from '../../api/index.ts'
import { type AuthorizedRequest, methodNotAllowed, notServed } from '../../core/index.ts'
import type { RouteHandler } from '../pipeline/types.ts'

/** A path that is no resource, and who answers it. */
export interface PathRoute {
  /** Exact, or with all that lies below it when it ends in `/*`. */
  readonly path: string
  /** GET unless given; HEAD goes with GET. */
  readonly methods?: readonly string[]
  /** Paths that only make sense with something below are not listed at `/`. */
  readonly listed?: boolean
  /** As OpenAPI shows it; other paths are not in there. */
  readonly described?: DescribedPath
  readonly handle: RouteHandler
}

/** The table of plain paths as one handler; `/` lists them. */
export function createPathRoutes(routes: readonly PathRoute[]): RouteHandler {
  const exact = new Map<string, PathRoute>()
  const below: { readonly prefix: string; readonly route: PathRoute }[] = []
  for (const route of routes) {
    if (route.path.endsWith('/*')) below.push({ prefix: route.path.slice(0, -1), route })
    else exact.set(route.path, route)
  }
  below.sort((a, b) => b.prefix.length - a.prefix.length)
  if (!exact.has('/')) exact.set('/', indexOf(routes))

  return (request, response, signal) => {
    const { path } = request.info
    const route = exact.get(path) ?? below.find(({ prefix }) => path.startsWith(prefix))?.route
    if (route === undefined) throw notServed()
    checkMethod(route, request, response)
    return route.handle(request, response, signal)
  }
}

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
  const listed = routes.filter((route) => route.listed !== false && !route.path.endsWith('/*'))
  const paths = [...new Set(listed.map((route) => route.path))].sort()
  return { path: '/', handle: (_request, response) => sendJson(response, { paths }) }
}

/** Answers 200 with `value` as JSON. */
export function sendJson(response: ServerResponse, value: unknown): void {
  send(response, 'application/json', `${JSON.stringify(value, undefined, 2)}\n`)
}

/** Answers 200 with `text`. */
export function send(response: ServerResponse, contentType: string, text: string): void {
  const body = Buffer.from(text)
  response.writeHead(200, { 'Content-Type': contentType, 'Content-Length': body.length })
  response.end(body)
}
