import type { PathRoute } from '../routes.ts'

/** API discovery and OpenAPI. */
export function documentRoutes(): PathRoute[] {
  return []
}
