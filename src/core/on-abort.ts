import { setMaxListeners } from 'node:events'

/**
 * Calls back when a signal aborts, until the returned function is called. One signal may guard any number of requests,
 * which Node.js would call a leak.
 */
export function onAbort(signal: AbortSignal, abort: () => void): () => void {
  setMaxListeners(0, signal)
  signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

/** What `shared` settles with, unless `signal` aborts first: then its reason, while `shared` goes on for others. */
export function unlessAborted<T>(shared: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return shared
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    const forget = onAbort(signal, abort)
    shared
      .then(resolve, reject)
      .finally(forget)
      .catch(() => {}) // told to the caller above
  })
}
