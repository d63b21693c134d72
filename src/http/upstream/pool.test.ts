import { once } from 'node:events'
import { type Duplex, duplexPair, PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test, vi } from 'vitest'
import { Http1Upstream } from './pool.ts'
import {
  type RequestBody,
  type ResponseHead,
  type ResponseListener,
  requestStatus,
} from './upstream.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const endless = 'HTTP/1.1 200 OK\r\n\r\nok'
const request = (name: string) => ({ method: 'GET', path: `/${name}`, headers: ['Host', 'h'] })
/** What a request looks like to the server. */
const sent = (name: string): string =>
  `GET /${name} HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n`

/** One side of a connection that a test responds on. */
interface Opened {
  readonly ours: Duplex
  readonly theirs: Duplex
  /** What was sent on it, write by write. */
  readonly heard: string[]
}

/** An upstream, and the server that it connects to. */
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
  const pool = new Http1Upstream(open, clock, max)
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

/** Records a response. */
class Ear implements ResponseListener {
  text = ''
  isOver = false
  failure: string | undefined
  isStale = false
  switched: Duplex | undefined
  status = 0
  head({ status }: ResponseHead): void {
    this.status = status
  }
  upgraded(head: ResponseHead, connection: Duplex): void {
    this.head(head)
    this.switched = connection
  }
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
  pool.send(request(name), ear)
  const carrier = await vi.waitUntil(() => opened.find(({ heard }) => heard.includes(sent(name))))
  carrier.theirs.write(answer)
  await vi.waitUntil(() => ear.text === 'ok' || ear.failure !== undefined)
  return ear
}

describe('a connection', () => {
  test('carries the next request when an answer is whole', async () => {
    const it = lab()
    await ask(it, 'a')
    await ask(it, 'b')
    expect(it.opened.map(({ heard }) => heard)).toEqual([[sent('a'), sent('b')]])
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
    expect(it.at(0).heard).toEqual([sent('a')])
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
    const first = it.pool.send(request('a'), ears[0])
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => ears[0].isOver)
    it.pool.send(request('b'), ears[1])
    first.pause()
    first.cancel()
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => ears[1].isOver)
    expect([ears[1].failure, it.opened.length]).toEqual([undefined, 1])
  })

  test('is read no further while it is held', async () => {
    const it = lab()
    const ear = new Ear()
    const held = it.pool.send(request('a'), ear)
    await vi.waitUntil(() => it.opened.length === 1)
    held.pause()
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
    it.pool.send(request('b'), ear)
    it.at(0).theirs.end()
    await vi.waitUntil(() => ear.failure !== undefined)
    expect([ear.failure, ear.isStale]).toEqual(['the upstream closed the connection', true])
  })

  test.each([
    ['on a fresh connection', false, ''],
    ['after a byte', true, 'H'],
  ])('%s is not', async (_what, isKept, bytes) => {
    const it = lab()
    if (isKept) await ask(it, 'a')
    const ear = new Ear()
    it.pool.send(request('b'), ear)
    await vi.waitUntil(() => it.opened[0]?.heard.includes(sent('b')))
    it.at(0).theirs.end(bytes)
    await vi.waitUntil(() => ear.failure !== undefined)
    expect([ear.failure, ear.isStale]).toEqual(['the upstream closed the connection', false])
  })

  test('to open is told, and the place is given to the next', async () => {
    const it = lab(1)
    it.slow()
    const ears = [new Ear(), new Ear()] as const
    for (const ear of ears) it.pool.send(request('a'), ear)
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
    it.pool.send(request('a'), first)
    it.pool.send(request('b'), second)
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => it.at(0).heard.includes(sent('b')))
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => second.isOver)
    expect(it.openings).toHaveLength(1)
  })

  test('by those that are being opened either', async () => {
    const it = lab(1)
    it.slow()
    it.pool.send(request('a'), new Ear())
    it.pool.send(request('b'), new Ear())
    expect(it.openings).toHaveLength(1)
  })

  test('and one that is cut gives its place away', async () => {
    const it = lab(1)
    const cut = it.pool.send(request('a'), new Ear())
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
    it.pool.send(request('a'), new Ear())
    const ear = new Ear()
    it.pool.send(request('b'), ear).cancel()
    expect(ear.failure).toBe('aborted')
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await ask(it, 'c')
    expect(it.at(0).heard).toEqual([sent('a'), sent('c')])
  })

  test('while a connection is opened ends that', async () => {
    const it = lab()
    it.slow()
    const ear = new Ear()
    it.pool.send(request('a'), ear).cancel()
    expect(it.openings[0]?.signal.aborted).toBe(true)
    await vi.waitUntil(() => ear.failure === 'aborted')
  })
})

