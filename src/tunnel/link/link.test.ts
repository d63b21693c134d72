import { createHash, randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Capability, Channel, Link } from './index.ts'
import { type LinkPair, type LinkPairOptions, linkPair } from './link-pair.suite.ts'
import { echo, StreamReader } from './stream-reader.suite.ts'

const pairs: LinkPair[] = []
afterEach(async () => {
  for (const pair of pairs.splice(0)) await pair.close()
})

const dialOptions = () => ({ signal: new AbortController().signal, deadlineMs: 10_000 })
const noDials = { dial: () => {}, drain: () => {} }

/** A started pair whose acceptor hands every channel to `serve`. */
async function started(serve: (channel: Channel) => void, options: LinkPairOptions = {}) {
  const pair = await linkPair(options)
  pairs.push(pair)
  pair.acceptor.start({
    dial: (dial) => {
      const channel = dial.accept()
      if (channel) serve(channel)
    },
    drain: () => {},
  })
  pair.dialer.start(noDials)
  return pair
}

const both: [string, readonly Capability[]][] = [
  ['two of ours', ['rdial', 'credit', 'halfclose']],
  ['ends without extensions', []],
]

/** Writes as a socket would: never far ahead of what leaves. */
async function send(reader: StreamReader, chunks: readonly Buffer[]): Promise<void> {
  for (const chunk of chunks) {
    reader.stream.write(chunk)
    while (reader.stream.backlog > 2_000_000) await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('bytes', () => {
  const mebibyte = 1024 * 1024
  const chunks = Array.from({ length: 100 }, () => randomBytes(mebibyte))
  const expected = createHash('sha256').update(Buffer.concat(chunks)).digest('hex')

  test.each(both)(
    '[TUN-R7] 100 MiB each way at once between %s arrive with equal hashes',
    async (_name, capabilities) => {
      let far: StreamReader | undefined
      const sent: Promise<void>[] = []
      const { dialer } = await started(
        (channel) => {
          far = new StreamReader(channel)
          sent.push(send(far, chunks))
        },
        { capabilities },
      )
      const near = new StreamReader(await dialer.dial('x:1', dialOptions()))
      sent.push(send(near, chunks))
      await Promise.all(sent)
      await near.until(({ bytes }) => bytes === 100 * mebibyte)
      await far?.until(({ bytes }) => bytes === 100 * mebibyte)
      expect(near.digest()).toBe(expected)
      expect(far?.digest()).toBe(expected)
    },
  )

  test('[TUN-R9] both ends dial at the same time, and every connection keeps its own bytes', async () => {
    const { dialer, acceptor } = await linkPair().then((pair) => {
      pairs.push(pair)
      const events = {
        dial: (dial: Parameters<Parameters<Link['start']>[0]['dial']>[0]) => {
          const channel = dial.accept()
          if (channel) echo(channel)
        },
        drain: () => {},
      }
      pair.dialer.start(events)
      pair.acceptor.start(events)
      return pair
    })
    const readers = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const link = index % 2 === 0 ? dialer : acceptor
        const reader = new StreamReader(await link.dial('x:1', dialOptions()))
        reader.stream.write(Buffer.from(`connection ${index}`))
        reader.stream.finish()
        await reader.closed()
        return reader
      }),
    )
    expect(readers.map(({ text }) => text)).toEqual(
      readers.map((_, index) => `connection ${index}`),
    )
    expect([dialer.channelCount, acceptor.channelCount]).toEqual([0, 0])
  })
})

describe('slow readers', () => {
  const quarter = 256 * 1024

  test.each(both)(
    'with 50 connections that nobody reads, a dial and an echo on the 51st between %s are answered at once',
    async (_name, capabilities) => {
      const { dialer } = await started(
        (channel) => {
          if (channel.address === 'echo:1') echo(channel)
          else {
            const reader = new StreamReader(channel)
            void send(
              reader,
              Array.from({ length: 16 }, () => Buffer.alloc(quarter)),
            )
          }
        },
        { capabilities },
      )
      const stopped = await Promise.all(
        Array.from(
          { length: 50 },
          async () =>
            new StreamReader(await dialer.dial('bulk:1', dialOptions()), { isReading: false }),
        ),
      )
      const reader = new StreamReader(await dialer.dial('echo:1', dialOptions()))
      reader.stream.write(Buffer.from('hello'))
      await reader.until(({ text }) => text === 'hello')
      expect(stopped.every(({ isClosed }) => !isClosed)).toBe(true)
    },
    20_000,
  )

  test('[TUN-W27] a stopped reader of ours holds no more than its window, and costs the others nothing', async () => {
    const megabytes = 8
    const { dialer, acceptor } = await started((channel) => {
      const reader = new StreamReader(channel)
      void send(
        reader,
        Array.from({ length: 4 * megabytes }, () => Buffer.alloc(quarter)),
      )
    })
    const stopped = new StreamReader(await dialer.dial('x:1', dialOptions()), { isReading: false })
    const readers = await Promise.all(
      Array.from(
        { length: 8 },
        async () => new StreamReader(await dialer.dial('x:1', dialOptions())),
      ),
    )
    await Promise.all(
      readers.map((reader) => reader.until(({ bytes }) => bytes === megabytes * 4 * quarter)),
    )
    expect(stopped.bytes).toBeLessThanOrEqual(4 * quarter)
    expect(stopped.isClosed).toBe(false)
    expect(acceptor.backlog).toBeLessThan(4_000_000)
  })

  test('a channel that is closed while the other end takes nothing is given up [TUN-F20]', async () => {
    const { dialer, acceptor } = await started(
      (channel) => void new StreamReader(channel, { isReading: false }),
      { limits: { lastBytesMs: 50 } },
    )
    const channel = await dialer.dial('x:1', dialOptions())
    const reader = new StreamReader(channel)
    channel.write(Buffer.alloc(20 * quarter))
    channel.close()
    await reader.closed()
    expect(reader.error?.message).toMatch(/does not read the last bytes/)
    expect(dialer.channelCount).toBe(0)
    await vi.waitFor(() => expect(acceptor.channelCount).toBe(0))
  })
})

