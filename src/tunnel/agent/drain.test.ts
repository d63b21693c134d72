import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Activity } from './activity.ts'
import { settled } from './tunnel-agent.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const hourMs = 3_600_000

/** Begins to wait, and tells whether the wait is over. */
function watch(activity: Activity, deadline = new AbortController().signal): () => boolean {
  let isOver = false
  void settled(activity, deadline).then(() => {
    isOver = true
  })
  return () => isOver
}

test('[TUN-W13, TUN-P10] a drain waits for as long as anything is open', async () => {
  const activity = new Activity()
  activity.begin()
  const isOver = watch(activity)
  await vi.advanceTimersByTimeAsync(hourMs)
  expect(isOver()).toBe(false)
  activity.end()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(isOver()).toBe(true)
})

test('what comes in a last moment is waited for as well', async () => {
  const activity = new Activity()
  const isOver = watch(activity)
  await vi.advanceTimersByTimeAsync(100)
  activity.begin()
  await vi.advanceTimersByTimeAsync(hourMs)
  expect(isOver()).toBe(false)
  activity.end()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(isOver()).toBe(true)
})

test('the deadline ends the wait at once', async () => {
  const activity = new Activity()
  activity.begin()
  const deadline = new AbortController()
  const isOver = watch(activity, deadline.signal)
  await vi.advanceTimersByTimeAsync(hourMs)
  deadline.abort()
  await vi.advanceTimersByTimeAsync(0)
  expect(isOver()).toBe(true)
})
