import {
  ApiDocuments,
  type ExtraResource,
  type ExtraSubresource,
  kindDefinitions,
  reviewResources,
  type ServerFacts,
} from '../../api/index.ts'
import { notServed } from '../../core/index.ts'
import type { RouteHandler } from '../pipeline-parts.ts'
import type { PathRoute } from './routes.ts'

const header = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.join(',')

/** API discovery and OpenAPI. */
export function documentRoutes(
  server: ServerFacts,
  beside: {
    readonly extras: readonly ExtraSubresource[]
    readonly live: readonly ExtraResource[]
  },
): PathRoute[] {
  const documents = new ApiDocuments(
    { kinds: kindDefinitions, reviews: reviewResources, ...beside },
    server,
  )
  const handle: RouteHandler = ({ request, info }, response) => {
    const { headers } = request
    const answer = documents.answer({
      path: info.path,
      query: info.query,
      accept: headers.accept,
      acceptEncoding: header(headers['accept-encoding']),
      ifNoneMatch: headers['if-none-match'],
    })
    if (!answer) throw notServed()
    response.writeHead(answer.status, { ...answer.headers, 'Content-Length': answer.body.length })
    response.end(answer.body)
  }
  return documents.paths.flatMap((path) => [
    { path, handle },
    { path: `${path}/`, handle, listed: false },
  ])
}
