import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SendQueue } from './flow-control.ts'

describe('a queue of chunks', () => {
  test('gives its bytes back in order, however they are cut', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 100 })
    fc.assert(
      fc.property(sizes, sizes, (pushes, takes) => {
        const queue = new SendQueue()
        let next = 0
        const taken: number[] = []
        for (const [turn, size] of pushes.entries()) {
          queue.push(Buffer.from(Array.from({ length: size }, () => next++ % 256)))
          const wanted = Math.min(takes[turn % takes.length] ?? 1, queue.bytes)
          queue.take(wanted, (part) => taken.push(...part))
        }
        queue.take(queue.bytes, (part) => taken.push(...part))
        expect(taken).toEqual(Array.from({ length: next }, (_, index) => index % 256))
        expect(queue.bytes).toBe(0)
      }),
    )
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
