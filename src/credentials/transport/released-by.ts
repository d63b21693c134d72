/** What others wait for too, for one caller: the caller's abort rejects it at once and leaves the rest alone. */
export function releasedBy<T>(signal: AbortSignal, shared: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    shared.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
