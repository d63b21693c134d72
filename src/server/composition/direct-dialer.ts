import { once } from 'node:events'
import { connect } from 'node:net'
import { ApiError, type Dialer, systemErrorCode } from '../../core/index.ts'
import { hostAndPort } from './serving-names.ts'

const defaultTimeoutMs = 10_000

const inWords: Readonly<Record<string, string>> = {
  ABORT_ERR: 'no answer in time',
  ETIMEDOUT: 'no answer in time',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be looked up',
}

/** Dials by TCP, each time within a deadline. */
export function directDialer(timeoutMs = defaultTimeoutMs): Dialer {
  return {
    dial: async ({ host, port }, signal) => {
      signal.throwIfAborted()
      const socket = connect({ host, port, noDelay: true, keepAlive: true })
      const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
      try {
        await once(socket, 'connect', { signal: deadline })
        return socket
      } catch (cause) {
        socket.destroy()
        signal.throwIfAborted()
        const code = systemErrorCode(cause) ?? 'unknown error'
        throw new ApiError(
          'ServiceUnavailable',
          `cannot reach ${hostAndPort(host, port)}: ${inWords[code] ?? code}`,
          { cause },
        )
      }
    },
  }
}
