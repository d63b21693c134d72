import { type Duplex, duplexPair } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import type { AnswerListener } from './wire-exchange.ts'
import { WirePool } from './wire-pool.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const endless = 'HTTP/1.1 200 OK\r\n\r\nok'
const request = (name: string): string => `GET /${name} HTTP/1.1\r\n\r\n`

/** One side of a connection that a test answers from. */
interface Opened {
  readonly ours: Duplex
  readonly theirs: Duplex
  /** What was asked on it. */
  readonly heard: string[]
}

/** A pool, and the backend that it thinks it has. */
function lab(max = 2) {
  const opened: Opened[] = []
  const openings: { go(): void; fail(error: Error): void; readonly signal: AbortSignal }[] = []
  let isSlow = false
  const clock = { ms: 0, now: () => 0, monotonic: () => clock.ms }
  const open = (signal: AbortSignal): Promise<Duplex> =>
    new Promise((resolve, reject) => {
      const [ours, theirs] = duplexPair()
      const one: Opened = { ours, theirs, heard: [] }
      theirs.on('data', (bytes: Buffer) => one.heard.push(String(bytes)))
      const go = (): void => {
        opened.push(one)
        resolve(ours)
      }
      signal.addEventListener('abort', () => reject(signal.reason))
      openings.push({ go, fail: reject, signal })
      if (!isSlow) go()
    })
  const pool = new WirePool(open, clock, max)
  const slow = (): void => {
    isSlow = true
  }
  const at = (index: number): Opened => {
    const found = opened[index]
    if (!found) throw new Error(`connection ${index} was not opened`)
    return found
  }
  return { pool, clock, opened, openings, slow, at }
}

/** Notes what it hears. */
class Ear implements AnswerListener {
  text = ''
  isOver = false
  failure: string | undefined
  isStale = false
  head(): void {}
  body(chunk: Buffer): void {
    this.text += String(chunk)
  }
  end(): void {
    this.isOver = true
  }
  settle(): void {}
  failed(error: Error, isStale: boolean): void {
    this.failure = error.message
    this.isStale = isStale
  }
}

type Lab = ReturnType<typeof lab>

/** Asks, and answers on the connection on which it was asked. */
async function ask({ pool, opened }: Lab, name: string, answer = ok): Promise<Ear> {
  const ear = new Ear()
  pool.ask(request(name), false, ear)
  const carrier = await vi.waitUntil(() =>
    opened.find(({ heard }) => heard.includes(request(name))),
  )
  carrier.theirs.write(answer)
  await vi.waitUntil(() => ear.text === 'ok' || ear.failure !== undefined)
  return ear
}

describe('a connection', () => {
  test('carries the next request when an answer is whole', async () => {
    const it = lab()
    await ask(it, 'a')
    await ask(it, 'b')
    expect(it.opened.map(({ heard }) => heard)).toEqual([[request('a'), request('b')]])
  })

  test.each([
    ['whose answer lasts', endless],
    ['that ends with its answer', ok.replace('OK\r\n', 'OK\r\nConnection: close\r\n')],
    ['that is kept for no time', ok.replace('OK\r\n', 'OK\r\nKeep-Alive: timeout=1\r\n')],
    ['that says more than was asked', `${ok}HTTP/1.1 200 OK\r\n`],
  ])('%s carries no other', async (_what, answer) => {
    const it = lab()
    await ask(it, 'a', answer)
    await ask(it, 'b')
    expect(it.opened).toHaveLength(2)
    expect(it.at(0).heard).toEqual([request('a')])
  })

  test('that speaks unasked is closed, and nobody hears it', async () => {
    const it = lab()
    await ask(it, 'a')
    it.at(0).theirs.write(ok.replace('ok', 'no'))
    await vi.waitUntil(() => it.at(0).ours.destroyed)
    expect((await ask(it, 'b')).text).toBe('ok')
    expect(it.opened).toHaveLength(2)
  })

  test('that was ended by the other side is closed', async () => {
    const it = lab()
    await ask(it, 'a')
    it.at(0).theirs.end()
    await vi.waitUntil(() => it.at(0).ours.destroyed)
    await ask(it, 'b')
    expect(it.opened).toHaveLength(2)
  })

  test.each([
    ['half a minute', ok, 30_000],
    [
      'a second less than its backend says',
      ok.replace('OK\r\n', 'OK\r\nKeep-Alive: timeout=5\r\n'),
      4_000,
    ],
  ])('is used until it is idle for %s', async (_what, answer, ms) => {
    const it = lab()
    await ask(it, 'a', answer)
    it.clock.ms += ms - 1
    await ask(it, 'b', answer)
    expect(it.opened).toHaveLength(1)
    it.clock.ms += ms
    await ask(it, 'c', answer)
    expect(it.opened).toHaveLength(2)
  })

  test('that nobody uses is closed after a while', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const it = lab()
      await ask(it, 'a')
      vi.advanceTimersByTime(5_000)
      expect(it.at(0).ours.destroyed).toBe(false)
      it.clock.ms += 30_000
      vi.advanceTimersByTime(5_000)
      expect(it.at(0).ours.destroyed).toBe(true)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('is not touched by whoever had it before', async () => {
    const it = lab()
    const ears = [new Ear(), new Ear()] as const
    const first = it.pool.ask(request('a'), false, ears[0])
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => ears[0].isOver)
    it.pool.ask(request('b'), false, ears[1])
    first.hold()
    first.cancel()
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => ears[1].isOver)
    expect([ears[1].failure, it.opened.length]).toEqual([undefined, 1])
  })

  test('is read no further while it is held', async () => {
    const it = lab()
    const ear = new Ear()
    const held = it.pool.ask(request('a'), false, ear)
    await vi.waitUntil(() => it.opened.length === 1)
    held.hold()
    it.at(0).theirs.write(ok)
    await ask(it, 'b')
    expect(ear.isOver).toBe(false)
    held.resume()
    await vi.waitUntil(() => ear.isOver)
  })
})

