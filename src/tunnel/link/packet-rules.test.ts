import { describe, expect, test } from 'vitest'
import { packetType } from '../protocol/index.ts'
import { LegReader } from './leg-reader.suite.ts'
import { RawPeer } from './raw-peer.suite.ts'

const { DATA, CLOSE_REQ, CLOSE_RSP, DIAL_CLS, DIAL_RSP, DRAIN, CREDIT, FIN } = packetType
const everything = ['rdial', 'credit', 'halfclose'] as const

function accepted(peer: RawPeer, random = 1n, options = {}) {
  const channel = peer.dial(random).accept()
  if (!channel) throw new Error('the dial was given up')
  return new LegReader(channel, options)
}

describe('dials of the other end', () => {
  test('[TUN-W7] connection ids count from 1 and answers carry the random', async () => {
    const peer = new RawPeer('agent')
    accepted(peer, 2n ** 63n - 1n)
    accepted(peer, 5n)
    await peer.quiet()
    expect(peer.sent).toEqual([
      { type: DIAL_RSP, error: '', connectId: 1, random: 2n ** 63n - 1n, dest: 0 },
      { type: DIAL_RSP, error: '', connectId: 2, random: 5n, dest: 0 },
    ])
  })

  test('[TUN-W7] a refused dial is answered with the error and connection id 0', async () => {
    const peer = new RawPeer('agent')
    peer.dial(7n).refuse('connection refused')
    await peer.quiet()
    expect(peer.sent).toEqual([
      { type: DIAL_RSP, error: 'connection refused', connectId: 0, random: 7n, dest: 0 },
    ])
  })

  test('[TUN-W12] DIAL_CLS ends a pending dial: its signal aborts and it can no longer be accepted', async () => {
    const peer = new RawPeer('agent', everything)
    const dial = peer.dial(9n)
    peer.say({ type: DIAL_CLS, random: 9n, dest: 0 })
    expect(dial.signal.aborted).toBe(true)
    expect(dial.accept()).toBeUndefined()
    await peer.quiet()
    expect(peer.sent).toEqual([])
  })

  test('[TUN-W12] a dial that an upstream server takes back is answered, because it waits for that', async () => {
    const peer = new RawPeer('agent')
    peer.dial(9n)
    for (const random of [9n, 9n, 10n]) peer.say({ type: DIAL_CLS, random, dest: 0 })
    await peer.quiet()
    expect(peer.sent).toEqual([
      { type: DIAL_RSP, error: 'the dial was taken back', connectId: 0, random: 9n, dest: 0 },
    ])
  })

  test('[TUN-R24] a dial in a direction that was not agreed on is refused', async () => {
    const peer = new RawPeer('server')
    peer.say({ type: 0, protocol: 'tcp', address: 'x:1', random: 3n, dest: 1 })
    await peer.quiet()
    expect(peer.dials).toEqual([])
    expect(peer.sent).toMatchObject([
      { type: DIAL_RSP, random: 3n, error: expect.stringMatching(/agreed/) },
    ])
  })

  test('dials beyond the limit are refused', async () => {
    const peer = new RawPeer('agent', [], { pendingIncomingDials: 1 })
    peer.dial(1n)
    peer.say({ type: 0, protocol: 'tcp', address: 'x:1', random: 2n, dest: 0 })
    await peer.quiet()
    expect(peer.dials).toHaveLength(1)
    expect(peer.sent).toMatchObject([
      { type: DIAL_RSP, random: 2n, error: expect.stringMatching(/too many/) },
    ])
  })
})

