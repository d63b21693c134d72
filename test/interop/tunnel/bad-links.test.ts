import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BadRelay, fairWeather } from '../../support/bad-relay.ts'
import { eventually } from '../../support/eventually.ts'
import { type TcpTarget, tcpTarget } from '../../support/tcp-target.ts'
import { type TunnelAgent, TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const bytes = randomBytes(16 << 20)
const whole = bytes.length
const hashOf = (part: Buffer): string => createHash('sha256').update(part).digest('hex')

/** Sends all of `bytes` once it is spoken to and, at the same time, hashes what it gets. */
function hashingTarget(received: (hash: string, length: number) => void): Promise<TcpTarget> {
  return tcpTarget((socket) => {
    const hash = createHash('sha256')
    let length = 0
    socket.on('data', (part: Buffer) => {
      hash.update(part)
      length += part.length
      if (length === whole) received(hash.digest('hex'), length)
    })
    socket.once('data', () => socket.write(bytes))
  })
}

/** Reads until nothing comes any more, or all has come. */
async function readAll(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  socket.on('data', (part: Buffer) => {
    parts.push(part)
    length += part.length
    if (length >= whole) socket.emit('whole')
  })
  await Promise.race([once(socket, 'whole'), once(socket, 'close'), once(socket, 'end')])
  return Buffer.concat(parts)
}

describe.skipIf(!tunnelPeersAreHere).each(pairs)('$name, over a bad link', (pair) => {
  let lab: TunnelLab
  let server: TunnelServer
  let agent: TunnelAgent
  let relay: BadRelay
  let target: TcpTarget
  let sent: string[]

  beforeEach(async () => {
    lab = await TunnelLab.open()
    server = await lab.server({ maker: pair.server, mode: 'http-connect' })
    relay = await BadRelay.start(server.place.agentPort)
    agent = await lab.agent({ maker: pair.agent, port: relay.port })
    sent = []
    target = await hashingTarget((hash) => sent.push(hash))
    await lab.ready(server)
  })

  afterEach(async () => {
    await Promise.all([target.close(), relay.close()])
    await lab.close()
  })

  const bothWays = async (): Promise<string> => {
    const socket = await server.dial(target.address)
    socket.write(bytes)
    const got = await readAll(socket)
    return hashOf(got)
  }

  test('delay, jitter and losses change no byte, in either direction [TUN-I11]', async () => {
    relay.weather = { delayMs: 8, lossRate: 0.01, retransmitMs: 60 }
    const got = await Promise.all([bothWays(), bothWays(), bothWays()])
    expect(new Set(got)).toEqual(new Set([hashOf(bytes)]))
    await eventually('all has arrived', () => sent.length === 3)
    expect(new Set(sent)).toEqual(new Set([hashOf(bytes)]))
  })

  test('a cut ends what was open with a true beginning of the bytes, and new connections work [TUN-I11]', async () => {
    relay.weather = { ...fairWeather, delayMs: 20 }
    const socket = await server.dial(target.address)
    socket.write('x')
    const reading = readAll(socket)
    await once(socket, 'data')
    relay.cut()
    const got = await reading
    expect(got.length).toBeLessThan(whole)
    expect(got.equals(bytes.subarray(0, got.length))).toBe(true)
    relay.weather = fairWeather
    await eventually('connected again', () => relay.connections === 1)
    expect(await eventually('a transfer after the cut', bothWays)).toBe(hashOf(bytes))
    expect(agent.program.isGone).toBe(false)
  })
})