describe('what fails', () => {
  test('on a kept connection before a byte is stale', async () => {
    const it = lab()
    await ask(it, 'a')
    const ear = new Ear()
    it.pool.ask(request('b'), false, ear)
    it.at(0).theirs.end()
    await vi.waitUntil(() => ear.failure !== undefined)
    expect([ear.failure, ear.isStale]).toEqual(['it closed the connection', true])
  })

  test.each([
    ['on a fresh connection', false, ''],
    ['after a byte', true, 'H'],
  ])('%s is not', async (_what, isKept, bytes) => {
    const it = lab()
    if (isKept) await ask(it, 'a')
    const ear = new Ear()
    it.pool.ask(request('b'), false, ear)
    await vi.waitUntil(() => it.opened[0]?.heard.includes(request('b')))
    it.at(0).theirs.end(bytes)
    await vi.waitUntil(() => ear.failure !== undefined)
    expect([ear.failure, ear.isStale]).toEqual(['it closed the connection', false])
  })

  test('to open is told, and the place is given to the next', async () => {
    const it = lab(1)
    it.slow()
    const ears = [new Ear(), new Ear()] as const
    for (const ear of ears) it.pool.ask(request('a'), false, ear)
    it.openings[0]?.fail(new Error('refused'))
    await vi.waitUntil(() => it.openings.length === 2)
    expect([ears[0].failure, ears[0].isStale, ears[1].failure]).toEqual([
      'refused',
      false,
      undefined,
    ])
  })
})

describe('no more connections are opened than are allowed', () => {
  test('and who waits is served by the first that is free', async () => {
    const it = lab(1)
    const first = new Ear()
    const second = new Ear()
    it.pool.ask(request('a'), false, first)
    it.pool.ask(request('b'), false, second)
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => it.at(0).heard.includes(request('b')))
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => second.isOver)
    expect(it.openings).toHaveLength(1)
  })

  test('by those that are being opened either', async () => {
    const it = lab(1)
    it.slow()
    it.pool.ask(request('a'), false, new Ear())
    it.pool.ask(request('b'), false, new Ear())
    expect(it.openings).toHaveLength(1)
  })

  test('and one that is cut gives its place away', async () => {
    const it = lab(1)
    const cut = it.pool.ask(request('a'), false, new Ear())
    await vi.waitUntil(() => it.opened.length === 1)
    const waiting = ask(it, 'b')
    cut.cancel()
    expect((await waiting).text).toBe('ok')
    expect([it.opened.length, it.at(0).ours.destroyed]).toEqual([2, true])
  })
})

describe('whoever gives up', () => {
  test('while waiting is told, and is not served', async () => {
    const it = lab(1)
    it.pool.ask(request('a'), false, new Ear())
    const ear = new Ear()
    it.pool.ask(request('b'), false, ear).cancel()
    expect(ear.failure).toBe('aborted')
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await ask(it, 'c')
    expect(it.at(0).heard).toEqual([request('a'), request('c')])
  })

  test('while a connection is opened ends that', async () => {
    const it = lab()
    it.slow()
    const ear = new Ear()
    it.pool.ask(request('a'), false, ear).cancel()
    expect(it.openings[0]?.signal.aborted).toBe(true)
    await vi.waitUntil(() => ear.failure === 'aborted')
  })
})

describe('a pool', () => {
  test('that is retired closes what is idle and lets the rest finish', async () => {
    const it = lab()
    const busy = new Ear()
    await ask(it, 'a')
    it.pool.ask(request('b'), false, busy)
    await ask(it, 'c')
    it.pool.retire()
    expect(it.opened.map(({ ours }) => ours.destroyed)).toEqual([false, true])
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => busy.isOver)
    await vi.waitUntil(() => it.at(0).ours.destroyed)
    expect(busy.failure).toBeUndefined()
  })

  test('that is destroyed fails whatever is under way', async () => {
    const it = lab(2)
    const carried = new Ear()
    it.pool.ask(request('a'), false, carried)
    await vi.waitUntil(() => it.opened.length === 1)
    it.slow()
    const others = [new Ear(), new Ear()] as const
    for (const ear of others) it.pool.ask(request('b'), false, ear)
    it.pool.destroy()
    await vi.waitUntil(() => [carried, ...others].every(({ failure }) => failure !== undefined))
    expect(it.openings).toHaveLength(2)
  })
})
