import type { OpenapiDocument } from './openapi-types.ts'

/** A path that is no resource and can be read, as OpenAPI describes it. */
export interface DescribedPath {
  /** Without a slash at its end. */
  readonly path: string
  readonly tag: string
  readonly description: string
  readonly operationId: string
  readonly contentType: string
}

/** The OpenAPI v3 document of one such path; Kubernetes names it with a slash at its end, so generated clients ask for that. */
export function openapiOfPath(
  { path, tag, description, operationId, contentType }: DescribedPath,
  serverVersion: string,
): OpenapiDocument {
  const content = { [contentType]: { schema: { type: 'string' } } }
  const responses = {
    '200': { description: 'OK', content },
    '401': { description: 'Unauthorized' },
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Sallyport', version: serverVersion },
    paths: { [`${path}/`]: { get: { tags: [tag], description, operationId, responses } } },
  }
}
