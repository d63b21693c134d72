import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { expect, test } from 'vitest'
import { combineCrc32 } from './list-cache.ts'

test.each([
  [0, 0],
  [1, 0],
  [0, 1],
  [5, 7],
  [1000, 65_537],
  [100_000, 3],
])('the checksum of %i and %i bytes put together is that of the whole', (a, b) => {
  const whole = randomBytes(a + b)
  const combined = combineCrc32(crc32(whole.subarray(0, a)), crc32(whole.subarray(a)), b)
  expect(combined).toBe(crc32(whole))
})