describe('a pool', () => {
  test('that is closed closes what is idle and lets the rest finish', async () => {
    const it = lab()
    const busy = new Ear()
    await ask(it, 'a')
    it.pool.send(request('b'), busy)
    await ask(it, 'c')
    it.pool.close()
    expect(it.opened.map(({ ours }) => ours.destroyed)).toEqual([false, true])
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => busy.isOver)
    await vi.waitUntil(() => it.at(0).ours.destroyed)
    expect(busy.failure).toBeUndefined()
  })

  test('that is destroyed fails whatever is under way', async () => {
    const it = lab(2)
    const carried = new Ear()
    it.pool.send(request('a'), carried)
    await vi.waitUntil(() => it.opened.length === 1)
    it.slow()
    const others = [new Ear(), new Ear()] as const
    for (const ear of others) it.pool.send(request('b'), ear)
    it.pool.destroy()
    await vi.waitUntil(() => [carried, ...others].every(({ failure }) => failure !== undefined))
    expect(it.openings).toHaveLength(2)
  })
})

describe('a body', () => {
  const upload = (body: RequestBody, method = 'POST') => ({ ...request('up'), method, body })

  async function sending(body: RequestBody, method?: string) {
    const it = lab()
    const ear = new Ear()
    it.pool.send(upload(body, method), ear)
    await vi.waitUntil(() => it.opened.length === 1)
    return {
      ...it,
      ear,
      heard: () => it.at(0).heard.join('').split('\r\n\r\n').slice(1).join('\r\n\r\n'),
    }
  }

  test('with a length is sent as it is, and the connection is kept', async () => {
    const it = await sending({
      stream: Readable.from([Buffer.from('ab'), Buffer.from('c')]),
      length: 3,
    })
    await vi.waitUntil(() => it.heard() === 'abc')
    expect(it.at(0).heard[0]).toContain('\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n')
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => it.ear.isOver)
    await ask(it, 'b')
    expect(it.opened).toHaveLength(1)
  })

  test('without a length is sent in chunks, and an empty piece does not end it', async () => {
    const pieces = [Buffer.from('ab'), Buffer.alloc(0), Buffer.alloc(16, 'c')]
    const it = await sending({ stream: Readable.from(pieces) }, 'DELETE')
    await vi.waitUntil(() => it.heard().endsWith('0\r\n\r\n'))
    expect(it.at(0).heard[0]).toContain('\r\nTransfer-Encoding: chunked\r\n')
    expect(it.heard()).toBe(`2\r\nab\r\n10\r\n${'c'.repeat(16)}\r\n0\r\n\r\n`)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => it.ear.isOver)
    await ask(it, 'b')
    expect(it.opened).toHaveLength(1)
  })

  test.each([
    ['longer', [Buffer.from('abcd')]],
    ['shorter', [Buffer.from('ab')]],
  ])('that is %s than its length ends the connection', async (_what, pieces) => {
    const it = await sending({ stream: Readable.from(pieces), length: 3 })
    await vi.waitUntil(() => it.ear.failure !== undefined)
    expect([it.at(0).ours.destroyed, it.heard().length < 4]).toEqual([true, true])
  })

  test.each([
    ['breaks off', (stream: PassThrough) => void stream.destroy()],
    [
      'ends because its client has reset it',
      (stream: PassThrough) => void Object.assign(stream, { aborted: true }).end(),
    ],
  ])('that %s is never taken for a complete one', async (_what, end) => {
    const stream = new PassThrough()
    const it = await sending({ stream })
    stream.write('ab')
    await vi.waitUntil(() => it.heard() === '2\r\nab\r\n')
    end(stream)
    await vi.waitUntil(() => it.ear.failure !== undefined)
    expect([it.at(0).ours.destroyed, it.heard()]).toEqual([true, '2\r\nab\r\n'])
  })

  test('that the server does not want ends the connection with the response, and is dropped', async () => {
    const stream = new PassThrough()
    const it = await sending({ stream })
    stream.write(Buffer.alloc(100_000))
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => it.ear.isOver)
    await vi.waitUntil(() => it.at(0).ours.destroyed)
    stream.end(Buffer.alloc(1_000_000))
    await once(stream, 'end')
    expect(it.ear.failure).toBeUndefined()
  })

  test('waits for a server that does not read, and for its meter', async () => {
    const stream = new PassThrough({ highWaterMark: 1_000_000 })
    const counted: number[] = []
    let waitMs = 0
    const meter = (bytes: number): number => {
      counted.push(bytes)
      return waitMs
    }
    const it = lab()
    it.pool.send(upload({ stream, meter }), new Ear())
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.pause()
    for (let count = 0; count < 10; count++) stream.write(Buffer.alloc(50_000))
    await vi.waitUntil(() => counted.length > 0 && stream.isPaused())
    expect(counted.length).toBeLessThan(10)
    waitMs = 1
    it.at(0).theirs.resume()
    await vi.waitUntil(() => counted.length === 10)
  })
})

