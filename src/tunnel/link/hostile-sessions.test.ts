import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { type ControlPacket, encodeDataHead, encodePacket, packetType } from '../protocol/index.ts'
import { allCapabilities, connectLink, type Link, LinkServer, type LinkSide } from './index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { echo, StreamReader } from './stream-reader.suite.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const id = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.maxSafeNat())
const dest = fc.integer({ min: 0, max: 3 })
const random = fc.oneof(
  fc.bigInt({ min: 0n, max: 3n }),
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
)
const text = fc.string({ maxLength: 40 })

/** Any packet, in any order, for connections that exist and for others. */
const packetBytes = fc
  .oneof<fc.Arbitrary<ControlPacket>[]>(
    fc.record({
      type: fc.constant(packetType.DIAL_REQ),
      protocol: fc.constant('tcp'),
      address: text,
      random,
      dest,
    }),
    fc.record({
      type: fc.constant(packetType.DIAL_RSP),
      error: fc.oneof(fc.constant(''), text),
      connectId: id,
      random,
      dest,
    }),
    fc.record({ type: fc.constant(packetType.DIAL_CLS), random, dest }),
    fc.record({ type: fc.constant(packetType.CLOSE_REQ), connectId: id, dest }),
    fc.record({ type: fc.constant(packetType.CLOSE_RSP), error: text, connectId: id, dest }),
    fc.record({ type: fc.constant(packetType.DRAIN), dest }),
    fc.record({ type: fc.constant(packetType.CREDIT), bytes: fc.nat(), connectId: id, dest }),
    fc.record({ type: fc.constant(packetType.FIN), connectId: id, dest }),
  )
  .map((packet) => encodePacket(packet))

const dataBytes = fc
  .tuple(id, dest, fc.uint8Array({ maxLength: 2_000 }))
  .map(([connectId, to, payload]) =>
    Buffer.concat([encodeDataHead(connectId, to, payload.length), payload]),
  )

/** A stream of packets with some of its bytes changed, cut into pieces at any place. */
const hostileStream = fc
  .record({
    parts: fc.array(fc.oneof(packetBytes, dataBytes), { minLength: 1, maxLength: 30 }),
    changes: fc.array(fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.nat(255)), {
      maxLength: 3,
    }),
    piece: fc.integer({ min: 1, max: 500 }),
  })
  .map(({ parts, changes, piece }) => {
    const bytes = Buffer.concat(parts)
    for (const [at, value] of changes) bytes[Math.floor(at * bytes.length)] = value
    const pieces: Buffer[] = []
    for (let from = 0; from < bytes.length; from += piece)
      pieces.push(bytes.subarray(from, from + piece))
    return pieces
  })

describe('packets nobody would send', () => {
  test.each<LinkSide>(['server', 'agent', 'gateway', 'front-end'])(
    '[TUN-I15] leave the %s able to go on or end its link, and nothing behind',
    async (side) => {
      await fc.assert(
        fc.asyncProperty(hostileStream, async (pieces) => {
          const peer = new RawPeer(side, side === 'gateway' ? [] : ['rdial', 'credit'])
          const dialling = peer.link
            .dial('x:1', { signal: new AbortController().signal, deadlineMs: 60_000 })
            .then(echo, () => {})
          await peer.quiet()
          for (const piece of pieces) {
            peer.events?.data(piece)
            for (const dial of peer.dials.splice(0)) {
              const channel = dial.accept()
              if (channel) echo(channel)
            }
          }
          await peer.quiet()
          peer.link.close(new Error('enough'))
          await dialling
          expect(peer.link.channelCount).toBe(0)
          expect(peer.link.pendingDialCount).toBe(0)
        }),
        { numRuns: 300 },
      )
    },
    60_000,
  )
})

/** A service and agents of it that echo. */
async function lab() {
  const links: Link[] = []
  const service = new LinkServer({
    path: '/AgentService/Connect',
    capabilities: allCapabilities,
    log: silentLogger,
    authenticate: () => Promise.resolve({ metadata: {} }),
    onLink: (link) => {
      link.start({ dial: (dial) => dial.refuse('no'), drain: () => {} })
      links.push(link)
    },
  })
  const port = await listening(service.cleartextServer())
  closers.push(() => service.close())
  const agent = async (at: number): Promise<Link> => {
    const link = await connectLink({
      capabilities: allCapabilities,
      log: silentLogger,
      host: '127.0.0.1',
      port: at,
      tls: 'cleartext',
      path: '/AgentService/Connect',
      metadata: {},
      signal: AbortSignal.timeout(2_000),
    })
    closers.push(() => link.close())
    link.start({
      dial: (dial) => {
        const channel = dial.accept()
        if (channel) echo(channel)
      },
      drain: () => {},
    })
    return link
  }
  return { port, agent, links }
}

async function listening(server: net.Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

/** What a relay does to one direction of one connection: at this byte, write that one. */
type Damage = readonly { readonly at: number; readonly value: number }[]

async function relay(to: number, damage: { readonly up: Damage; readonly down: Damage }) {
  return listening(
    net.createServer((near) => {
      const far = net.connect(to, '127.0.0.1')
      const pass = (from: Socket, into: Socket, changes: Damage): void => {
        let passed = 0
        from.on('data', (chunk: Buffer) => {
          for (const { at, value } of changes)
            if (at >= passed && at < passed + chunk.length) chunk[at - passed] = value
          passed += chunk.length
          into.write(chunk)
        })
        from.on('error', () => {})
        from.on('close', () => into.destroy())
      }
      pass(near, far, damage.up)
      pass(far, near, damage.down)
    }),
  )
}

const roundTrip = async (link: Link, words: string): Promise<string> => {
  const channel = await link.dial('x:1', { signal: AbortSignal.timeout(1_000), deadlineMs: 1_000 })
  const reader = new StreamReader(channel)
  reader.stream.write(Buffer.from(words))
  await Promise.race([
    reader.until(({ text: read, isClosed }) => isClosed || read.length >= words.length),
    new Promise((resolve) => setTimeout(resolve, 1_000)),
  ])
  reader.stream.close()
  return reader.text
}

const damage = fc.array(fc.record({ at: fc.nat(700), value: fc.nat(255) }), { maxLength: 4 })

test('[TUN-I15] frames damaged on the way crash neither end and leave other sessions alone', async () => {
  const { port, agent, links } = await lab()
  await agent(port)
  const [whole] = links
  if (!whole) throw new Error('no agent')
  await fc.assert(
    fc.asyncProperty(damage, damage, async (up, down) => {
      const before = links.length
      const through = await relay(port, { up, down })
      const torn = await agent(through).catch(() => undefined)
      const session = links[before]
      if (torn && session) await roundTrip(session, 'through the damage').catch(() => '')
      torn?.close()
      expect(await roundTrip(whole, 'beside it')).toBe('beside it')
    }),
    { numRuns: 60 },
  )
}, 120_000)
