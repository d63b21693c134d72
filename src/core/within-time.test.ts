import { getEventListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { withinTime } from './abort.ts'
import { aborted } from './lifecycle.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

test('the signal aborts when the time is up, however often garbage is collected', async () => {
  const collecting = setInterval(collectGarbage, 5)
  const outer = new AbortController().signal
  const why = await withinTime(50, outer, async (signal) => {
    await aborted(signal)
    return String(signal.reason)
  })
  clearInterval(collecting)
  expect(why).toContain('the time is up')
})

test('the signal aborts with the outer one, for its reason', async () => {
  const outer = new AbortController()
  const ended = withinTime(60_000, outer.signal, async (signal) => {
    await aborted(signal)
    throw signal.reason
  })
  outer.abort(new Error('enough'))
  await expect(ended).rejects.toThrow('enough')
  const late = withinTime(60_000, outer.signal, async (signal) => signal.aborted)
  await expect(late).resolves.toBe(true)
})

test('nothing is left behind, whatever comes of it', async () => {
  const { signal } = new AbortController()
  await withinTime(60_000, signal, async () => 1)
  await withinTime(60_000, signal, () => Promise.reject(new Error('x'))).catch(() => {})
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
