import type { ServerResponse } from 'node:http'

const onWait = Symbol('onClientWait')

interface Waiting extends ServerResponse {
  [onWait]?: () => void
}

/** Calls `listener` whenever a response waits until its client has read what is written. */
export function onClientWait(response: ServerResponse, listener: () => void): void {
  const waiting: Waiting = response
  waiting[onWait] = listener
}

/** Reports that written bytes wait until the client of a response reads them. */
export function reportUnread(response: ServerResponse): void {
  const waiting: Waiting = response
  waiting[onWait]?.()
}

/** Resolves when the client has read what was written, or has gone. */
export function waitForClient(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve()
  reportUnread(response)
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
