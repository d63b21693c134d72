import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import net, { type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { ByteStream, ByteStreamEvents } from './byte-stream.ts'
import { socketStream } from './byte-stream.ts'
import { duplexOf } from './duplex.ts'
import { join } from './join.ts'
import { echo, StreamReader } from './stream-reader.suite.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Two ends of a real connection, both half-open: by TCP, or by a unix socket. */
async function sockets(path?: string): Promise<[Socket, Socket]> {
  const server = net.createServer({ allowHalfOpen: true })
  if (path === undefined) server.listen(0, '127.0.0.1')
  else server.listen(path)
  await once(server, 'listening')
  const place =
    path === undefined
      ? { port: (server.address() as AddressInfo).port, host: '127.0.0.1' }
      : { path }
  const near = net.connect({ ...place, allowHalfOpen: true })
  const [[far]] = (await Promise.all([once(server, 'connection'), once(near, 'connect')])) as [
    [Socket],
    unknown,
  ]
  server.close()
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    closers.push(() => socket.destroy())
  }
  return [near, far]
}

/** A stream that a test plays by hand. */
class ManualStream implements ByteStream {
  events: ByteStreamEvents | undefined
  written = ''
  backlog = 0
  consumedBytes = 0
  isFinished = false
  closedWith: { error?: Error } | undefined

  start(events: ByteStreamEvents): void {
    this.events = events
  }

  write(chunk: Buffer): void {
    this.written += chunk.toString()
    this.backlog += chunk.length
  }

  consumed(bytes: number): void {
    this.consumedBytes += bytes
  }

  finish(): void {
    this.isFinished = true
  }

  close(error?: Error): void {
    this.closedWith ??= error ? { error } : {}
  }
}

describe('a stream on a socket', () => {
  test('reads, writes and carries the end of each direction', async () => {
    const [near, far] = await sockets()
    const reader = new StreamReader(socketStream(near))
    echo(socketStream(far))
    reader.stream.write(Buffer.from('hel'))
    reader.stream.write(Buffer.from('lo'))
    reader.stream.finish()
    await reader.closed()
    expect(reader).toMatchObject({ text: 'hello', isFinished: true, error: undefined })
  })

  test('writes of one turn leave together', async () => {
    const [near, far] = await sockets()
    const stream = socketStream(near)
    const arrived = once(far, 'data')
    for (let index = 0; index < 50; index++) stream.write(Buffer.from('0123456789'))
    expect(String((await arrived)[0])).toHaveLength(500)
  })

  test('a socket that is not consumed is no longer read', async () => {
    const [near, far] = await sockets()
    const reader = new StreamReader(socketStream(near), { isReading: false })
    far.write(Buffer.alloc(30_000_000))
    await reader.until(({ bytes }) => bytes > 128 * 1024)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(reader.bytes).toBeLessThan(1_000_000)
    expect(near.isPaused()).toBe(true)
    reader.stream.consumed(reader.bytes)
    expect(near.isPaused()).toBe(false)
  })

  test('a close without an error lets everything leave first', async () => {
    const [near, far] = await sockets()
    const reader = new StreamReader(socketStream(near))
    reader.stream.write(Buffer.alloc(5_000_000))
    reader.stream.close()
    let bytes = 0
    far.write('bytes that nobody will read')
    far.on('data', (chunk) => {
      bytes += chunk.length
    })
    await once(far, 'end')
    far.end()
    await reader.closed()
    expect(bytes).toBe(5_000_000)
    expect(reader.error).toBeUndefined()
  })

  test('a close with an error resets, so that a torn answer is not taken for a whole one', async () => {
    const [near, far] = await sockets()
    const reader = new StreamReader(socketStream(near))
    const failed = once(far, 'error')
    far.resume()
    reader.stream.close(new Error('boom'))
    await reader.closed()
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
  })

  test('a unix socket knows no reset and is just closed', async () => {
    const directory = await mkdtemp(joinPath(tmpdir(), 'sallyport-stream-'))
    closers.push(() => rm(directory, { recursive: true }))
    const [near] = await sockets(joinPath(directory, 'socket'))
    const reader = new StreamReader(socketStream(near))
    reader.stream.close(new Error('boom'))
    await reader.closed()
    expect(near.destroyed).toBe(true)
  })

  test('a socket whose end is under way is closed for good', async () => {
    const [near, far] = await sockets()
    const reader = new StreamReader(socketStream(near))
    far.pause()
    reader.stream.write(Buffer.alloc(20_000_000))
    reader.stream.finish()
    reader.stream.close(new Error('boom'))
    await reader.closed()
    expect([near.destroyed, reader.error]).toEqual([true, undefined])
  })

  test('a socket that is gone already reports so', async () => {
    const [near] = await sockets()
    near.destroy()
    await once(near, 'close')
    const reader = new StreamReader(socketStream(near))
    await reader.closed()
    expect(reader.isClosed).toBe(true)
  })
})

