import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SendQueue } from './flow-control.ts'

describe('a queue of chunks', () => {
  test('gives its bytes back in order, however they are cut', () => {
    const sizes = (min: number) =>
      fc.array(fc.integer({ min, max: 50 }), { minLength: 1, maxLength: 100 })
    fc.assert(
      fc.property(sizes(1), sizes(0), (pushes, takes) => {
        const queue = new SendQueue()
        let next = 0
        const taken: number[] = []
        const take = (bytes: number): void =>
          queue.take(Math.min(bytes, queue.bytes), (part) => taken.push(...part))
        for (const [turn, size] of pushes.entries()) {
          queue.push(Buffer.from(Array.from({ length: size }, () => next++ % 256)))
          take(takes[turn % takes.length] ?? 1)
        }
        take(queue.bytes)
        expect(taken).toEqual(Array.from({ length: next }, (_, index) => index % 256))
        expect(queue.bytes).toBe(0)
      }),
    )
  })

  test.each([
    ['single bytes', [1]],
    ['small packets', [20]],
    ['small and long chunks in turns', [1, 4 * 1024]],
    ['chunks that are just too short to be kept', [4 * 1024 - 1]],
  ])('[SEC-R750] keeps %s in memory of about their size', (_name, sizes) => {
    const queue = new SendQueue()
    for (let index = 0; queue.bytes < 1024 * 1024; index++)
      queue.push(Buffer.alloc(sizes[index % sizes.length] ?? 1))
    const parts: Buffer[] = []
    const { bytes } = queue
    queue.take(bytes, (part) => parts.push(part))
    // An object costs about 200 bytes, and each has its memory to itself.
    const memory = new Set(parts.map((part) => part.buffer))
    const cost = parts.length * 200 + [...memory].reduce((sum, each) => sum + each.byteLength, 0)
    expect(cost).toBeLessThan(2 * bytes)
  })

  test('[TUN-W27] that is never empty does not keep what has left it', async () => {
    const queue = new SendQueue()
    const kept: WeakRef<Buffer>[] = []
    queue.push(Buffer.alloc(10))
    for (let index = 0; index < 200; index++) {
      const chunk = Buffer.alloc(10)
      kept.push(new WeakRef(chunk))
      queue.push(chunk)
      queue.take(10, () => {})
    }
    await new Promise((resolve) => setImmediate(resolve))
    const { setFlagsFromString } = await import('node:v8')
    const { runInNewContext } = await import('node:vm')
    setFlagsFromString('--expose-gc')
    runInNewContext('gc')()
    expect(kept.filter((reference) => reference.deref()).length).toBeLessThan(40)
  })
})
