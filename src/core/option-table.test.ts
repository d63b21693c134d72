import { cpuUsage } from 'node:process'
import { expect, test } from 'vitest'
import { parseDuration } from './options.ts'

test.each([
  ['0', 0],
  ['1s', 1_000],
  ['1m30s', 90_000],
  ['1.5h', 5_400_000],
  ['1.s', 1_000],
  ['.5s', 500],
  ['-2ms', -2],
  ['', undefined],
  ['5', undefined],
  ['1.5', undefined],
  ['1..5s', undefined],
  ['s', undefined],
  ['1s2', undefined],
])('%j is %s ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each([['1'.repeat(100_000)], ['1s'.repeat(50_000)], [`${'1.'.repeat(50_000)}s`]])(
  'a long text is read in no time',
  (text) => {
    const began = cpuUsage()
    parseDuration(text)
    expect(cpuUsage(began).user / 1_000).toBeLessThan(1_000)
  },
)
