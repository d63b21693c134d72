import { TokenRejected } from './relying-party-errors.ts'

/** The part of a request that matters here; requests of node:http, node:http2, Express and Fastify's `raw` have it. */
export interface RequestWithHeaders {
  readonly rawHeaders: readonly string[]
}

/** The one bearer token of a request; throws TokenRejected when there is none or more than one. */
export function bearerOf({ rawHeaders }: RequestWithHeaders): string {
  // Of two headers Node.js shows the first and others may heed the second.
  const values = rawHeaders.filter(
    (_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'authorization',
  )
  const [value, ...others] = values
  if (value === undefined) throw new TokenRejected('missing', 'the request has no bearer token')
  const token = /^bearer ([\x21-\x7e]+)$/i.exec(value.trim())?.[1]
  if (others.length > 0 || token === undefined)
    throw new TokenRejected('malformed', 'the Authorization header is not one bearer token')
  return token
}
