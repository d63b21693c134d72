import { expect, test } from 'vitest'
import { kubeMicroTime } from './clock.ts'

test.each([
  [Date.UTC(2026, 0, 1), '2026-01-01T00:00:00.000000Z'],
  [Date.UTC(2026, 0, 1) + 999.999, '2026-01-01T00:00:00.999999Z'],
  [Date.UTC(2026, 0, 1) + 1_000, '2026-01-01T00:00:01.000000Z'],
  [Date.UTC(2026, 0, 1) + 1.5, '2026-01-01T00:00:00.001500Z'],
])('%f is the MicroTime %s', (ms, text) => {
  expect(kubeMicroTime(ms)).toBe(text)
})
