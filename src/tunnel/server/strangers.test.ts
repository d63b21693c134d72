import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import type { Link } from '../link/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'

let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(() => lab.close())

/** Connections that never say a word, all from one address. */
async function crowd(port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  // A few at a time: more than the kernel lets wait would never be accepted.
  while (sockets.length < count) {
    const some = Array.from({ length: 50 }, () => silentClient(port))
    sockets.push(...some)
    await Promise.all(some.map((socket) => once(socket, 'connect')))
  }
  return sockets
}

function silentClient(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  socket.on('error', () => {}).resume()
  lab.closeLater(() => socket.destroy())
  return socket
}

test('[TUN-F18] an agent connects past a thousand strangers who never finish their handshake', async () => {
  await lab.start()
  const strangers = await crowd(lab.server.ports.agents, 1_100)
  await lab.agent()
  await lab.until(() => strangers.filter((socket) => socket.closed).length > 100)
  expect(lab.server.load.agents).toBe(1)
})

test('[TUN-F18] health answers past hundreds who never finish their request', async () => {
  await lab.start()
  const { health } = lab.server.ports
  const strangers = await crowd(health, 300)
  const answer = await fetch(`http://127.0.0.1:${health}/healthz`)
  expect(answer.status).toBe(200)
  // Long before their time for a request is over.
  const closed = (): number => strangers.filter((socket) => socket.closed).length
  await expect.poll(closed, { timeout: 5_000 }).toBeGreaterThan(50)
})

async function startedLink(): Promise<Link> {
  const link = await lab.link()
  link.start({ dial: (dial) => dial.refuse('no'), drain: () => {} })
  return link
}

test('[TUN-F19] one agent cannot have very many connections: its oldest give way', async () => {
  const tls = {
    certFile: lab.path('server.crt'),
    keyFile: lab.path('server.key'),
    clientCaFile: lab.path('ca.crt'),
  }
  // The lab's clients are of the organization dev, and all of one name.
  const agents = { host: '127.0.0.1', port: 0, tls, keepaliveMs: 0, organization: 'dev' }
  await lab.start({ config: { agents } })
  const links = []
  for (let count = 0; count < 22; count++) links.push(await startedLink())
  await Promise.all(links.slice(0, 2).map((link) => link.ended))
  await lab.until(() => lab.server.load.agents === 20)
  expect(lab.server.load.agents).toBe(20)
})

test('[TUN-F18] the tokens of one connection are reviewed one after another', async () => {
  let open = 0
  let most = 0
  const view = new FakeClusterView()
  const review = async () => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setImmediate(resolve))
    open--
    return { apiVersion: '', kind: '', metadata: { name: '' }, status: { authenticated: false } }
  }
  await lab.start({ view: Object.assign(view, { review }) })
  const session = connectHttp2(`https://127.0.0.1:${lab.server.ports.agents}`, {
    ca: lab.ca.bundlePem,
  })
  lab.closeLater(() => session.destroy())
  const answers = Array.from({ length: 8 }, async () => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/AgentService/Connect',
      'content-type': 'application/grpc',
      te: 'trailers',
      agentid: 'a',
      authorization: 'Bearer wrong',
    })
    stream.on('error', () => {})
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    return headers['grpc-status']
  })
  expect(await Promise.all(answers)).toEqual(Array.from({ length: 8 }, () => '2'))
  expect(most).toBe(1)
})
