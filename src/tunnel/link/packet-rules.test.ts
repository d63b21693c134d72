import { describe, expect, test } from 'vitest'
import { packetType } from '../protocol/index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { StreamReader } from './stream-reader.suite.ts'

const { DATA, CLOSE_REQ, CLOSE_RSP, DIAL_CLS, DIAL_RSP, FIN } = packetType
const everything = ['rdial', 'credit', 'halfclose'] as const

function accepted(peer: RawPeer, random = 1n, options = {}) {
  const channel = peer.dial(random).accept()
  if (!channel) throw new Error('the dial was given up')
  return new StreamReader(channel, options)
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
      { type: DIAL_RSP, error: 'dial was cancelled', connectId: 0, random: 9n, dest: 0 },
    ])
  })

  test('[TUN-R24] a dial in a direction that was not agreed on is refused', async () => {
    const peer = new RawPeer('server')
    peer.say({ type: 0, protocol: 'tcp', address: 'x:1', random: 3n, dest: 1 })
    await peer.quiet()
    expect(peer.dials).toEqual([])
    expect(peer.sent).toMatchObject([
      { type: DIAL_RSP, random: 3n, error: expect.stringMatching(/not supported/) },
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
    const reader = new StreamReader(await dialling)
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

  test('[TUN-W9, TUN-U10] a front end that changes its id loses both', async () => {
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
    reader.stream.close()
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
  test('[TUN-W10, TUN-R25, TUN-U10] what is queued leaves before the answer to CLOSE_REQ', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.sayData(1, 'question')
    reader.stream.write(Buffer.from('answer'))
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
    reader.stream.write(Buffer.alloc(200_000))
    reader.stream.finish()
    await reader.closed()
    expect(peer.sent.at(-1)).toEqual({ type: CLOSE_RSP, connectId: 1, error: '', dest: 0 })
    const bytes = peer.sent.map((packet) => (packet.type === DATA ? packet.bytes : 0))
    expect(bytes.reduce((a, b) => a + b)).toBe(200_000)
  })

  test('[TUN-W10, TUN-R25] after our FIN the other end may still send until it answers', async () => {
    const peer = new RawPeer('server')
    const reader = new StreamReader(await peer.dialled(1))
    reader.stream.write(Buffer.from('bye'))
    reader.stream.finish()
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
    const peer = new RawPeer('server', [], { closeTimeoutMs: 5 })
    const reader = new StreamReader(await peer.dialled(1))
    reader.stream.close()
    await reader.closed()
    expect(peer.link.channelCount).toBe(0)
  })

  test('[TUN-W10] CLOSE_RSP with a text closes with that error', async () => {
    const peer = new RawPeer('server')
    const reader = new StreamReader(await peer.dialled(1))
    peer.say({ type: CLOSE_RSP, connectId: 1, error: 'reset by target', dest: 0 })
    await reader.closed()
    expect(reader.error?.message).toBe('reset by target')
  })

  test('an aborted channel tells the other end at once and drops what was queued', async () => {
    const peer = new RawPeer('agent')
    const reader = accepted(peer)
    peer.backlog = 10 ** 9
    reader.stream.write(Buffer.alloc(1_000))
    reader.stream.close(new Error('boom'))
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
    reader.stream.write(Buffer.from('still here'))
    reader.stream.finish()
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
    const outbound = new StreamReader(await peer.dialled(1, 1))
    peer.sayData(1, 'to the node', 0)
    peer.sayData(1, 'to the control plane', 1)
    expect(inbound.text).toBe('to the node')
    expect(outbound.text).toBe('to the control plane')
    outbound.stream.write(Buffer.from('o'))
    inbound.stream.write(Buffer.from('i'))
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
      error: expect.stringMatching(/one dial only/),
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
