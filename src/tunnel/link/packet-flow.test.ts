import { describe, expect, test } from 'vitest'
import { packetType } from '../protocol/index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { StreamReader } from './stream-reader.suite.ts'

const { DATA, CLOSE_REQ, DRAIN, CREDIT, FIN } = packetType
const everything = ['rdial', 'credit', 'halfclose'] as const

function accepted(peer: RawPeer, random = 1n, options = {}) {
  const channel = peer.dial(random).accept()
  if (!channel) throw new Error('the dial was given up')
  return new StreamReader(channel, options)
}

describe('the order of what goes out', () => {
  test('[TUN-W26] small packets go first, but the end of a channel waits for its data', async () => {
    const peer = new RawPeer('agent', everything)
    const [first, second] = [accepted(peer, 1n), accepted(peer, 2n)]
    await peer.quiet()
    peer.sent.length = 0
    first.stream.write(Buffer.from('one'))
    first.stream.finish()
    second.stream.write(Buffer.from('two'))
    peer.link.sendDrain()
    await peer.quiet()
    expect(peer.sent.map(({ type }) => type)).toEqual([DRAIN, DATA, FIN, DATA])
  })

  test('[TUN-W26] channels take turns by bytes', async () => {
    const peer = new RawPeer('agent')
    const channels = [accepted(peer, 1n), accepted(peer, 2n), accepted(peer, 3n)]
    await peer.quiet()
    peer.sent.length = 0
    for (const { stream } of channels) stream.write(Buffer.alloc(150_000))
    await peer.quiet()
    peer.events?.progress()
    const turns = peer.sent.map((packet) => (packet.type === DATA ? packet.connectId : 0))
    expect(turns).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3])
  })

  test('[TUN-W25] small writes of one turn leave as one packet in one write, and none reaches 1 MiB', async () => {
    const peer = new RawPeer('agent')
    const { stream } = accepted(peer)
    await peer.quiet()
    const before = peer.writes
    for (let index = 0; index < 100; index++) stream.write(Buffer.from('0123456789'))
    await peer.quiet()
    expect(peer.sent.slice(1)).toMatchObject([{ type: DATA, bytes: 1_000 }])
    expect(peer.writes).toBe(before + 1)
    stream.write(Buffer.alloc(5_000_000))
    while (peer.link.backlog > 0) peer.events?.progress()
    const sizes = peer.sent.map((packet) => (packet.type === DATA ? packet.bytes : 0))
    expect(Math.max(...sizes)).toBeLessThan(1024 * 1024)
    expect(sizes.reduce((a, b) => a + b)).toBe(5_001_000)
  })

  test('a writer is told when what it wrote has gone', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.backlog = 10 ** 9
    reader.stream.write(Buffer.alloc(1_000_000))
    await peer.quiet()
    expect(reader.told).toEqual([])
    expect(reader.stream.backlog).toBe(1_000_000)
    expect(peer.link.backlog).toBeGreaterThan(1_000_000)
    peer.backlog = 0
    while (reader.stream.backlog > 0) peer.events?.progress()
    expect(reader.told).toEqual(['drained'])
  })
})

