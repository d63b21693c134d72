import type { Clock } from '../core/index.ts'
import { ApiReader } from './api-reader.ts'
import { userName } from './home-contents.ts'
import type { ApiTransport } from './transport.ts'

const unauthorized = 401
const pauseMs = 10_000

/**
 * A transport on which an add-on cannot make the user log in again. Its 401 and that of the API server look
 * alike, so the API server is asked who we are: if it refuses the credential too, the transport renews it.
 */
export function withRefusalsChecked(transport: ApiTransport, clock: Clock): ApiTransport {
  const api = new ApiReader(transport)
  let next = Number.NEGATIVE_INFINITY
  const check = (): void => {
    const now = clock.monotonic()
    if (now < next) return
    next = now + pauseMs
    // If it fails, the next request of the user fails for the same reason and says so.
    userName(api, AbortSignal.timeout(pauseMs)).catch(() => {})
  }
  return {
    ...transport,
    send: async (request) => {
      const answer = await transport.send(request)
      if (request.relayed && answer.status === unauthorized) check()
      return answer
    },
    upgrade: async (request) => {
      const outcome = await transport.upgrade(request)
      if (request.relayed && outcome.refused?.statusCode === unauthorized) check()
      return outcome
    },
  }
}
