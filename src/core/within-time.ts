import { onAbort } from './on-abort.ts'

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