describe('credit', () => {
  const window = 1024 * 1024

  test('[TUN-W27] without credit nothing more than the first window leaves', async () => {
    const peer = new RawPeer('agent', everything)
    const { stream } = accepted(peer)
    stream.write(Buffer.alloc(3 * window))
    const total = (): number =>
      peer.sent.reduce((sum, packet) => sum + (packet.type === DATA ? packet.bytes : 0), 0)
    for (let turn = 0; turn < 50; turn++) peer.events?.progress()
    expect(total()).toBe(window)
    peer.say({ type: CREDIT, connectId: 1, bytes: 1_000, dest: 0 })
    await peer.quiet()
    expect(total()).toBe(window + 1_000)
  })

  test('[TUN-W27] credit is granted as the reader consumes', async () => {
    const peer = new RawPeer('agent', everything)
    accepted(peer)
    peer.sayData(1, Buffer.alloc(window / 4))
    await peer.quiet()
    expect(peer.sent.at(-1)).toEqual({ type: CREDIT, connectId: 1, bytes: window / 4, dest: 0 })
  })

  test('[TUN-W27] a window that is used up faster than the path is long grows, up to its limit', async () => {
    const peer = new RawPeer('agent', everything, { creditWindowBytes: 4 * window })
    accepted(peer)
    let granted = 0
    for (let sent = 0; sent < 64 * window; sent += window / 4)
      peer.sayData(1, Buffer.alloc(window / 4))
    await peer.quiet()
    for (const packet of peer.sent) if (packet.type === CREDIT) granted += packet.bytes
    expect(granted).toBeGreaterThan(64 * window)
    expect(granted).toBeLessThanOrEqual(64 * window + 3 * window)
  })

  test('[TUN-W27] whoever sends more than granted loses that channel alone', async () => {
    const peer = new RawPeer('agent', everything)
    const [greedy, other] = [accepted(peer, 1n, { isReading: false }), accepted(peer, 2n)]
    for (let index = 0; index < 5; index++) peer.sayData(1, Buffer.alloc(window / 4))
    await greedy.closed()
    expect(greedy.error?.message).toMatch(/granted/)
    expect(other.isClosed).toBe(false)
  })
})

describe('a reader that does not read', () => {
  test('[TUN-U10, TUN-W27] loses its channel at the limit, and nobody else does', async () => {
    const peer = new RawPeer('server', [], { channelUnreadBytes: 100_000 })
    const stopped = new StreamReader(await peer.dialled(1), { isReading: false })
    const reading = new StreamReader(await peer.dialled(2))
    for (let index = 0; index < 3; index++) {
      peer.sayData(1, Buffer.alloc(50_000))
      peer.sayData(2, Buffer.alloc(50_000))
    }
    await stopped.closed()
    await peer.quiet()
    expect(stopped.error?.message).toMatch(/too slow/)
    expect(reading).toMatchObject({ bytes: 150_000, isClosed: false })
    expect(peer.sent.at(-1)).toEqual({ type: CLOSE_REQ, connectId: 1, dest: 0 })
  })

  test('[TUN-W27] the limit of a link costs the channel that holds most', async () => {
    const peer = new RawPeer('server', [], { peerBufferBytes: 100_000 })
    const little = new StreamReader(await peer.dialled(1), { isReading: false })
    const much = new StreamReader(await peer.dialled(2), { isReading: false })
    peer.sayData(1, Buffer.alloc(10_000))
    peer.sayData(2, Buffer.alloc(95_000))
    await much.closed()
    expect(little.isClosed).toBe(false)
  })

  test('an end that asks and does not read the answers loses the link', async () => {
    const peer = new RawPeer('agent', [], { controlBytes: 1_000 })
    peer.backlog = 10 ** 9
    for (let random = 1n; random < 100n; random++) peer.dial(random).refuse('no, and once more no')
    expect((await peer.link.ended).error?.message).toMatch(/does not read/)
  })
})

describe('the end of a link', () => {
  test('[TUN-W11, TUN-U10] fails pending dials, aborts the other end’s and closes every channel', async () => {
    const peer = new RawPeer('agent', everything)
    const reader = accepted(peer)
    const waiting = peer.dial(2n)
    const dialling = peer.link.dial('x:1', {
      signal: new AbortController().signal,
      deadlineMs: 9_999,
    })
    peer.events?.ended(new Error('cut'))
    await expect(dialling).rejects.toMatchObject({ reason: 'link-lost' })
    await reader.closed()
    expect(reader.error).toMatchObject({ code: 'TUNNEL_LINK_LOST' })
    expect(waiting.signal.aborted).toBe(true)
    expect(await peer.link.ended).toMatchObject({ error: { message: 'cut' } })
    expect(peer.link).toMatchObject({ channelCount: 0, pendingDialCount: 0 })
  })

  test('[TUN-W2] bytes that are no packets end the link with the reason', async () => {
    const peer = new RawPeer('agent')
    peer.events?.data(Buffer.from('0000000000', 'hex'))
    expect((await peer.link.ended).error).toMatchObject({ code: 'TUNNEL_PROTOCOL_ERROR' })
  })

  test('[TUN-W13] DRAIN is reported and remembered', () => {
    const peer = new RawPeer('server')
    peer.say({ type: DRAIN, dest: 0 })
    expect(peer.drains).toBe(1)
    expect(peer.link.isDraining).toBe(true)
  })
})