describe('our dials', () => {
  test('[TUN-W12] a late answer to a dial that was given up is followed by CLOSE_REQ', async () => {
    const peer = new RawPeer('server')
    const cancel = new AbortController()
    const dialling = peer.link.dial('x:1', { signal: cancel.signal, deadlineMs: 10_000 })
    await peer.quiet()
    cancel.abort()
    await expect(dialling).rejects.toMatchObject({ reason: 'cancelled' })
    await peer.quiet()
    const [request, takenBack] = peer.sent
    expect(takenBack).toEqual({
      ...request,
      type: DIAL_CLS,
      protocol: undefined,
      address: undefined,
    })
    const random = takenBack?.type === DIAL_CLS ? takenBack.random : 0n
    peer.say({ type: DIAL_RSP, random, error: '', connectId: 4, dest: 0 })
    await peer.quiet()
    expect(peer.sent.at(-1)).toEqual({ type: CLOSE_REQ, connectId: 4, dest: 0 })
    expect(peer.link).toMatchObject({ pendingDialCount: 0, channelCount: 0 })
  })

  test('[TUN-F15] a dial without an answer fails at its deadline and is taken back', async () => {
    const peer = new RawPeer('server')
    const dialling = peer.link.dial('x:1', { signal: new AbortController().signal, deadlineMs: 5 })
    await expect(dialling).rejects.toMatchObject({ reason: 'timeout' })
    await peer.quiet()
    expect(peer.sent.at(-1)).toMatchObject({ type: DIAL_CLS })
  })

  test('a connection id that is in use ends the link, because nothing could be told apart', async () => {
    const peer = new RawPeer('server')
    await peer.dialled(3)
    await expect(peer.dialled(3)).rejects.toMatchObject({ reason: 'link-lost' })
    expect(peer.destroyedBy?.message).toMatch(/in use/)
  })

  test('data that comes together with the answer is not lost', async () => {
    const peer = new RawPeer('server')
    const dialling = peer.dialled(3)
    await peer.quiet()
    peer.sayData(3, 'early')
    const reader = new LegReader(await dialling)
    expect(reader.text).toBe('early')
  })
})

describe('data that belongs nowhere', () => {
  test.each([
    ['an agent', 'agent', { type: CLOSE_RSP, error: 'unrecognized connectID' }],
    ['a server', 'server', { type: CLOSE_REQ }],
    ['a gateway before its dial', 'gateway', { type: CLOSE_RSP, error: 'backend not initialized' }],
  ] as const)('[TUN-W9] %s answers an unknown id as upstream does', async (_name, side, answer) => {
    const peer = new RawPeer(side)
    peer.sayData(8, 'x')
    await peer.quiet()
    expect(peer.sent).toEqual([{ ...answer, connectId: 8, dest: 0 }])
  })

  test('[TUN-W9] connection id 0 is dropped without an answer', async () => {
    const peer = new RawPeer('agent')
    peer.sayData(0, 'x')
    await peer.quiet()
    expect(peer.sent).toEqual([])
  })

  test('[TUN-W9] a front end that changes its id loses both', async () => {
    const peer = new RawPeer('gateway')
    const reader = accepted(peer)
    peer.sayData(1, 'x')
    peer.sayData(2, 'y')
    await reader.closed()
    await peer.quiet()
    const error = 'mismatched connection IDs'
    expect(peer.sent.slice(1)).toEqual([
      { type: CLOSE_RSP, connectId: 2, error, dest: 0 },
      { type: CLOSE_RSP, connectId: 1, error, dest: 0 },
    ])
    expect(reader).toMatchObject({ text: 'x', error: { message: error } })
    expect(peer.isEnded).toBe(true)
  })

  test('[TUN-W9] what was on its way when a channel closed is dropped without an answer', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    reader.leg.close()
    await reader.closed()
    peer.sent.length = 0
    peer.sayData(1, 'late')
    await peer.quiet()
    expect(peer.sent).toEqual([])
  })

  test('[TUN-W10] CLOSE_REQ for an unknown id, or for the second time, is answered', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.say({ type: CLOSE_REQ, connectId: 1, dest: 0 })
    await reader.closed()
    peer.say({ type: CLOSE_REQ, connectId: 1, dest: 0 })
    await peer.quiet()
    expect(peer.sent.slice(1)).toEqual([
      { type: CLOSE_RSP, connectId: 1, error: '', dest: 0 },
      { type: CLOSE_RSP, connectId: 1, error: 'Unknown connectID', dest: 0 },
    ])
  })
})