describe('a join', () => {
  test('passes bytes and ends of direction on, and tells how much went through', async () => {
    const [a, b] = [new ManualStream(), new ManualStream()]
    const ended = join(a, b)
    a.events?.data(Buffer.from('question'))
    a.events?.finished()
    expect(b).toMatchObject({ written: 'question', isFinished: true })
    b.events?.data(Buffer.from('answer!'))
    b.events?.finished()
    expect(a).toMatchObject({ written: 'answer!', isFinished: true, closedWith: undefined })
    a.events?.closed()
    b.events?.closed()
    expect(await ended).toEqual({ bytesFromA: 8, bytesFromB: 7, endedBy: 'both' })
  })

  test('stops consuming while the other stream is full, and goes on when it has drained', () => {
    const [a, b] = [new ManualStream(), new ManualStream()]
    void join(a, b, { highWaterBytes: 10, blockedMs: 60_000, lastBytesMs: 60_000 })
    a.events?.data(Buffer.from('12345678'))
    expect(a.consumedBytes).toBe(8)
    a.events?.data(Buffer.from('12345678'))
    expect(a.consumedBytes).toBe(8)
    b.backlog = 0
    b.events?.drained()
    expect(a.consumedBytes).toBe(16)
  })

  test.each([undefined, new Error('reset')])(
    'closes the other stream as the first was closed (%s)',
    async (error) => {
      const [a, b] = [new ManualStream(), new ManualStream()]
      const ended = join(a, b)
      b.events?.closed(error)
      expect(a.closedWith).toEqual(error ? { error } : {})
      a.events?.closed()
      expect(await ended).toMatchObject({ endedBy: 'b', ...(error && { error }) })
    },
  )

  describe('a stream that takes nothing', () => {
    const limits = { highWaterBytes: 10, blockedMs: 60_000, lastBytesMs: 5_000 }
    function joined(): [ManualStream, ManualStream] {
      vi.useFakeTimers()
      onTestFinished(() => void vi.useRealTimers())
      const [a, b] = [new ManualStream(), new ManualStream()]
      void join(a, b, limits)
      return [a, b]
    }
    const full = Buffer.alloc(20)

    test('is closed when it has held the other up for too long [TUN-F20]', () => {
      const [a, b] = joined()
      a.events?.data(full)
      vi.advanceTimersByTime(limits.blockedMs - 1)
      expect(b.closedWith).toBeUndefined()
      vi.advanceTimersByTime(1)
      expect(b.closedWith?.error?.message).toMatch(/peer does not read/)
    })

    test('is closed sooner when it was told that no more comes [TUN-F20]', () => {
      const [a, b] = joined()
      a.events?.data(full)
      a.events?.finished()
      vi.advanceTimersByTime(limits.lastBytesMs)
      expect(b.closedWith?.error?.message).toMatch(/peer does not read/)
    })

    test('is left alone while it takes a little each time, or has taken all [TUN-F20]', () => {
      const [a, b] = joined()
      a.events?.data(full)
      a.events?.finished()
      for (b.backlog = 19; b.backlog >= 0; b.backlog--) vi.advanceTimersByTime(limits.lastBytesMs)
      expect(b.closedWith).toBeUndefined()
      expect(vi.getTimerCount()).toBe(0)
    })

    test('is watched no more when it has drained, or is gone', () => {
      const [a, b] = joined()
      a.events?.data(full)
      b.backlog = 0
      b.events?.drained()
      expect(vi.getTimerCount()).toBe(0)
      a.events?.data(full)
      b.events?.closed()
      expect(vi.getTimerCount()).toBe(0)
    })
  })

  test('holds back no more than its limits when a real reader stops', async () => {
    const [source, left] = await sockets()
    const [right, sink] = await sockets()
    void join(socketStream(left), socketStream(right))
    source.write(Buffer.alloc(60_000_000))
    let before = -1
    while (right.writableLength !== before || before === 0) {
      before = right.writableLength
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(right.writableLength).toBeLessThan(1_500_000)
    let bytes = 0
    sink.on('data', (chunk) => {
      bytes += chunk.length
      if (bytes === 60_000_000) sink.emit('whole')
    })
    await once(sink, 'whole')
    expect(bytes).toBe(60_000_000)
  })
})

describe('a byte stream as a Duplex', () => {
  test('is read and written as a socket', async () => {
    const [near, far] = await sockets()
    const stream = duplexOf(socketStream(near))
    far.pipe(far)
    const sent = Buffer.alloc(3_000_000, 'xyz')
    stream.end(sent)
    const received: Buffer[] = []
    for await (const chunk of stream) received.push(chunk as Buffer)
    expect(Buffer.concat(received).equals(sent)).toBe(true)
  })

  test('a reader that waits holds the other side up', async () => {
    const stream = new ManualStream()
    const duplex = duplexOf(stream)
    stream.events?.data(Buffer.alloc(100_000))
    stream.events?.data(Buffer.alloc(100_000))
    expect(stream.consumedBytes).toBeLessThan(200_000)
    for await (const chunk of duplex) if (chunk && stream.consumedBytes === 200_000) break
    expect(stream.consumedBytes).toBe(200_000)
  })

  test('what came before an orderly end can still be read', async () => {
    const stream = new ManualStream()
    const duplex = duplexOf(stream)
    stream.events?.data(Buffer.from('last words'))
    stream.events?.finished()
    stream.events?.closed()
    const received: Buffer[] = []
    for await (const chunk of duplex) received.push(chunk as Buffer)
    expect(Buffer.concat(received).toString()).toBe('last words')
    expect(duplex.destroyed).toBe(true)
  })

  test('an error of the stream is one of the duplex, and destroying the duplex closes the stream', async () => {
    const [broken, given] = [new ManualStream(), new ManualStream()]
    const failed = once(duplexOf(broken), 'error')
    broken.events?.closed(new Error('cut'))
    expect((await failed)[0]).toMatchObject({ message: 'cut' })
    const duplex = duplexOf(given)
    duplex.destroy()
    await once(duplex, 'close')
    expect(given.closedWith).toEqual({})
  })
})
