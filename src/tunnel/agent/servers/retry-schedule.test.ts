import { expect, test } from 'vitest'
import { RetrySchedule } from './retry-schedule.ts'

function scheduleAt(time: { now: number }, random = 0): RetrySchedule {
  const clock = { now: () => time.now, monotonic: () => time.now }
  return new RetrySchedule({ initialMs: 100, maxMs: 200, clock, random: () => random })
}

test('[TUN-W15] delays grow by half up to the maximum, and begin anew after a success', () => {
  const time = { now: 0 }
  const schedule = scheduleAt(time)
  const delays = Array.from({ length: 4 }, () => {
    schedule.failed('a')
    const delayMs = schedule.nextDueMs
    time.now += delayMs - 1
    expect(schedule.isDue('a')).toBe(false)
    time.now += 1
    expect(schedule.isDue('a')).toBe(true)
    return delayMs
  })
  expect(delays).toEqual([100, 150, 200, 200])
  schedule.succeeded('a')
  schedule.failed('a')
  expect(schedule.nextDueMs).toBe(100)
})

test('[TUN-W15] delays are up to a tenth longer, so that agents do not connect all at once', () => {
  const schedule = scheduleAt({ now: 0 }, 1)
  schedule.failed('a')
  expect(schedule.nextDueMs).toBeCloseTo(110)
})

test('[TUN-W29] each address has its own delay, and the next one that is due is known', () => {
  const time = { now: 0 }
  const schedule = scheduleAt(time)
  expect([schedule.isDue('a'), schedule.nextDueMs]).toEqual([true, Number.POSITIVE_INFINITY])
  schedule.failed('a')
  time.now = 40
  schedule.failed('b')
  expect([schedule.isDue('c'), schedule.nextDueMs]).toEqual([true, 60])
  time.now = 120
  expect([schedule.isDue('a'), schedule.isDue('b'), schedule.nextDueMs]).toEqual([true, false, 20])
  schedule.keep(new Set(['a']))
  expect([schedule.isDue('b'), schedule.nextDueMs]).toEqual([true, Number.POSITIVE_INFINITY])
})
