import type { Readable } from 'node:stream'
import { constants, createGunzip } from 'node:zlib'
import type { RequestFn } from '../cluster-request.ts'

/** Asks for compressed answers where the caller has not said what it can read, and unpacks them. */
export function withCompression(next: RequestFn): RequestFn {
  return async (request) => {
    if (request.headers['accept-encoding'] !== undefined || request.method === 'HEAD')
      return next(request)
    const headers = { ...request.headers, 'accept-encoding': 'gzip' }
    const response = await next({ ...request, headers })
    if (response.headers['content-encoding'] !== 'gzip') return response
    const { 'content-encoding': _, 'content-length': __, ...rest } = response.headers
    return { ...response, headers: rest, body: unpacked(response.body) }
  }
}

function unpacked(packed: Readable): Readable {
  // Each part of a stream is handed on as it comes, and an empty body is no broken archive.
  const gunzip = createGunzip({
    flush: constants.Z_SYNC_FLUSH,
    finishFlush: constants.Z_SYNC_FLUSH,
  })
  packed.on('error', (error) => gunzip.destroy(error))
  gunzip.on('close', () => packed.destroy())
  return packed.pipe(gunzip)
}