describe('closing with a Go peer', () => {
  test('[TUN-W10, TUN-R25] what is queued leaves before the answer to CLOSE_REQ', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.sayData(1, 'question')
    reader.leg.write(Buffer.from('answer'))
    peer.say({ type: CLOSE_REQ, connectId: 1, dest: 0 })
    await reader.closed()
    expect(reader).toMatchObject({ text: 'question', isFinished: true, error: undefined })
    expect(reader.told).toEqual(['data', 'finished', 'closed'])
    expect(peer.sent.slice(1)).toEqual([
      { type: DATA, connectId: 1, dest: 0, text: 'answer', bytes: 6 },
      { type: CLOSE_RSP, connectId: 1, error: '', dest: 0 },
    ])
  })

  test('[TUN-W10, TUN-R25] the end of the target sends CLOSE_RSP unasked after the last byte', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    reader.leg.write(Buffer.alloc(200_000))
    reader.leg.finish()
    await reader.closed()
    expect(peer.sent.at(-1)).toEqual({ type: CLOSE_RSP, connectId: 1, error: '', dest: 0 })
    const bytes = peer.sent.map((packet) => (packet.type === DATA ? packet.bytes : 0))
    expect(bytes.reduce((a, b) => a + b)).toBe(200_000)
  })

  test('[TUN-W10, TUN-R25] after our FIN the other end may still send until it answers', async () => {
    const peer = new RawPeer('server')
    const reader = new LegReader(await peer.dialled(1))
    reader.leg.write(Buffer.from('bye'))
    reader.leg.finish()
    await peer.quiet()
    expect(peer.sent.slice(1)).toEqual([
      { type: DATA, connectId: 1, dest: 0, text: 'bye', bytes: 3 },
      { type: CLOSE_REQ, connectId: 1, dest: 0 },
    ])
    peer.sayData(1, 'last words')
    peer.say({ type: CLOSE_RSP, connectId: 1, error: '', dest: 0 })
    await reader.closed()
    expect(reader).toMatchObject({ text: 'last words', isFinished: true, error: undefined })
    expect(peer.link.channelCount).toBe(0)
  })

  test('[TUN-W10] a CLOSE_REQ that is never answered is not waited for without end', async () => {
    const peer = new RawPeer('server', [], { closeAnswerMs: 5 })
    const reader = new LegReader(await peer.dialled(1))
    reader.leg.close()
    await reader.closed()
    expect(peer.link.channelCount).toBe(0)
  })

  test('[TUN-W10] CLOSE_RSP with a text closes with that error', async () => {
    const peer = new RawPeer('server')
    const reader = new LegReader(await peer.dialled(1))
    peer.say({ type: CLOSE_RSP, connectId: 1, error: 'reset by target', dest: 0 })
    await reader.closed()
    expect(reader.error?.message).toBe('reset by target')
  })

  test('an aborted channel tells the other end at once and drops what was queued', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.backlog = 10 ** 9
    reader.leg.write(Buffer.alloc(1_000))
    reader.leg.close(new Error('boom'))
    peer.backlog = 0
    peer.events?.progress()
    await reader.closed()
    expect(peer.sent.slice(1)).toEqual([
      { type: CLOSE_RSP, connectId: 1, error: 'connection reset', dest: 0 },
    ])
    expect(peer.link.backlog).toBe(0)
  })
})

describe('half-close between two of ours', () => {
  test('[TUN-R25] FIN ends one direction, the second FIN the channel, without further words', async () => {
    const peer = new RawPeer('agent', everything)
    const reader = accepted(peer)
    peer.say({ type: FIN, connectId: 1, dest: 0 })
    expect(reader.isFinished).toBe(true)
    await peer.quiet()
    expect(reader.isClosed).toBe(false)
    reader.leg.write(Buffer.from('still here'))
    reader.leg.finish()
    await reader.closed()
    expect(reader.error).toBeUndefined()
    expect(peer.sent.slice(1)).toEqual([
      { type: DATA, connectId: 1, dest: 0, text: 'still here', bytes: 10 },
      { type: FIN, connectId: 1, dest: 0 },
    ])
  })

  test('[TUN-R25] a close before FIN is a reset, so that a torn answer is not taken for a whole one', async () => {
    const peer = new RawPeer('agent', everything)
    const reader = accepted(peer)
    peer.sayData(1, 'half an ans')
    peer.say({ type: CLOSE_REQ, connectId: 1, dest: 0 })
    await reader.closed()
    expect(reader.isFinished).toBe(false)
    expect(reader.error?.message).toMatch(/reset/)
  })
})