describe('an upgrade', () => {
  const upgrade = { ...request('ws'), upgrade: 'websocket' }

  test('gets a connection of its own, which is handed over with the bytes behind the 101', async () => {
    const it = lab(1)
    await ask(it, 'a')
    const ear = new Ear()
    it.pool.send(upgrade, ear)
    await vi.waitUntil(() => it.opened[1]?.heard.length === 1)
    expect(it.at(1).heard.join('')).toContain('Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    it.at(1).theirs.write('HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\nhello')
    const connection = await vi.waitUntil(() => ear.switched)
    it.at(1).theirs.end(' you')
    expect([ear.status, await text(connection)]).toEqual([101, 'hello you'])
    it.pool.destroy()
    expect(it.at(0).ours.destroyed).toBe(true)
  })

  test('that is refused has a response, and its connection carries no other request', async () => {
    const it = lab()
    const ear = new Ear()
    it.pool.send(upgrade, ear)
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(ok)
    await vi.waitUntil(() => ear.isOver && it.at(0).ours.destroyed)
    expect([ear.status, ear.text, ear.failure]).toEqual([200, 'ok', undefined])
  })

  test('that nothing responds to ends with the upstream', async () => {
    const it = lab()
    const ear = new Ear()
    it.pool.send(upgrade, ear)
    await vi.waitUntil(() => it.opened.length === 1)
    it.pool.destroy()
    await vi.waitUntil(() => ear.failure !== undefined)
    expect(it.at(0).ours.destroyed).toBe(true)
  })
})

describe('the status of a response', () => {
  const { signal } = new AbortController()

  test.each([
    ['that is complete keeps the connection', ok, false],
    ['whose body is still to come does not wait for it', 'HTTP/1.1 200 OK\r\n\r\n', true],
  ])('%s', async (_what, bytes, isClosed) => {
    const it = lab()
    const status = requestStatus(it.pool, request('a'), signal)
    await vi.waitUntil(() => it.opened.length === 1)
    it.at(0).theirs.write(bytes)
    expect([await status, it.at(0).ours.destroyed]).toEqual([200, isClosed])
  })

  test('is not waited for longer than its signal allows', async () => {
    const it = lab()
    const controller = new AbortController()
    const status = requestStatus(it.pool, request('a'), controller.signal)
    await vi.waitUntil(() => it.opened.length === 1)
    controller.abort(new Error('late'))
    await expect(status).rejects.toThrow('late')
    expect(it.at(0).ours.destroyed).toBe(true)
  })
})
