import type { Clock } from '../core/index.ts'
import { ApiReader } from './api-reader.ts'
import { userName } from './home-contents.ts'
import type { Upstream } from './proxy-upstream.ts'

const unauthorized = 401
const pauseMs = 10_000

/**
 * An upstream on which an add-on cannot make the user log in again. Its 401 and that of the API server look
 * alike, so the API server is asked who we are: if it refuses the credential too, the transport renews it.
 */
export function withRefusalsChecked(upstream: Upstream, clock: Clock): Upstream {
  const api = new ApiReader(upstream)
  let next = Number.NEGATIVE_INFINITY
  const check = (): void => {
    const now = clock.monotonic()
    if (now < next) return
    next = now + pauseMs
    // If it fails, the next request of the user fails for the same reason and says so.
    userName(api, AbortSignal.timeout(pauseMs)).catch(() => {})
  }
  return {
    ...upstream,
    send: async (request) => {
      const answer = await upstream.send(request)
      if (request.relayed && answer.status === unauthorized) check()
      return answer
    },
    upgrade: async (request) => {
      const outcome = await upstream.upgrade(request)
      const isRefused = outcome.kind === 'refused' && outcome.status === unauthorized
      if (request.relayed && isRefused) check()
      return outcome
    },
  }
}
