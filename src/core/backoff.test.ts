import { expect, test } from 'vitest'
import { Backoff } from './backoff.ts'

const options = { initialMs: 100, maxMs: 500, random: () => 0 }

test('delays double up to the longest, and begin anew after a reset', () => {
  const backoff = new Backoff(options)
  const delays = () => [backoff.next(), backoff.next(), backoff.next(), backoff.next()]
  expect(delays()).toEqual([100, 200, 400, 500])
  backoff.reset()
  expect(delays()).toEqual([100, 200, 400, 500])
})

test('jitter shortens delays by at most its share', () => {
  expect(new Backoff({ ...options, random: () => 1 }).next()).toBe(50)
  expect(new Backoff({ ...options, random: () => 1, jitter: 0.1 }).next()).toBe(90)
  expect(new Backoff({ ...options, random: () => 1, jitter: 0 }).next()).toBe(100)
})

test('a delay is at least what the server asks for, and its end is known', () => {
  const clock = { now: () => 0, monotonic: () => 1_000 }
  const backoff = new Backoff({ ...options, factor: 3, clock })
  expect(backoff.next(2_000)).toBe(2_000)
  expect(backoff.retryAt).toBe(3_000)
  expect([backoff.next(), backoff.retryAt]).toEqual([300, 1_300])
})

test('a wait ends with its signal', async () => {
  const waiting = new Backoff({ initialMs: 60_000, maxMs: 60_000 }).wait(AbortSignal.abort())
  await expect(waiting).resolves.toBeUndefined()
})

test('delays begin anew after a quiet time', () => {
  const time = { now: 0 }
  const clock = { now: () => time.now, monotonic: () => time.now }
  const backoff = new Backoff({ initialMs: 100, maxMs: 1_000, jitter: 0, resetAfterMs: 500, clock })
  expect(backoff.isDue).toBe(true)
  expect([backoff.next(), backoff.next()]).toEqual([100, 200])
  time.now = 199
  expect(backoff.isDue).toBe(false)
  time.now = 500
  expect([backoff.isDue, backoff.next()]).toEqual([true, 400])
  time.now = 1_001
  expect(backoff.next()).toBe(100)
})