describe('both directions on one link', () => {
  test('[TUN-R9, TUN-W5] the same id in both directions is two channels, told apart by dest', async () => {
    const peer = new RawPeer('agent', everything)
    const inbound = accepted(peer)
    const outbound = new LegReader(await peer.dialled(1, 1))
    peer.sayData(1, 'to the node', 0)
    peer.sayData(1, 'to the control plane', 1)
    expect(inbound.text).toBe('to the node')
    expect(outbound.text).toBe('to the control plane')
    outbound.leg.write(Buffer.from('o'))
    inbound.leg.write(Buffer.from('i'))
    await peer.quiet()
    expect(peer.sent.slice(-2)).toEqual([
      { type: DATA, connectId: 1, dest: 1, text: 'o', bytes: 1 },
      { type: DATA, connectId: 1, dest: 0, text: 'i', bytes: 1 },
    ])
  })

  test('[TUN-R24, TUN-W5] an agent does not dial through a server that has not agreed to it', async () => {
    const peer = new RawPeer('agent')
    const dialling = peer.link.dial('x:1', { signal: new AbortController().signal, deadlineMs: 1 })
    await expect(dialling).rejects.toMatchObject({ reason: 'refused-by-peer' })
    expect(peer.sent).toEqual([])
  })
})

describe('a front end and its gateway', () => {
  test('[TUN-W7] a stream is for one dial', async () => {
    const peer = new RawPeer('gateway')
    accepted(peer)
    peer.say({ type: 0, protocol: 'tcp', address: 'x:1', random: 2n, dest: 0 })
    await peer.quiet()
    expect(peer.sent.at(-1)).toMatchObject({
      type: DIAL_RSP,
      random: 2n,
      error: expect.stringMatching(/already/),
    })
    expect(peer.link.channelCount).toBe(1)
    expect(peer.isEnded).toBe(false)
  })

  test('[TUN-W8] a refused dial ends the stream after the answer', async () => {
    const peer = new RawPeer('gateway')
    peer.dial().refuse('No agent available')
    await peer.quiet()
    expect(peer.sent).toMatchObject([{ type: DIAL_RSP, error: 'No agent available' }])
    expect(peer.isEnded).toBe(true)
  })
})

describe('the order of what goes out', () => {
  test('[TUN-W26] small packets go first, but the end of a channel waits for its data', async () => {
    const peer = new RawPeer('agent', everything)
    const [first, second] = [accepted(peer, 1n), accepted(peer, 2n)]
    await peer.quiet()
    peer.sent.length = 0
    first.leg.write(Buffer.from('one'))
    first.leg.finish()
    second.leg.write(Buffer.from('two'))
    peer.link.sendDrain()
    await peer.quiet()
    expect(peer.sent.map(({ type }) => type)).toEqual([DRAIN, DATA, FIN, DATA])
  })

  test('[TUN-W26] channels take turns by bytes', async () => {
    const peer = new RawPeer('agent')
    const channels = [accepted(peer, 1n), accepted(peer, 2n), accepted(peer, 3n)]
    await peer.quiet()
    peer.sent.length = 0
    for (const { leg } of channels) leg.write(Buffer.alloc(150_000))
    await peer.quiet()
    peer.events?.progress()
    const turns = peer.sent.map((packet) => (packet.type === DATA ? packet.connectId : 0))
    expect(turns).toEqual([1, 2, 3, 1, 2, 3, 1, 2, 3])
  })

  test('[TUN-W25] small writes of one turn leave as one packet in one write, and none reaches 1 MiB', async () => {
    const peer = new RawPeer('agent')
    const { leg } = accepted(peer)
    await peer.quiet()
    const before = peer.writes
    for (let index = 0; index < 100; index++) leg.write(Buffer.from('0123456789'))
    await peer.quiet()
    expect(peer.sent.slice(1)).toMatchObject([{ type: DATA, bytes: 1_000 }])
    expect(peer.writes).toBe(before + 1)
    leg.write(Buffer.alloc(5_000_000))
    while (peer.link.backlog > 0) peer.events?.progress()
    const sizes = peer.sent.map((packet) => (packet.type === DATA ? packet.bytes : 0))
    expect(Math.max(...sizes)).toBeLessThan(1024 * 1024)
    expect(sizes.reduce((a, b) => a + b)).toBe(5_001_000)
  })

  test('a writer is told when what it wrote has gone', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.backlog = 10 ** 9
    reader.leg.write(Buffer.alloc(1_000_000))
    await peer.quiet()
    expect(reader.told).toEqual([])
    expect(reader.leg.backlog).toBe(1_000_000)
    expect(peer.link.backlog).toBeGreaterThan(1_000_000)
    peer.backlog = 0
    while (reader.leg.backlog > 0) peer.events?.progress()
    expect(reader.told).toEqual(['drained'])
  })
})

