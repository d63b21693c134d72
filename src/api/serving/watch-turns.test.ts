import { describe, expect, test } from 'vitest'
import { PacedLines, WatchTurns } from './watch-turns.ts'

/** Turns that the test begins, and watches that record what they were sent in which turn. */
function lab(limits: { maxBytes: number; maxWrites: number }) {
  const begins: (() => void)[] = []
  const turns = new WatchTurns(limits, (begin) => begins.push(begin))
  const sent: string[][] = [[]]
  const open = (name: string) =>
    new PacedLines(turns, (line) => sent.at(-1)?.push(`${name}${line.toString()}`))
  const runTurns = (): string[][] => {
    for (let begin = begins.shift(); begin; begin = begins.shift()) {
      sent.push([])
      begin()
    }
    return sent.filter(({ length }) => length > 0)
  }
  return { open, runTurns }
}

const line = (text: string): Buffer => Buffer.from(text)

describe('events of one commit to many watches [SEC-R2456]', () => {
  test.each([
    ['writes', { maxBytes: 1_000, maxWrites: 2 }, [2, 2, 2, 2, 2]],
    ['bytes', { maxBytes: 9, maxWrites: 100 }, [3, 3, 3, 1]],
  ])('are divided among turns by %s', (_what, limits, expected) => {
    const { open, runTurns } = lab(limits)
    for (let index = 0; index < 10; index++) open(`w${index}`).write(line('abc'))
    expect(runTurns().map(({ length }) => length)).toEqual(expected)
  })

  test('that are few are written at once', () => {
    const { open, runTurns } = lab({ maxBytes: 1_000, maxWrites: 10 })
    for (let index = 0; index < 10; index++) open(`w${index}`).write(line('a'))
    expect(runTurns()).toHaveLength(1)
  })

  test('keep their order for each watch, and watches take turns', () => {
    const { open, runTurns } = lab({ maxBytes: 1_000, maxWrites: 2 })
    const watches = ['a', 'b'].map(open)
    for (const number of ['1', '2', '3']) for (const watch of watches) watch.write(line(number))
    expect(runTurns()).toEqual([
      ['a1', 'b1'],
      ['a2', 'b2'],
      ['a3', 'b3'],
    ])
  })

  test('overtake none that wait', () => {
    const { open, runTurns } = lab({ maxBytes: 1_000, maxWrites: 1 })
    const [first, second] = [open('a'), open('b')]
    first.write(line('1'))
    first.write(line('2'))
    second.write(line('1'))
    expect([first.waitingBytes, second.waitingBytes]).toEqual([1, 1])
    expect(runTurns().flat()).toEqual(['a1', 'a2', 'b1'])
    expect([first.waitingBytes, second.waitingBytes]).toEqual([0, 0])
  })

  test('are all sent when a watch ends in good order, and none when it is cut', () => {
    const { open, runTurns } = lab({ maxBytes: 1_000, maxWrites: 1 })
    const [ended, cut] = [open('a'), open('b')]
    for (const watch of [ended, cut]) for (const number of ['1', '2']) watch.write(line(number))
    ended.flush()
    cut.drop()
    expect(runTurns().flat()).toEqual(['a1', 'a2'])
    expect([ended.waitingBytes, cut.waitingBytes]).toEqual([0, 0])
  })
})
