import { expect, test } from 'vitest'
import { RecentTokens } from './recent-tokens.ts'
import { LabClock } from './token-lab.suite.ts'

const token = `header.payload.${'s'.repeat(86)}`

function lab(lifeMs = 60_000) {
  const clock = new LabClock()
  const recent = new RecentTokens<string>(clock)
  const until = clock.now() + lifeMs
  recent.keep(token, 'ann', { since: recent.generation, until })
  return { clock, recent, until }
}

test('a token is known for two seconds', () => {
  const { clock, recent } = lab()
  clock.turn(1_999)
  expect(recent.get(token)).toBe('ann')
  clock.turn(1)
  expect(recent.get(token)).toBeUndefined()
})

test('and no longer than it lives', () => {
  const { clock, recent } = lab(500)
  clock.turn(500)
  expect(recent.get(token)).toBeUndefined()
})

test('another token with the same end is another token', () => {
  const { recent } = lab()
  expect(recent.get(`other${token}`)).toBeUndefined()
})

test('a clock that is put back makes none last', () => {
  const { clock, recent } = lab()
  clock.turn(-1)
  expect(recent.get(token)).toBeUndefined()
})

test('what was checked before everything was forgotten is not kept after it', () => {
  const { recent, until } = lab()
  const since = recent.generation
  recent.clear()
  expect(recent.get(token)).toBeUndefined()
  recent.keep(token, 'ann', { since, until })
  expect(recent.get(token)).toBeUndefined()
})

test('a flood of tokens does not fill the memory', () => {
  const { recent, until } = lab()
  for (let index = 0; index < 256; index++)
    recent.keep(`${token}${String(index).padStart(24, '0')}`, 'x', {
      since: recent.generation,
      until,
    })
  expect(recent.get(token)).toBeUndefined()
})
