import { setTimeout as delay } from 'node:timers/promises'

/** Asks another process again and again until the answer is neither `undefined` nor `false`; fails with the last error. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  let last: unknown
  for (;;) {
    try {
      const answer = await ask()
      if (answer !== undefined && answer !== false) return answer
      last = undefined
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause: last })
    }
    await delay(25)
  }
}