describe('an end that knows no credit', () => {
  const pressing = 1024 * 1024 + 1
  const slice = () => new Promise((resolve) => setTimeout(resolve, 70))

  test('[TUN-W27] is slowed down for a reader that is alone, and let go when it has caught up', async () => {
    const peer = new RawPeer('server')
    const reader = new StreamReader(await peer.dialled(1), { isReading: false })
    peer.sayData(1, Buffer.alloc(pressing))
    expect(peer.isThrottled).toBe(true)
    await slice()
    expect(peer).toMatchObject({ isThrottled: true, allowedBytes: 0 })
    reader.stream.consumed(pressing)
    expect(peer.isThrottled).toBe(false)
  })

  test('[TUN-W27] is not slowed down by a reader that has stopped while others are there', async () => {
    const peer = new RawPeer('server', [], { stoppedReaderMs: 50 })
    const stopped = new StreamReader(await peer.dialled(1), { isReading: false })
    new StreamReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    await slice()
    expect(peer.isThrottled).toBe(false)
    peer.sayData(1, Buffer.alloc(pressing))
    expect(peer.isThrottled).toBe(false)
    expect(stopped.isClosed).toBe(false)
  })

  test('[TUN-W27] is slowed down for a reader that has only paused, and again for one that goes on', async () => {
    const peer = new RawPeer('server', [], { stoppedReaderMs: 150 })
    const reader = new StreamReader(await peer.dialled(1), { isReading: false })
    new StreamReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    await slice()
    expect(peer.isThrottled).toBe(true)
    while (peer.isThrottled) await slice()
    reader.stream.consumed(1_000)
    while (!peer.isThrottled) await slice()
    expect(reader.isClosed).toBe(false)
  })

  test('[TUN-W27] is slowed down, never stopped, for readers that read among others', async () => {
    const peer = new RawPeer('server')
    const slow = new StreamReader(await peer.dialled(1), { isReading: false })
    new StreamReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    slow.stream.consumed(1_000)
    await slice()
    expect(peer.isThrottled).toBe(true)
    expect(peer.allowedBytes).toBeGreaterThan(0)
    slow.stream.close(new Error('enough'))
    expect(peer.isThrottled).toBe(false)
  })
})

describe('a link whose other end takes nothing', () => {
  const stalledLinkMs = 80

  test.each(['server', 'agent'] as const)(
    '[TUN-P2] is ended at the %s, and its dials and connections with it',
    async (side) => {
      const peer = new RawPeer(side, ['rdial'], { stalledLinkMs })
      const open = new StreamReader(await peer.dialled(1, side === 'agent' ? 1 : 0))
      const dial = peer.link.dial('x:2', {
        signal: new AbortController().signal,
        deadlineMs: 60_000,
      })
      peer.backlog = 1
      await expect(dial).rejects.toMatchObject({ reason: 'link-lost' })
      expect(peer.destroyedBy).toMatchObject({ code: 'TUNNEL_LINK_STALLED' })
      await open.until(({ isClosed }) => isClosed)
    },
  )

  test.each([
    ['takes a little from time to time', 'server', true],
    ['is the one client of a front end', 'gateway', false],
  ] as const)('[TUN-P2] goes on when it %s', async (_name, side, progresses) => {
    const peer = new RawPeer(side, [], { stalledLinkMs })
    peer.backlog = 1
    for (let look = 0; look < 12; look++) {
      await new Promise((resolve) => setTimeout(resolve, stalledLinkMs / 8))
      if (progresses) peer.events?.progress()
    }
    expect(peer.destroyedBy).toBeUndefined()
    peer.link.close()
  })
})
