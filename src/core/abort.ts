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

/**
 * Does something with a signal that aborts with the outer one, or once the time is up; lets go of both afterwards.
 * Not by `AbortSignal.any` and `AbortSignal.timeout`: in Node.js 20 that timer is collected as garbage and never fires.
 */
export async function withinTime<T>(
  ms: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const follow = (): void => controller.abort(outer.reason)
  const timer = setTimeout(
    () => controller.abort(new DOMException('the time is up', 'TimeoutError')),
    ms,
  )
  const forget = onAbort(outer, follow)
  if (outer.aborted) follow()
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    forget()
  }
}

/** Resolves after `ms`, or as soon as `signal` aborts; the signal is let go of either way. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
