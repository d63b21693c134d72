import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WorkQueue } from './work-queue.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const open = () => new WorkQueue({ initialMs: 10, maxMs: 100 })

/** What the queue hands out now, without waiting. */
async function takeAll(queue: WorkQueue): Promise<string[]> {
  const taken: string[] = []
  for (;;) {
    const next = await Promise.race([queue.take(), Promise.resolve()])
    if (next === undefined) return taken
    taken.push(next)
  }
}

test('a key that is added twice is handed out once', async () => {
  const queue = open()
  queue.add('a')
  queue.add('b')
  queue.add('a')
  expect(await takeAll(queue)).toEqual(['a', 'b'])
})

test('a key is not handed out while it is worked on, but afterwards', async () => {
  const queue = open()
  queue.add('a')
  expect(await queue.take()).toBe('a')
  queue.add('a')
  const next = queue.take()
  queue.add('b')
  expect(await next).toBe('b')
  queue.done('a')
  expect(await queue.take()).toBe('a')
})

test('a taker waits for the next key', async () => {
  const queue = open()
  const next = queue.take()
  queue.add('a')
  expect(await next).toBe('a')
})

test('the delay before a retry doubles up to the longest, and a success makes it short again', async () => {
  const queue = open()
  const waits: number[] = []
  const retry = async () => {
    const start = Date.now()
    queue.retry('a')
    const next = queue.take()
    await vi.runAllTimersAsync()
    await next
    queue.done('a')
    waits.push(Date.now() - start)
  }
  for (let attempt = 0; attempt < 6; attempt += 1) await retry()
  queue.succeeded('a')
  await retry()
  expect(waits).toEqual([10, 20, 40, 80, 100, 100, 10])
})

test('a key that is asked for does not wait for its delay', async () => {
  const queue = open()
  queue.addAfter('a', 1_000)
  queue.add('a')
  expect(await queue.take()).toBe('a')
  queue.done('a')
  expect(vi.getTimerCount()).toBe(0)
})

test('a closed queue sends its takers away and keeps no timer', async () => {
  const queue = open()
  queue.addAfter('a', 1_000)
  const waiting = queue.take()
  queue.close()
  queue.add('b')
  expect(await waiting).toBeUndefined()
  expect(await queue.take()).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})