describe('credit', () => {
  const window = 1024 * 1024

  test('[TUN-W27] without credit nothing more than the first window leaves', async () => {
    const peer = new RawPeer('agent', everything)
    const { leg } = accepted(peer)
    leg.write(Buffer.alloc(3 * window))
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
    const stopped = new LegReader(await peer.dialled(1), { isReading: false })
    const reading = new LegReader(await peer.dialled(2))
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
    const peer = new RawPeer('server', [], { linkUnreadBytes: 100_000 })
    const little = new LegReader(await peer.dialled(1), { isReading: false })
    const much = new LegReader(await peer.dialled(2), { isReading: false })
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
  test('[TUN-W11] fails pending dials, aborts the other end’s and closes every channel', async () => {
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
    const reader = new LegReader(await peer.dialled(1), { isReading: false })
    peer.sayData(1, Buffer.alloc(pressing))
    expect(peer.isThrottled).toBe(true)
    await slice()
    expect(peer).toMatchObject({ isThrottled: true, allowedBytes: 0 })
    reader.leg.consumed(pressing)
    expect(peer.isThrottled).toBe(false)
  })

  test('[TUN-W27] is not slowed down by a reader that has stopped while others are there', async () => {
    const peer = new RawPeer('server', [], { stoppedReaderMs: 50 })
    const stopped = new LegReader(await peer.dialled(1), { isReading: false })
    new LegReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    await slice()
    expect(peer.isThrottled).toBe(false)
    peer.sayData(1, Buffer.alloc(pressing))
    expect(peer.isThrottled).toBe(false)
    expect(stopped.isClosed).toBe(false)
  })

  test('[TUN-W27] is slowed down for a reader that has only paused, and again for one that goes on', async () => {
    const peer = new RawPeer('server', [], { stoppedReaderMs: 150 })
    const reader = new LegReader(await peer.dialled(1), { isReading: false })
    new LegReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    await slice()
    expect(peer.isThrottled).toBe(true)
    while (peer.isThrottled) await slice()
    reader.leg.consumed(1_000)
    while (!peer.isThrottled) await slice()
    expect(reader.isClosed).toBe(false)
  })

  test('[TUN-W27] is slowed down, never stopped, for readers that read among others', async () => {
    const peer = new RawPeer('server')
    const slow = new LegReader(await peer.dialled(1), { isReading: false })
    new LegReader(await peer.dialled(2))
    peer.sayData(1, Buffer.alloc(pressing))
    slow.leg.consumed(1_000)
    await slice()
    expect(peer.isThrottled).toBe(true)
    expect(peer.allowedBytes).toBeGreaterThan(0)
    slow.leg.close(new Error('enough'))
    expect(peer.isThrottled).toBe(false)
  })
})

describe('a link whose other end takes nothing', () => {
  const stalledLinkMs = 80

  test.each(['server', 'agent'] as const)(
    '[TUN-P2] is ended at the %s, and its dials and connections with it',
    async (side) => {
      const peer = new RawPeer(side, ['rdial'], { stalledLinkMs })
      const open = new LegReader(await peer.dialled(1, side === 'agent' ? 1 : 0))
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
