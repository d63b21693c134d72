import { getEventListeners } from 'node:events'
import type { IncomingMessage } from 'node:http'

/**
 * Spare abort controllers, one per connection. Making a signal costs more than all checks of a
 * request together, and nearly none is ever aborted. A controller goes back only if nobody listens
 * to it any more, and only to its own connection: should somebody have kept the signal, it still
 * tells the truth when that client goes away.
 */
export class SignalPool {
  readonly #spare = new WeakMap<object, AbortController>()

  take(request: IncomingMessage): AbortController {
    const connection = connectionOf(request)
    const spare = this.#spare.get(connection)
    if (spare === undefined) return new AbortController()
    this.#spare.delete(connection)
    return spare
  }

  giveBack(request: IncomingMessage, controller: AbortController): void {
    const { signal } = controller
    if (signal.aborted || getEventListeners(signal, 'abort').length > 0) return
    this.#spare.set(connectionOf(request), controller)
  }
}

/** An HTTP/2 request's `socket` is a stand-in of its own; its session is the connection. */
function connectionOf(request: IncomingMessage): object {
  if (!('stream' in request)) return request.socket
  const { stream } = request
  const session =
    typeof stream === 'object' && stream && 'session' in stream ? stream.session : null
  return typeof session === 'object' && session ? session : request
}
