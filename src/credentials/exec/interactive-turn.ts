let last: Promise<unknown> = Promise.resolve()

/**
 * Holds one conversation with the user at a time in the whole process, so that two prompts never mix.
 * Whoever is no longer interested need not wait: `converse` is called at once, to say so.
 */
export function inTurn<T>(converse: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const before = last
  const mine = settledOrAborted(before, signal).then(converse)
  last = Promise.allSettled([before, mine])
  return mine
}

function settledOrAborted(before: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      signal?.removeEventListener('abort', go)
      resolve()
    }
    signal?.addEventListener('abort', go)
    if (signal?.aborted) go()
    void before.then(go)
  })
}
