import { expect, test } from 'vitest'
import { humanDuration, timeSince } from './define-kind.ts'

const s = 1000
const m = 60 * s
const h = 60 * m
const d = 24 * h
const y = 365 * d

test.each([
  [-2 * s, '<invalid>'],
  [-1.9 * s, '0s'],
  [0, '0s'],
  [119.9 * s, '119s'],
  [2 * m, '2m'],
  [5 * m + 3 * s, '5m3s'],
  [10 * m - 1, '9m59s'],
  [10 * m, '10m'],
  [3 * h - 1, '179m'],
  [3 * h, '3h'],
  [3 * h + 5 * m, '3h5m'],
  [8 * h, '8h'],
  [2 * d - 1, '47h'],
  [2 * d, '2d'],
  [3 * d + 4 * h, '3d4h'],
  [8 * d - 1, '7d23h'],
  [8 * d, '8d'],
  [2 * y - 1, '729d'],
  [2 * y, '2y'],
  [3 * y + 5 * d, '3y5d'],
  [8 * y, '8y'],
  [20 * y + 3 * d, '20y'],
])('%d ms are shown as %s [GND-R59]', (ms, shown) => {
  expect(humanDuration(ms)).toBe(shown)
})

test.each([undefined, null, '', 'yesterday'])('an age since %j is unknown', (time) => {
  expect(timeSince(time, 0)).toBe('<unknown>')
})
