import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { joinForWrite } from './flow-control.ts'

const wholeOf = (parts: readonly Buffer[]): Buffer =>
  Buffer.concat(joinForWrite(parts).map(({ bytes }) => bytes))

describe('parts joined for one write', () => {
  test.each([
    ['nothing', []],
    ['one part', [3]],
    ['small parts', [9, 20, 100]],
    ['empty parts between', [0, 9, 0, 65_536, 0]],
    ['a frame with its head', [9, 29, 65_536]],
    ['as much as fits', [384 * 1024 - 9, 9]],
    ['one byte more than fits', [9, 384 * 1024 - 9, 1]],
    ['many times more', [9, 1_000_000, 9, 1_000_000]],
  ])('are the same bytes: %s', (_, lengths) => {
    const parts = lengths.map((length) => randomBytes(length))
    expect(wholeOf(parts).equals(Buffer.concat(parts))).toBe(true)
  })

  test('a single part is not copied', () => {
    const part = Buffer.alloc(100_000)
    expect(joinForWrite([part])[0]?.bytes).toBe(part)
  })

  test('memory is used again after it was given back, and not before', () => {
    const parts = [Buffer.alloc(9), Buffer.alloc(50_000)]
    const [first] = joinForWrite(parts)
    const [second] = joinForWrite(parts)
    expect(second?.bytes.buffer).not.toBe(first?.bytes.buffer)
    first?.release()
    const [third] = joinForWrite(parts)
    expect(third?.bytes.buffer).toBe(first?.bytes.buffer)
  })
})
