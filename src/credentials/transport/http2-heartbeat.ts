import type { ClientHttp2Session } from 'node:http2'
import { ConnectionReset } from './try-failed.ts'

/** How a connection that carries a request is asked whether its server is still there. */
export interface Heartbeat {
  /** So often. */
  readonly everyMs: number
  /** Without an answer for so long it is dead. */
  readonly withinMs: number
}

/** As Go's client does it: a watch may be silent for hours, and something on the way may have forgotten it. */
export const defaultHeartbeat: Heartbeat = { everyMs: 30_000, withinMs: 15_000 }

/** Asks until it is stopped; a connection that does not answer is cut, and its requests fail. */
export function startHeartbeat(
  session: ClientHttp2Session,
  { everyMs, withinMs }: Heartbeat,
): () => void {
  let deadline: NodeJS.Timeout | undefined
  const ask = (): void => {
    if (deadline || session.destroyed) return
    const isSent = session.ping(() => {
      clearTimeout(deadline)
      deadline = undefined
    })
    if (!isSent) return
    const silent = `the server has not answered a ping within ${withinMs / 1000} s`
    deadline = setTimeout(() => session.destroy(new ConnectionReset(silent)), withinMs).unref()
  }
  const timer = setInterval(ask, everyMs).unref()
  return () => {
    clearInterval(timer)
    clearTimeout(deadline)
  }
}
