import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { labClient } from '../../http/tls-lab.suite.ts'
import { packetType } from '../protocol/index.ts'
import { openTunnelLab, type TunnelLab } from '../server/tunnel-lab.suite.ts'
import { BufferBudgets } from './index.ts'
import { RawPeer } from './raw-peer.suite.ts'
import { StreamReader } from './stream-reader.suite.ts'

const maxBytes = 1024 * 1024
const chunk = Buffer.alloc(16 * 1024)

interface Stream {
  readonly peer: RawPeer
  readonly channel: StreamReader
}

/** One of the streams of a peer that reads nothing, with a connection that nobody reads. */
async function open(budgets: BufferBudgets, name: string): Promise<Stream> {
  const peer = new RawPeer('server', ['rdial', 'credit', 'halfclose'], {}, budgets.of(name))
  const channel = new StreamReader(await peer.dialled(1), { isReading: false })
  peer.backlog = Number.MAX_SAFE_INTEGER / 2
  return { peer, channel }
}

/** Speaks of connections that are not there; each is answered. */
function sayUnknown(peer: RawPeer): void {
  for (let id = 10; id < 310; id++) peer.say({ type: packetType.CLOSE_REQ, connectId: id, dest: 0 })
}

/** Every way to make a server hold bytes. */
const ways: Readonly<Record<string, (stream: Stream) => void | Promise<void>>> = {
  'data that nobody reads': ({ peer }) => peer.sayData(1, chunk),
  'data for a peer that does not read': ({ channel }) => channel.stream.write(chunk),
  'data of a connection that is being closed': ({ channel }) => {
    channel.stream.write(chunk)
    channel.stream.close()
  },
  'packets for a peer that does not read': ({ peer }) => sayUnknown(peer),
  'packets in the stream under a link': async ({ peer }) => {
    peer.backlog = 0
    peer.isStuck = true
    sayUnknown(peer)
    await peer.quiet()
  },
  'messages that are not whole': ({ peer }) => {
    const message = Buffer.alloc(chunk.length)
    message.writeUInt32BE(2 * chunk.length, 1)
    peer.events?.data(message)
  },
}

const heldBy = (streams: readonly Stream[]): number =>
  streams.reduce((sum, { peer }) => sum + peer.link.heldBytes, 0)

describe('the streams of one peer', () => {
  test.each(Object.entries(ways))('[SEC-R709] share one budget for %s', async (_name, fill) => {
    const budgets = new BufferBudgets(maxBytes)
    const streams: Stream[] = []
    let most = 0
    for (let index = 0; index < 200; index++) {
      const stream = await open(budgets, 'node-1')
      streams.push(stream)
      await fill(stream)
      most = Math.max(most, heldBy(streams))
    }
    expect(most).toBeGreaterThan(maxBytes / 2)
    expect(most).toBeLessThan(maxBytes + 2 * chunk.length)
    for (const { peer } of streams) peer.link.close(new Error('enough'))
    expect(heldBy(streams)).toBe(0)
  })

  test('[SEC-R709] take nothing from another peer, and lose the largest connection alone', async () => {
    const budgets = new BufferBudgets(maxBytes)
    const other = await open(budgets, 'node-2')
    const [small, large] = [await open(budgets, 'node-1'), await open(budgets, 'node-1')]
    for (let bytes = 0; bytes < maxBytes / 2; bytes += chunk.length) other.peer.sayData(1, chunk)
    small.peer.sayData(1, chunk)
    for (let bytes = 0; bytes < maxBytes; bytes += chunk.length) large.peer.sayData(1, chunk)
    await large.channel.closed()
    expect(large.channel.error?.message).toMatch(/too slow: 1048576 bytes/)
    expect(large.peer.destroyedBy).toBeUndefined()
    expect([small.channel.isClosed, other.channel.isClosed]).toEqual([false, false])
  })

  test('[SEC-R709] begin with an empty budget once the last one has ended', async () => {
    const budgets = new BufferBudgets(maxBytes)
    const first = await open(budgets, 'node-1')
    first.peer.sayData(1, chunk)
    const budget = budgets.of('node-1')
    first.peer.link.close(new Error('enough'))
    expect(budgets.of('node-1')).not.toBe(budget)
  })
})

describe('a tunnel server', () => {
  let lab: TunnelLab
  beforeEach(async () => {
    lab = await openTunnelLab()
  })
  afterEach(() => lab.close())

  /** An agent that sends at once to whoever dials `host` through it, and a client that does not read. */
  async function unread(node: string, host: string, bytes: number): Promise<Duplex> {
    const { cert, key } = await labClient(lab.ca, node)
    const before = lab.server.load.agents
    const metadata = { agentid: host, agentidentifiers: `host=${host}` }
    const link = await lab.link(metadata, { tls: { ca: lab.ca.bundlePem, cert, key } })
    link.start({
      dial: (dial) => {
        const channel = dial.accept()
        channel?.start({ data: () => {}, finished: () => {}, drained: () => {}, closed: () => {} })
        channel?.write(Buffer.alloc(bytes))
      },
      drain: () => {},
    })
    await lab.until(() => lab.server.load.agents > before)
    const stream = await lab.server.dialer.dial({ host, port: 1 }, new AbortController().signal)
    return stream.on('error', () => {})
  }

  test('[SEC-R709] counts the connections of one certificate together', async () => {
    const files = {
      certFile: lab.path('server.crt'),
      keyFile: lab.path('server.key'),
      clientCaFile: lab.path('ca.crt'),
    }
    await lab.start({
      config: {
        strategies: ['destHost'],
        limits: { peerBufferBytes: maxBytes },
        agents: { host: '127.0.0.1', port: 0, tls: files, organization: 'dev', keepaliveMs: 0 },
      },
    })
    const other = await unread('node-2', 'host-1', maxBytes * 0.75)
    const small = await unread('node-1', 'host-2', maxBytes * 0.5)
    const large = await unread('node-1', 'host-3', maxBytes * 0.75)
    await new Promise((resolve) => large.once('close', resolve))
    expect(large.errored?.message).toMatch(/too slow/)
    expect([small.destroyed, other.destroyed]).toEqual([false, false])
    small.destroy()
    other.destroy()
  })
})
