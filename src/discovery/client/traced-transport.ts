import type { Transport } from '../../client/index.ts'
import { type Logger, systemErrorCode } from '../../core/index.ts'

/** A transport that tells of each request and the head of its answer; of headers and bodies it tells nothing. */
export function tracedTransport(inner: Transport, log: Logger): Transport {
  return {
    ...inner,
    send: async (request) => {
      const about = { server: inner.server, method: request.method, path: request.path }
      log.trace(about, 'request')
      try {
        const response = await inner.send(request)
        log.trace({ ...about, status: response.status }, 'answer')
        return response
      } catch (error) {
        log.trace({ ...about, code: systemErrorCode(error) }, 'no answer')
        throw error
      }
    },
  }
}
