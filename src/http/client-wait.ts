import type { ServerResponse } from 'node:http'

const onWait = Symbol('onClientWait')

interface Waiting extends ServerResponse {
  [onWait]?: () => void
}

/** Calls `listener` whenever the making of a response waits until its client has read what is written. */
export function onClientWait(response: ServerResponse, listener: () => void): void {
  const waiting: Waiting = response
  waiting[onWait] = listener
}

/** Resolves when the client has read what was written, or has gone. */
export function waitForClient(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve()
  const waiting: Waiting = response
  waiting[onWait]?.()
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
