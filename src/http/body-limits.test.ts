import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type BodyProblem, watchBody } from './body-limits.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A body that arrives as a test says, with the bytes of its connection. */
class LabBody extends Readable {
  readonly socket = { bytesRead: 1_000 }
  override _read(): void {}

  arrive(data: number, overhead = 5): void {
    this.socket.bytesRead += data + overhead
    this.push(Buffer.alloc(data))
  }
}

function watched(bodyIdleMs: number, { isRead = true } = {}) {
  const body = new LabBody()
  const problems: BodyProblem[] = []
  watchBody(body as unknown as IncomingMessage, { bodyIdleMs }, (problem) => problems.push(problem))
  if (isRead) body.resume()
  return { body, problems }
}

describe('a body that comes too slowly [SEC-R2004]', () => {
  test('is reported once if nothing comes', async () => {
    const { problems } = watched(60_000)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(problems).toEqual([])
    await vi.advanceTimersByTimeAsync(300_000)
    expect(problems).toEqual(['stalled'])
  })

  test('is reported if it trickles', async () => {
    const { body, problems } = watched(60_000)
    for (let second = 0; second < 90; second++) {
      body.arrive(1)
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(problems).toEqual(['stalled'])
  })

  test('is not reported while it keeps up, nor during a pause that is shorter', async () => {
    const { body, problems } = watched(60_000)
    for (let round = 0; round < 10; round++) {
      body.arrive(8_192)
      await vi.advanceTimersByTimeAsync(44_000)
    }
    expect(problems).toEqual([])
  })

  test('is not reported while its reader keeps it waiting', async () => {
    const { body, problems } = watched(60_000, { isRead: false })
    body.arrive(100)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(problems).toEqual([])
    body.resume()
    await vi.advanceTimersByTimeAsync(600_000)
    expect(problems).toEqual(['stalled'])
  })

  test('is not reported once it has ended, and never without a limit', async () => {
    const ended = watched(60_000)
    ended.body.arrive(3)
    ended.body.push(null)
    const unlimited = watched(0)
    await vi.advanceTimersByTimeAsync(600_000)
    expect([ended.problems, unlimited.problems]).toEqual([[], []])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('what is sent around a body [SEC-R2002]', () => {
  test('is reported once when it outgrows all data', () => {
    const { body, problems } = watched(0)
    for (let chunk = 0; chunk < 4_000; chunk++) body.arrive(1, 2_004)
    expect(problems).toEqual(['overhead'])
  })

  test('is reported for large chunks too', () => {
    const { body, problems } = watched(0)
    for (let chunk = 0; chunk < 200; chunk++) body.arrive(16_384, 2_004)
    expect(problems).toEqual(['overhead'])
  })

  test.each([
    ['tiny chunks', 100_000, 1, 5],
    ['chunks of which each comes by itself', 10_000, 10, 30],
    ['a large body', 1_000, 65_536, 10],
  ])('is not reported for %s', (_what, count, data, overhead) => {
    const { body, problems } = watched(0)
    for (let chunk = 0; chunk < count; chunk++) body.arrive(data, overhead)
    expect(problems).toEqual([])
  })
})

describe('a body that arrives in small chunks [SEC-R607]', () => {
  const sizes = [1, 2, 7, 100, 1_000, 4_095]
  test.each(sizes)('of %i bytes waits for its reader in few pieces', async (size) => {
    const { body } = watched(0, { isRead: false })
    const sent = Buffer.alloc(200_000, 'abcdefghijk')
    for (let at = 0; at < sent.length; at += size) {
      body.socket.bytesRead += size + 5
      body.push(sent.subarray(at, at + size))
    }
    body.push(null)
    const pieces: Buffer[] = []
    body.on('data', (piece: Buffer) => pieces.push(piece))
    await once(body, 'end')
    expect(Buffer.concat(pieces).equals(sent)).toBe(true)
    expect(pieces.length).toBeLessThan(40)
  })

  test('is held back when its reader is behind, and reaches a reader that waits without the next chunk', async () => {
    const { body } = watched(0, { isRead: false })
    const isMore = Array.from({ length: 20 }, () => body.push(Buffer.alloc(1_000)))
    const limit = Math.ceil(body.readableHighWaterMark / 1_000)
    expect(isMore.indexOf(false)).toBe(limit - 1)
    const { body: read } = watched(0)
    const bytes: number[] = []
    read.on('data', (piece: Buffer) => bytes.push(piece.length))
    read.push(Buffer.alloc(3))
    read.push(Buffer.alloc(4))
    await vi.advanceTimersByTimeAsync(1)
    expect(bytes).toEqual([7])
  })
})
