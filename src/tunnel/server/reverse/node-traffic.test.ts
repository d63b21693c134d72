import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../core/index.ts'
import { labAuthority, labMaterial } from '../../../http/tls-lab.suite.ts'
import { type Channel, join, socketStream } from '../../link/index.ts'
import { portOf } from '../../ports/listen.ts'
import { localIdentity } from '../agent-identity.ts'
import { FakeDial } from '../fake-agent.suite.ts'
import { NodeTraffic, type NodeTrafficParts } from './node-traffic.ts'

const identity = localIdentity('node')
const session = { agentId: 'agent', peer: 'node', identity }
const closing: (() => unknown)[] = []
let open = 0
beforeEach(() => {
  open = 0
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

function trafficOf(parts: Partial<NodeTrafficParts>): NodeTraffic {
  return new NodeTraffic({
    isOn: true,
    allowedDestinations: [],
    sniRoutes: [],
    carry: async (near, far) => {
      open++
      await join(near, far)
      open--
    },
    clock: systemClock,
    log: silentLogger,
    ...parts,
  })
}

async function serverOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  closing.push(() => server.close())
  await once(server, 'listening')
  return portOf(server)
}

/** Two ends of a connection: one as the channel of a dial, one for the test. */
async function channelPair(): Promise<{ near: Channel; client: Socket }> {
  const server = createServer({ allowHalfOpen: true })
  const port = await serverOf(server)
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [socket] = (await once(server, 'connection')) as [Socket]
  closing.push(() => client.destroy())
  client.on('error', () => {})
  return { near: Object.assign(socketStream(socket), { address: 'x' }), client }
}

async function tlsTarget(name: string): Promise<{ readonly port: number; readonly ca: string }> {
  const ca = await labAuthority(`CA of ${name}`)
  const { certPem, keyPem } = await labMaterial(ca, name)
  const server = createTlsServer({ cert: certPem, key: keyPem.reveal() }, (socket) => {
    socket.on('error', () => {})
    socket.end(name)
  })
  return { port: await serverOf(server), ca: ca.bundlePem }
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

describe('a dial of an agent is refused at once', () => {
  test.each<[string, Partial<NodeTrafficParts>, string, string | undefined, string]>([
    [
      'without the gate',
      { isOn: false, allowedDestinations: ['a:1'] },
      'a:1',
      'tcp',
      'switched off',
    ],
    ['with an empty list', {}, 'a:1', 'tcp', 'destination "a:1" is not allowed'],
    ['to a place not listed', { allowedDestinations: ['a:1'] }, 'a:2', 'tcp', 'not allowed'],
    [
      'with another protocol',
      { allowedDestinations: ['a:1'] },
      'a:1',
      'udp',
      'unsupported protocol',
    ],
    [
      'with words that are no place',
      { allowedDestinations: ['a:1'] },
      'a:1\n',
      'tcp',
      'not allowed',
    ],
  ])('[TUN-R20, TUN-R21] %s', async (_name, parts, address, protocol, words) => {
    const dial = new FakeDial(address, { protocol: protocol ?? 'tcp' })
    trafficOf(parts).handle(dial, session)
    expect(await dial.refused).toContain(words)
  })

  test('[TUN-R6] with the reason why the target cannot be reached', async () => {
    const dial = new FakeDial('127.0.0.1:1')
    trafficOf({ allowedDestinations: ['127.0.0.1:1'] }).handle(dial, session)
    expect(await dial.refused).toBe('dial tcp 127.0.0.1:1: connection refused')
  })
})

test('[TUN-R6] an allowed target is connected, and bytes go both ways', async () => {
  const port = await serverOf(createServer((socket) => socket.pipe(socket)))
  const { near, client } = await channelPair()
  const address = `127.0.0.1:${port}`
  trafficOf({ allowedDestinations: [address] }).handle(
    new FakeDial(address, { channel: () => near }),
    session,
  )
  client.end('hello')
  expect(await textOf(client)).toBe('hello')
  await expect.poll(() => open).toBe(0)
})

test('a dial that its agent has given up leaves no connection', async () => {
  const target = createServer()
  const port = await serverOf(target)
  const address = `127.0.0.1:${port}`
  const accepted = once(target, 'connection') as Promise<[Socket]>
  trafficOf({ allowedDestinations: [address] }).handle(new FakeDial(address), session)
  const [socket] = await accepted
  await once(socket.resume(), 'close')
  expect(open).toBe(0)
})

test('[TUN-F19] an agent with many connections gives way to one with few', async () => {
  const port = await serverOf(createServer((socket) => socket.pipe(socket)))
  const address = `127.0.0.1:${port}`
  const traffic = trafficOf({ allowedDestinations: [address], maxConnections: 2 })
  async function dial(peer: string) {
    const { near, client } = await channelPair()
    const asked = new FakeDial(address, { channel: () => near })
    traffic.handle(asked, { agentId: 'any', peer, identity })
    return { client, asked }
  }
  const first = await dial('greedy')
  const second = await dial('greedy')
  await expect.poll(() => open).toBe(2)
  const third = await dial('greedy')
  expect(await third.asked.refused).toBe('too many connections of nodes are open')
  const cut = new Promise((resolve) => first.client.resume().once('close', resolve))
  const modest = await dial('modest')
  await cut
  modest.client.end('hello')
  expect(await textOf(modest.client)).toBe('hello')
  second.client.end('still here')
  expect(await textOf(second.client)).toBe('still here')
  await expect.poll(() => open).toBe(0)
})

describe('with routes by server name', () => {
  async function through(
    servername: string,
    routes: (first: number, second: number) => NodeTrafficParts['sniRoutes'],
  ): Promise<string> {
    const first = await tlsTarget('first')
    const second = await tlsTarget('second')
    const { near, client } = await channelPair()
    const address = `127.0.0.1:${first.port}`
    trafficOf({
      allowedDestinations: [address],
      sniRoutes: routes(first.port, second.port),
    }).handle(new FakeDial(address, { channel: () => near }), session)
    const tls: TLSSocket = connectTls({
      socket: client,
      servername,
      ca: [first.ca, second.ca],
      checkServerIdentity: () => undefined,
    })
    closing.push(() => tls.destroy())
    return textOf(tls)
  }

  const toSecond = (name: string) => (_first: number, second: number) => [
    { name, target: { host: '127.0.0.1', port: second } },
  ]

  test.each([
    ['the name of a route goes there', 'second.example', 'second.example', 'second'],
    ['a name in the domain of a route goes there', '*.example', 'second.example', 'second'],
    ['a name deeper in that domain does not', '*.example', 'a.second.example', 'first'],
    ['another name goes where the agent dialled', 'second.example', 'other.example', 'first'],
  ])(
    '[TUN-R17, TUN-R8] %s, and its TLS is untouched',
    async (_name, route, servername, reached) => {
      expect(await through(servername, toSecond(route))).toBe(reached)
    },
  )

  test('[TUN-R17] what is not TLS goes where the agent dialled', async () => {
    const port = await serverOf(createServer((socket) => socket.pipe(socket)))
    const { near, client } = await channelPair()
    const address = `127.0.0.1:${port}`
    trafficOf({
      allowedDestinations: [address],
      sniRoutes: [{ name: 'x', target: { host: '127.0.0.1', port: 1 } }],
    }).handle(new FakeDial(address, { channel: () => near }), session)
    client.end('GET / HTTP/1.1\r\n\r\n')
    expect(await textOf(client)).toBe('GET / HTTP/1.1\r\n\r\n')
  })

  test('[TUN-R17] a ClientHello without end is cut', async () => {
    const { near, client } = await channelPair()
    trafficOf({
      allowedDestinations: ['a:1'],
      sniRoutes: [{ name: 'x', target: { host: '127.0.0.1', port: 1 } }],
    }).handle(new FakeDial('a:1', { channel: () => near }), session)
    const record = Buffer.alloc(5 + 16_000, 0)
    Buffer.from([22, 3, 1, 16_000 >> 8, 16_000 & 255, 1, 0xff, 0xff, 0xff]).copy(record)
    const closed = new Promise((resolve) => client.once('close', resolve))
    for (let sent = 0; sent < 4; sent++) client.write(record)
    client.resume()
    await closed
    expect(open).toBe(0)
  })
})
