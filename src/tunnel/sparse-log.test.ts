import { expect, test } from 'vitest'
import { type Clock, type Logger, silentLogger } from '../core/index.ts'
import { SparseLog } from './sampled-log.ts'

test('[TUN-F18] what one peer causes again and again is said every ten seconds, with how often it was not', () => {
  let now = 0
  const said: object[] = []
  const clock: Clock = { now: () => now, monotonic: () => now }
  const log: Logger = { ...silentLogger, warn: (fields) => void said.push(fields) }
  const sparse = new SparseLog(log, clock)
  for (now = 0; now < 20_000; now += 1_000) sparse.warn('a', { from: 'a' }, 'refused')
  sparse.warn('b', { from: 'b' }, 'refused')
  expect(said).toEqual([{ from: 'a' }, { from: 'a', leftOut: 9 }, { from: 'b' }])
})
