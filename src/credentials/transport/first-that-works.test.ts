import { describe, expect, test } from 'vitest'
import { firstThatWorks } from './addresses.ts'

const later = <T>() => {
  let settle: { resolve: (value: T) => void; reject: (error: Error) => void } | undefined
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject }
  })
  if (!settle) throw new Error('a promise calls back at once')
  return { promise, ...settle }
}
const never = { headStartMs: 60_000, undo: () => {} }

describe('attempts that take turns [DISC-R45]', () => {
  test('end with the first that works, and no other is begun', async () => {
    const begun: number[] = []
    const attempts = [1, 2, 3].map((each) => async () => {
      begun.push(each)
      if (each === 1) throw new Error('gone')
      return each
    })
    expect(await firstThatWorks(attempts, never)).toEqual({ index: 1, value: 2 })
    expect(begun).toEqual([1, 2])
  })

  test('tell why each failed, in their order', async () => {
    const attempts = ['a', 'b'].map((each) => async () => Promise.reject(new Error(each)))
    const outcome = await firstThatWorks(attempts, never)
    expect(outcome).toEqual({ failures: [new Error('a'), new Error('b')] })
    expect(await firstThatWorks([], never)).toEqual({ failures: [] })
  })

  test('do not wait for one that is silent, and take back what it brings too late', async () => {
    const silent = later<string>()
    const undone: string[] = []
    const outcome = await firstThatWorks([() => silent.promise, async () => 'second'], {
      headStartMs: 1,
      undo: (late) => undone.push(late),
    })
    expect(outcome).toEqual({ index: 1, value: 'second' })
    silent.resolve('late')
    await silent.promise
    expect(undone).toEqual(['late'])
  })

  test('go on waiting for a slow one when the others have failed', async () => {
    const slow = later<string>()
    const outcome = firstThatWorks([() => slow.promise, () => Promise.reject(new Error('gone'))], {
      headStartMs: 1,
      undo: () => {},
    })
    slow.resolve('first')
    expect(await outcome).toEqual({ index: 0, value: 'first' })
  })
})
