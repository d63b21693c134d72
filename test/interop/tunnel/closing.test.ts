import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type TcpTarget, tcpTarget } from '../../support/tcp-target.ts'
import { TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { type Pair, pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const bytes = randomBytes(8 << 20)
const hashOf = (part: Buffer): string => createHash('sha256').update(part).digest('hex')

async function readToEnd(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = []
  socket.on('data', (part: Buffer) => parts.push(part))
  await once(socket, 'end')
  return Buffer.concat(parts)
}

let lab: TunnelLab
let target: TcpTarget

beforeEach(async () => {
  lab = await TunnelLab.open()
})

afterEach(async () => {
  await target.close()
  await lab.close()
})

async function startTunnel(pair: Pair): Promise<TunnelServer> {
  const server = await lab.server({ maker: pair.server, mode: 'http-connect' })
  await lab.agent({ maker: pair.agent, port: server.place.agentPort })
  await lab.ready(server)
  return server
}

describe.skipIf(!tunnelPeersAreHere).each(pairs)('$name', (pair) => {
  test('all that a target has sent before its end arrives [TUN-R25, TUN-P12]', async () => {
    target = await tcpTarget((socket) => socket.once('data', () => socket.end(bytes)))
    const socket = await (await startTunnel(pair)).dial(target.address)
    socket.write('go')
    expect(hashOf(await readToEnd(socket))).toBe(hashOf(bytes))
  })
})

// Upstream's agent closes the target's connection before everything has been written to it.
const ourAgents = pairs.filter(({ agent }) => agent === 'ours')
describe.skipIf(!tunnelPeersAreHere).each(ourAgents)('$name', (pair) => {
  test('all that a client has sent before its end arrives [TUN-R25, TUN-P12]', async () => {
    target = await tcpTarget(() => {})
    const accepted = target.accepted().then(readToEnd)
    const socket = await (await startTunnel(pair)).dial(target.address)
    socket.end(bytes)
    expect(hashOf(await accepted)).toBe(hashOf(bytes))
  })
})

const bothOurs = ourAgents.filter(({ server }) => server === 'ours')
describe.skipIf(!tunnelPeersAreHere).each(bothOurs)('$name', (pair) => {
  test('a client that has said all still gets the answer [TUN-R25]', async () => {
    target = await tcpTarget((socket) => {
      void readToEnd(socket).then((question) => socket.end(hashOf(question)))
    })
    const socket = await (await startTunnel(pair)).dial(target.address)
    socket.end(bytes)
    expect(String(await readToEnd(socket))).toBe(hashOf(bytes))
  })
})
