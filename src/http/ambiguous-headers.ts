import type { IncomingMessage } from 'node:http'
import { badRequest } from '../core/index.ts'
import { foldHeaderName, headerPairs } from './raw-headers.ts'

// Two readers that each take another one of these see two different requests.
const singletons = new Set([
  'authorization',
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
])
const framing = new Set(['content-length', 'transfer-encoding'])

/**
 * Refuses a request that could be read in two ways: a header that may be there only once is there
 * twice, a body is framed in an unusual way, or HTTP/2 names two hosts.
 */
export function refuseAmbiguousHeaders(
  request: Pick<IncomingMessage, 'rawHeaders' | 'headers'>,
): void {
  let seen: Set<string> | undefined
  for (const [spelt] of headerPairs(request.rawHeaders)) {
    const name = spelt.toLowerCase()
    if (singletons.has(name)) {
      seen ??= new Set()
      if (seen.has(name)) throw badRequest(`the header ${name} is there twice`)
      seen.add(name)
    } else if (/[^a-z0-9-]/.test(name) && framing.has(foldHeaderName(name))) {
      throw badRequest(`the header ${JSON.stringify(spelt)} is an odd spelling of another one`)
    }
  }
  checkFraming(request.headers['transfer-encoding'])
  checkHost(request.headers.host, request.headers[':authority'])
}

function checkFraming(transferEncoding: string | undefined): void {
  if (transferEncoding === undefined || transferEncoding.toLowerCase() === 'chunked') return
  throw badRequest('the only transfer encoding that is supported is chunked')
}

function checkHost(host: string | undefined, authority: string | string[] | undefined): void {
  if (host === undefined || authority === undefined || host === authority) return
  throw badRequest('the headers host and :authority name different hosts')
}
