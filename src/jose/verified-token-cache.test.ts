import { describe, expect, test } from 'vitest'
import { VerifiedTokenCache } from './verified-token-cache.ts'

function lab(options: { maxTokens?: number; recentMs?: number } = {}) {
  let nowMs = 1000
  let runs = 0
  const cache = new VerifiedTokenCache<string>({
    clock: { now: () => nowMs } as never,
    maxAgeMs: 10_000,
    ...options,
  })
  const ask = (
    token: string,
    audiences: readonly string[] = [],
    until = 1e12,
  ): string | Promise<string> =>
    cache.get(token, audiences, () => {
      runs += 1
      return token.startsWith('bad')
        ? Promise.reject(new Error('bad'))
        : Promise.resolve({ value: token, until })
    })
  return {
    cache,
    ask,
    runs: () => runs,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

test('a good token is verified once, until its verdict is too old', async () => {
  const { ask, runs, pass } = lab()
  await ask('a')
  pass(9_999)
  await ask('a')
  expect(runs()).toBe(1)
  pass(1)
  await ask('a')
  expect(runs()).toBe(2)
})

test('a verdict ends with the token', async () => {
  const { ask, runs, pass } = lab()
  await ask('a', [], 2_000)
  pass(1_000)
  await ask('a', [], 2_000)
  expect(runs()).toBe(2)
})

test('a clock that is put back makes no verdict last', async () => {
  const { ask, runs, pass } = lab()
  await ask('a')
  pass(-1)
  await ask('a')
  expect(runs()).toBe(2)
})

test('a verdict for one audience says nothing about another', async () => {
  const { ask, runs } = lab()
  await ask('a', ['x'])
  await ask('a', ['x', 'y'])
  await ask('a', ['xy'])
  expect(runs()).toBe(3)
})

test('those who ask at the same time share one run', async () => {
  const { ask, runs } = lab()
  await Promise.all(Array.from({ length: 100 }, async () => ask('a')))
  expect(runs()).toBe(1)
})

test('a flood of bad tokens pushes out no good one and leaves nothing behind', async () => {
  const { ask, runs, cache } = lab({ maxTokens: 4 })
  await ask('a')
  for (let index = 0; index < 1_000; index++)
    await expect(ask(`bad${index}`)).rejects.toThrow('bad')
  await ask('a')
  expect([runs(), cache.size]).toEqual([1_001, 1])
})

test('good tokens beyond the capacity push out those that nobody used lately', async () => {
  const { ask, cache, runs } = lab({ maxTokens: 4 })
  for (const token of ['a', 'b', 'c', 'a', 'd', 'a', 'e', 'a']) await ask(token)
  expect(cache.size).toBeLessThanOrEqual(4)
  expect(runs()).toBe(5)
})

test('what was under way when everything was forgotten is not kept', async () => {
  const { cache, ask, runs } = lab()
  let finish = (_verdict: { value: string; until: number }): void => {}
  const first = cache.get('a', [], () => new Promise((resolve) => (finish = resolve)))
  cache.clear()
  finish({ value: 'old', until: 1e12 })
  expect(await first).toBe('old')
  expect(await ask('a')).toBe('a')
  expect(runs()).toBe(1)
})

describe('recent tokens', () => {
  const signed = `header.payload.${'s'.repeat(86)}`
  const recent = () => lab({ recentMs: 2_000 })

  test('are found at once', async () => {
    const { ask } = recent()
    expect(ask(signed)).toBeInstanceOf(Promise)
    await ask(signed)
    expect(ask(signed)).toBe(signed)
  })

  test('are verified again when their entry has expired', async () => {
    const { ask, runs, pass } = recent()
    await ask(signed)
    pass(1_999)
    expect(ask(signed)).toBe(signed)
    pass(8_001)
    await ask(signed)
    expect(runs()).toBe(2)
  })

  test('end with the token', async () => {
    const { ask, runs, pass } = recent()
    await ask(signed, [], 1_500)
    pass(500)
    await ask(signed)
    expect(runs()).toBe(2)
  })

  test('are other tokens if only the end is the same', async () => {
    const { ask, runs } = recent()
    await ask(signed)
    expect(await ask(`other${signed}`)).toBe(`other${signed}`)
    expect(runs()).toBe(2)
  })

  test('are verified for each audience', async () => {
    const { ask, runs } = recent()
    await ask(signed, ['x'])
    await ask(signed, ['y'])
    await ask(signed, ['x', 'y'])
    expect(runs()).toBe(3)
  })

  test('are not used when the clock is set back', async () => {
    const { ask, runs, pass } = recent()
    await ask(signed)
    pass(-1)
    await ask(signed)
    expect(runs()).toBe(2)
  })

  test('are removed with everything else, also those that are being verified', async () => {
    const { cache, ask, runs } = recent()
    await ask(signed)
    cache.clear()
    const running = ask(signed)
    cache.clear()
    await running
    await ask(signed)
    expect(runs()).toBe(3)
  })
})
