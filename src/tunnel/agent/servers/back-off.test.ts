import { expect, test } from 'vitest'
import { BackOff } from './back-off.ts'

function backOffAt(time: { now: number }, random = 0): BackOff {
  const clock = { now: () => time.now, monotonic: () => time.now }
  return new BackOff({ firstMs: 100, capMs: 200, clock, random: () => random })
}

test('[TUN-W15] pauses grow by half up to the cap, and begin anew after a success', () => {
  const time = { now: 0 }
  const backOff = backOffAt(time)
  const pauses = Array.from({ length: 4 }, () => {
    backOff.failed('a')
    const pauseMs = backOff.soonestMs
    time.now += pauseMs - 1
    expect(backOff.isDue('a')).toBe(false)
    time.now += 1
    expect(backOff.isDue('a')).toBe(true)
    return pauseMs
  })
  expect(pauses).toEqual([100, 150, 200, 200])
  backOff.succeeded('a')
  backOff.failed('a')
  expect(backOff.soonestMs).toBe(100)
})

test('[TUN-W15] pauses are up to a tenth longer, so that agents do not come all at once', () => {
  const backOff = backOffAt({ now: 0 }, 1)
  backOff.failed('a')
  expect(backOff.soonestMs).toBeCloseTo(110)
})

test('[TUN-W29] each has its own, and the next one that is over is known', () => {
  const time = { now: 0 }
  const backOff = backOffAt(time)
  expect([backOff.isDue('a'), backOff.soonestMs]).toEqual([true, Number.POSITIVE_INFINITY])
  backOff.failed('a')
  time.now = 40
  backOff.failed('b')
  expect([backOff.isDue('c'), backOff.soonestMs]).toEqual([true, 60])
  time.now = 120
  expect([backOff.isDue('a'), backOff.isDue('b'), backOff.soonestMs]).toEqual([true, false, 20])
  backOff.keep(new Set(['a']))
  expect([backOff.isDue('b'), backOff.soonestMs]).toEqual([true, Number.POSITIVE_INFINITY])
})
