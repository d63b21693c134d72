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
