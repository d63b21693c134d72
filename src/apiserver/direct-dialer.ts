import { ApiError, type Dialer } from '../core/index.ts'
import { connectTcp, TargetUnreachable } from '../tunnel/index.ts'
import { hostAndPort } from './startup/serving-names.ts'

const defaultTimeoutMs = 10_000

/** Dials by TCP, each time within a deadline. */
export function directDialer(timeoutMs = defaultTimeoutMs): Dialer {
  return {
    dial: async ({ host, port }, signal) => {
      try {
        return await connectTcp({ host, port }, { timeoutMs, signal, allowHalfOpen: false })
      } catch (cause) {
        signal.throwIfAborted()
        if (!(cause instanceof TargetUnreachable)) throw cause
        const message = `cannot reach ${hostAndPort(host, port)}: ${cause.message}`
        throw new ApiError('ServiceUnavailable', message, { cause })
      }
    },
  }
}