describe('half-close', () => {
  test('[TUN-R25] is carried between two of ours: an answer comes after the question has ended', async () => {
    const { dialer } = await started((channel) => {
      let question = ''
      channel.start({
        data: (chunk) => {
          question += chunk.toString()
          channel.consumed(chunk.length)
        },
        finished: () => {
          channel.write(Buffer.from(`you said ${question}`))
          channel.finish()
        },
        drained: () => {},
        closed: () => {},
      })
    })
    const reader = new StreamReader(await dialer.dial('x:1', dialOptions()))
    reader.stream.write(Buffer.from('hello'))
    reader.stream.finish()
    await reader.closed()
    expect(reader).toMatchObject({ text: 'you said hello', isFinished: true, error: undefined })
  })

  test('[TUN-R25] without it, an end flushes what both directions have queued', async () => {
    let far: StreamReader | undefined
    const { dialer } = await started(
      (channel) => {
        far = new StreamReader(channel)
        channel.write(Buffer.alloc(300_000))
      },
      { capabilities: [] },
    )
    const near = new StreamReader(await dialer.dial('x:1', dialOptions()))
    near.stream.write(Buffer.alloc(400_000))
    near.stream.finish()
    await near.closed()
    await far?.closed()
    expect(near).toMatchObject({ bytes: 300_000, error: undefined })
    expect(far).toMatchObject({ bytes: 400_000, error: undefined })
  })
})

describe('a link', () => {
  test('[TUN-W5] agrees on what both ends can do', async () => {
    const { dialer, acceptor } = await started(echo, { capabilities: ['credit'] })
    expect([...dialer.capabilities]).toEqual(['credit'])
    expect([...acceptor.capabilities]).toEqual(['credit'])
  })

  test('[TUN-W13] carries DRAIN to the other end', async () => {
    const pair = await linkPair()
    pairs.push(pair)
    pair.acceptor.start(noDials)
    const drained = new Promise<void>((resolve) => {
      pair.dialer.start({ dial: () => {}, drain: resolve })
    })
    pair.acceptor.sendDrain()
    await drained
    expect(pair.dialer.isDraining).toBe(true)
  })

  test('that is closed in order ends without an error at both ends', async () => {
    const { dialer, acceptor } = await started(echo)
    const reader = new StreamReader(await dialer.dial('x:1', dialOptions()))
    acceptor.close()
    expect(await acceptor.ended).toEqual({})
    expect(await dialer.ended).toEqual({})
    await reader.closed()
    expect(reader.error).toMatchObject({ code: 'TUNNEL_LINK_LOST' })
  })

  test('that breaks says so at the other end', async () => {
    const { dialer, acceptor } = await started(echo)
    acceptor.close(new Error('boom'))
    expect((await acceptor.ended).error?.message).toBe('boom')
    expect(await dialer.ended).toBeDefined()
  })

  test('[TUN-W7] a refusal reaches the dialer with its words', async () => {
    const pair = await linkPair()
    pairs.push(pair)
    pair.dialer.start(noDials)
    pair.acceptor.start({ dial: (dial) => dial.refuse('connect ECONNREFUSED'), drain: () => {} })
    await expect(pair.dialer.dial('x:1', dialOptions())).rejects.toMatchObject({
      reason: 'refused-by-peer',
      text: 'connect ECONNREFUSED',
    })
  })

  test('[TUN-W7] a front end dials once through its own stream', async () => {
    const { dialer } = await started(echo, { path: '/ProxyService/Proxy', capabilities: [] })
    const reader = new StreamReader(await dialer.dial('x:1', dialOptions()))
    reader.stream.write(Buffer.from('hi'))
    await reader.until(({ text }) => text === 'hi')
    await expect(dialer.dial('x:1', dialOptions())).rejects.toMatchObject({
      reason: 'refused-by-peer',
    })
    reader.stream.close()
    await reader.closed()
    expect(await dialer.ended).toEqual({})
  })

  test('[TUN-F9] tells of every packet in both directions', async () => {
    const counts: Record<string, number> = {}
    const count = (key: string): void => {
      counts[key] = (counts[key] ?? 0) + 1
    }
    const { dialer } = await started(echo, {
      packets: {
        dialer: {
          received: (type) => count(`received ${type}`),
          sent: (type) => count(`sent ${type}`),
        },
      },
    })
    const reader = new StreamReader(await dialer.dial('x:1', dialOptions()))
    reader.stream.write(Buffer.from('hi'))
    reader.stream.finish()
    await reader.closed()
    expect(counts).toEqual({
      'sent DIAL_REQ': 1,
      'received DIAL_RSP': 1,
      'sent DATA': 1,
      'received DATA': 1,
      'sent FIN': 1,
      'received FIN': 1,
    })
  })
})
