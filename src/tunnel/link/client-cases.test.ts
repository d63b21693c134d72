import { describe, expect, test } from 'vitest'
import { packetType } from '../protocol/index.ts'
import type { Channel } from './index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { StreamReader } from './stream-reader.suite.ts'

const begin = (peer: RawPeer, address: string, signal = new AbortController().signal) =>
  peer.link.dial(address, { signal, deadlineMs: 10_000 })

/** The randoms of the dials that were sent, by their addresses. */
const randoms = (peer: RawPeer): Map<string, bigint> =>
  new Map(
    peer.sent.flatMap((packet) =>
      packet.type === packetType.DIAL_REQ ? [[packet.address, packet.random] as const] : [],
    ),
  )

function answer(peer: RawPeer, address: string, connectId: number, error = ''): void {
  const random = randoms(peer).get(address)
  if (random === undefined) throw new Error(`${address} was not dialled`)
  peer.say({ type: packetType.DIAL_RSP, random, error, connectId, dest: 0 })
}

describe('dials that race', () => {
  const addresses = Array.from({ length: 20 }, (_, at) => `host-${at}:80`)

  test('[TUN-U13] each get the answer to their own, in whatever order answers come', async () => {
    const peer = new RawPeer('server')
    const dials = addresses.map((address) => begin(peer, address))
    await peer.quiet()
    for (const [at, address] of [...addresses.entries()].reverse()) answer(peer, address, at + 1)
    const channels = await Promise.all(dials)
    expect(channels.map(({ address }) => address)).toEqual(addresses)
    channels.at(7)?.write(Buffer.from('for the eighth'))
    await peer.quiet()
    expect(peer.sent.at(-1)).toMatchObject({ connectId: 8, text: 'for the eighth' })
  })

  test('[TUN-U13] are not touched by one that is cancelled, which sends DIAL_CLS once', async () => {
    const peer = new RawPeer('server')
    const given = new AbortController()
    const cancelled = begin(peer, 'cancelled:80', given.signal)
    const kept = begin(peer, 'kept:80')
    await peer.quiet()
    given.abort()
    given.abort()
    await expect(cancelled).rejects.toMatchObject({ reason: 'cancelled' })
    await peer.quiet()
    expect(peer.sent.filter(({ type }) => type === packetType.DIAL_CLS)).toEqual([
      expect.objectContaining({ random: randoms(peer).get('cancelled:80') }),
    ])
    answer(peer, 'kept:80', 1)
    expect((await kept).address).toBe('kept:80')
  })

  test('[TUN-U13] fail alone when the other end refuses one or takes it back', async () => {
    const peer = new RawPeer('server')
    const [refused, takenBack, kept] = ['refused:80', 'taken-back:80', 'kept:80'].map((address) =>
      begin(peer, address),
    )
    await peer.quiet()
    answer(peer, 'refused:80', 0, 'dial tcp: connection refused')
    peer.say({
      type: packetType.DIAL_CLS,
      random: randoms(peer).get('taken-back:80') ?? 0n,
      dest: 0,
    })
    answer(peer, 'kept:80', 1)
    await expect(refused).rejects.toThrow('connection refused')
    await expect(takenBack).rejects.toMatchObject({ reason: 'refused-by-peer' })
    expect((await kept)?.address).toBe('kept:80')
  })

  test('[TUN-U13] that begin after the signal has gone send nothing', async () => {
    const peer = new RawPeer('server')
    await expect(begin(peer, 'x:80', AbortSignal.abort())).rejects.toMatchObject({
      reason: 'cancelled',
    })
    await peer.quiet()
    expect(peer.sent).toEqual([])
  })
})

describe('a tunnel that is used again', () => {
  test('[TUN-U13] keeps nothing of the connections before', async () => {
    const peer = new RawPeer('server')
    for (let connectId = 1; connectId <= 100; connectId++) {
      const channel = new StreamReader(await peer.dialled(connectId))
      peer.sayData(connectId, `answer ${connectId}`)
      channel.stream.close()
      await peer.quiet()
      peer.say({ type: packetType.CLOSE_RSP, connectId, error: '', dest: 0 })
      await channel.closed()
      expect(channel.text).toBe(`answer ${connectId}`)
    }
    expect(peer.link.channelCount).toBe(0)
    expect(peer.link.pendingDialCount).toBe(0)
  })

  test('[TUN-U13] closes one connection without harm to the others', async () => {
    const peer = new RawPeer('server')
    const channels: Channel[] = []
    for (let connectId = 1; connectId <= 3; connectId++)
      channels.push(await peer.dialled(connectId))
    const readers = channels.map((channel) => new StreamReader(channel))
    peer.say({ type: packetType.CLOSE_RSP, connectId: 2, error: 'gone', dest: 0 })
    peer.sayData(1, 'first')
    peer.sayData(3, 'third')
    await readers[1]?.closed()
    expect(readers.map(({ text, isClosed }) => [text, isClosed])).toEqual([
      ['first', false],
      ['', true],
      ['third', false],
    ])
  })

  test('[TUN-U13] waits for the word of the other end after a close, but not without end', async () => {
    const peer = new RawPeer('server', [], { closeTimeoutMs: 30 })
    const channel = new StreamReader(await peer.dialled(1))
    channel.stream.close()
    await peer.quiet()
    expect(peer.sent.at(-1)).toMatchObject({ type: packetType.CLOSE_REQ, connectId: 1 })
    await channel.closed()
    expect(peer.link.channelCount).toBe(0)
  })

  test('[TUN-U13] takes no dial after its end, and says why', async () => {
    const peer = new RawPeer('server')
    const waiting = begin(peer, 'x:80')
    peer.events?.ended(new Error('cut'))
    await expect(waiting).rejects.toMatchObject({ reason: 'link-lost' })
    await expect(begin(peer, 'y:80')).rejects.toMatchObject({ reason: 'link-lost' })
  })
})
