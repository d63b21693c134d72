import { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { HeldChunks } from '../../core/index.ts'
import { type ControlPacket, packetType } from '../protocol/index.ts'
import { PeekStream } from '../server/reverse/peek-stream.ts'
import type { ByteStream, ByteStreamEvents } from './byte-stream.ts'
import { defaultLinkLimits, duplexOf, socketStream } from './index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { StreamReader } from './stream-reader.suite.ts'

const { controlBytes } = defaultLinkLimits
const times = 100_000

/** Every packet that makes a server send one, and every other; each connection id and dial is one that does not exist. */
const packets: Readonly<
  Record<keyof typeof packetType, (index: number) => ControlPacket | number>
> = {
  DIAL_REQ: (index) => ({
    type: packetType.DIAL_REQ,
    protocol: 'tcp',
    address: 'x:1',
    random: BigInt(index),
    dest: 1,
  }),
  DIAL_RSP: (index) => ({
    type: packetType.DIAL_RSP,
    error: '',
    connectId: index + 1,
    random: BigInt(index),
    dest: 0,
  }),
  CLOSE_REQ: (index) => ({ type: packetType.CLOSE_REQ, connectId: index + 1, dest: 0 }),
  CLOSE_RSP: (index) => ({ type: packetType.CLOSE_RSP, error: 'x', connectId: index, dest: 0 }),
  DATA: (index) => index + 1,
  DIAL_CLS: (index) => ({ type: packetType.DIAL_CLS, random: BigInt(index), dest: 1 }),
  DRAIN: () => ({ type: packetType.DRAIN, dest: 0 }),
  CREDIT: (index) => ({
    type: packetType.CREDIT,
    connectId: index + 1,
    bytes: Number.MAX_SAFE_INTEGER,
    dest: 0,
  }),
  FIN: (index) => ({ type: packetType.FIN, connectId: index + 1, dest: 0 }),
}

describe('an agent that sends packets and reads none', () => {
  test.each(Object.entries(packets))(
    `[SEC-R704] ${times} packets %s wait in bounded memory, or end the link`,
    (_name, packetAt) => {
      const peer = new RawPeer('server', ['rdial', 'credit', 'halfclose'])
      peer.backlog = Number.MAX_SAFE_INTEGER / 2
      let most = 0
      for (let index = 0; index < times && !peer.destroyedBy; index++) {
        const packet = packetAt(index)
        if (typeof packet === 'number') peer.sayData(packet, 'x')
        else peer.say(packet)
        for (const dial of peer.dials.splice(0)) dial.refuse('no')
        most = Math.max(most, peer.link.backlog - peer.backlog)
      }
      expect(most).toBeLessThan(controlBytes + 2_048)
      expect(peer.drains).toBeLessThanOrEqual(1)
      peer.link.close(new Error('enough'))
    },
  )

  test('[SEC-R704] credit beyond all numbers lets nothing overtake or get lost', async () => {
    const peer = new RawPeer('server', ['credit', 'halfclose'])
    const reader = new StreamReader(await peer.dialled(1))
    for (let index = 0; index < 5; index++)
      peer.say({ type: packetType.CREDIT, connectId: 1, bytes: Number.MAX_SAFE_INTEGER, dest: 0 })
    reader.stream.write(Buffer.alloc(3_000_000))
    for (let turn = 0; turn < 100; turn++) {
      await peer.quiet()
      peer.events?.progress()
    }
    const sent = peer.sent.reduce(
      (sum, each) => sum + ('bytes' in each && each.type === 4 ? each.bytes : 0),
      0,
    )
    expect(sent).toBe(3_000_000)
    peer.link.close()
  })
})

describe('an agent that goes on after its end', () => {
  const ends = { FIN: packetType.FIN, CLOSE_REQ: packetType.CLOSE_REQ } as const
  const capabilitySets = [[], ['credit'], ['halfclose'], ['credit', 'halfclose']] as const

  test.each(
    Object.entries(ends).flatMap(([name, type]) =>
      capabilitySets.map(
        (capabilities) =>
          [name, capabilities.join(' and ') || 'nothing', type, capabilities] as const,
      ),
    ),
  )(
    '[SEC-R708] with data behind %s (it can do %s) reaches no reader, and breaks no duplex',
    async (_name, _can, type, capabilities) => {
      const peer = new RawPeer('server', capabilities)
      const read: string[] = []
      const errors: Error[] = []
      const duplex = duplexOf(await peer.dialled(1))
      duplex.on('data', (chunk: Buffer) => read.push(chunk.toString()))
      duplex.on('error', (error) => errors.push(error))
      peer.sayData(1, 'before')
      await peer.quiet()
      for (let index = 0; index < 3; index++) {
        peer.say({ type, connectId: 1, dest: 0 })
        peer.sayData(1, 'behind')
        await peer.quiet()
      }
      expect(read).toEqual(['before'])
      expect(errors.map(({ message }) => message)).not.toContain('duplex.push() after EOF')
      peer.link.close()
    },
  )
})

describe('payload in single bytes', () => {
  test('[SEC-R705] waits in as many objects as long chunks would', () => {
    const held = new HeldChunks()
    for (let index = 0; index < 100_000; index++) held.push(Buffer.from([index % 256]))
    expect(held.pieces).toBe(7)
    const bytes = Buffer.concat(held.take())
    expect([bytes.length, bytes.every((byte, index) => byte === index % 256)]).toEqual([
      100_000,
      true,
    ])
  })

  test('[SEC-R705] keeps its order among long chunks, and no memory of what it was cut from', () => {
    const held = new HeldChunks()
    const large = Buffer.alloc(65_536, 'x')
    for (let index = 0; index < 100; index++) {
      held.push(large.subarray(index, index + 1))
      held.push(Buffer.alloc(5_000, String(index % 10)))
    }
    const chunks = held.take()
    expect(chunks.some(({ buffer }) => buffer === large.buffer)).toBe(false)
    expect(
      chunks.map((chunk) => `${chunk.length}${chunk.toString('latin1', 0, 1)}`).slice(0, 4),
    ).toEqual(['1x', '50000', '1x', '50001'])
  })

  /** A socket whose other end reads nothing. */
  class Stuck extends Duplex {
    writes = 0
    override _read(): void {}
    override _write(): void {}
    override write(...parts: never[]): boolean {
      this.writes++
      return (super.write as (...args: never[]) => boolean)(...parts)
    }
  }

  test('[SEC-R705] is written to a socket that does not read in few writes', () => {
    const socket = new Stuck()
    const stream = socketStream(socket)
    stream.start({ data() {}, finished() {}, drained() {}, closed() {} })
    const one = Buffer.from('x')
    for (let index = 0; index < 500_000; index++) stream.write(one)
    expect(stream.backlog).toBe(500_000)
    expect(socket.writes).toBeLessThan(17_000)
    socket.destroy()
  })

  /** A stream that is played by a test. */
  function played(): { readonly stream: ByteStream; readonly events: () => ByteStreamEvents } {
    let events: ByteStreamEvents | undefined
    const stream: ByteStream = {
      start: (given) => {
        events = given
      },
      write() {},
      backlog: 0,
      consumed() {},
      finish() {},
      close() {},
    }
    return {
      stream,
      events: () => {
        if (!events) throw new Error('not started')
        return events
      },
    }
  }

  test('[SEC-R705] reaches the reader of a duplex whole, late or not', async () => {
    const { stream, events } = played()
    const duplex = duplexOf(stream)
    const give = (from: number, to: number): void => {
      for (let index = from; index < to; index++) events().data(Buffer.from([index % 256]))
    }
    give(0, 50_000)
    const read: Buffer[] = []
    duplex.on('data', (chunk: Buffer) => read.push(chunk))
    await new Promise((resolve) => setImmediate(resolve))
    duplex.pause()
    give(50_000, 150_000)
    duplex.resume()
    await new Promise((resolve) => setImmediate(resolve))
    give(150_000, 200_000)
    events().finished()
    await new Promise((resolve) => duplex.once('end', resolve))
    const bytes = Buffer.concat(read)
    expect([bytes.length, bytes.every((byte, index) => byte === index % 256)]).toEqual([
      200_000,
      true,
    ])
    expect(read.length).toBeLessThan(100)
  })

  test('[SEC-R705] is looked at once for all that arrives together', async () => {
    const { stream, events } = played()
    const near = new PeekStream(stream)
    let looks = 0
    const peeking = near.peek(
      (bytes) => {
        looks++
        return bytes.length >= 20_000
      },
      { maxBytes: 32_768, timeoutMs: 10_000 },
    )
    for (let index = 0; index < 20_000; index++) events().data(Buffer.from('x'))
    expect([await peeking, looks]).toEqual(['enough', 1])
  })
})
