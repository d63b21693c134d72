import { once, setMaxListeners } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { duplexOf } from '../link/index.ts'
import { linkPair } from '../link/link-pair.suite.ts'
import { portOf } from '../ports/listen.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'
import { createTunnelServer } from './tunnel-server.ts'
import { nextText, placeOf, sent, textOf } from './tunnel-talk.suite.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)
const dialOptions = { signal, deadlineMs: 5_000 }
const established = 'HTTP/1.1 200 Connection Established\r\n\r\n'
const idle = { agents: 0, pendingDials: 0, connections: 0, frontEndClients: 0 }
let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(async () => {
  await lab.close()
})

describe('agents come and go', () => {
  test.each(['grpc', 'http-connect'] as const)(
    '[TUN-U7, TUN-P6] a second session of the same agent ID does not disturb the first (%s)',
    async (mode) => {
      await lab.start({ mode })
      const first = await lab.agent({ agentid: 'same' })
      const address = await lab.target()
      const stream = await lab.server.dialer.dial(placeOf(address), signal)
      stream.write('a')
      expect(String((await once(stream, 'data'))[0])).toBe('a')
      const second = await lab.agent({ agentid: 'same' })
      stream.write('b')
      expect(String((await once(stream, 'data'))[0])).toBe('b')
      second.close()
      await lab.until(() => lab.server.load.agents === 1)
      stream.write('c')
      expect(String((await once(stream, 'data'))[0])).toBe('c')
      expect(first.channelCount).toBe(1)
      stream.end()
      await once(stream.resume(), 'close')
    },
  )

  test('[TUN-P4, TUN-I14] dials pending on an agent that dies go to another one', async () => {
    await lab.start({ config: { strategies: ['least-loaded'] } })
    const silent = await lab.agent({}, { isSilent: true })
    const address = await lab.target()
    const dials = Array.from({ length: 20 }, () => lab.server.dialer.dial(placeOf(address), signal))
    await lab.until(() => lab.server.load.pendingDials === 20)
    await lab.agent()
    silent.close(new Error('dies'))
    for (const stream of await Promise.all(dials)) {
      stream.end('x')
      expect(await textOf(stream)).toBe('x')
    }
  })

  test('[TUN-U7] an open connection ends at once when its agent dies', async () => {
    await lab.start({ mode: 'http-connect' })
    const agent = await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const closed = new Promise((resolve) => {
      client.once('end', resolve)
      client.once('close', resolve)
    })
    agent.close(new Error('dies'))
    client.resume()
    await closed
    client.end()
  })

  test('[TUN-P8] an agent that vanishes without a word is unregistered', async () => {
    const tls = {
      certFile: lab.path('server.crt'),
      keyFile: lab.path('server.key'),
      clientCaFile: lab.path('ca.crt'),
    }
    const agents = { host: '127.0.0.1', port: 0, tls, keepaliveMs: 50, keepaliveAnswerMs: 50 }
    await lab.start({ config: { agents } })
    const relayed: Socket[] = []
    const relay = createServer((near) => {
      const far = connect(lab.server.ports.agents, '127.0.0.1')
      relayed.push(near, far)
      for (const socket of [near, far]) socket.on('error', () => {})
      near.pipe(far).pipe(near)
    }).listen(0, '127.0.0.1')
    lab.closeLater(() => {
      relay.close()
      for (const socket of relayed) socket.destroy()
    })
    await once(relay, 'listening')
    await lab.agent({}, { port: portOf(relay) })
    expect(lab.server.load.agents).toBe(1)
    for (const socket of relayed) socket.unpipe().pause()
    await lab.until(() => lab.server.load.agents === 0)
    expect(lab.server.isReady).toBe(false)
  })

  test('[TUN-U9, TUN-W13] an agent that drains serves on while it is the only one', async () => {
    await lab.start({ config: { strategies: ['default'] } })
    const first = await lab.agent()
    first.sendDrain()
    const address = await lab.target()
    expect(await textOf(await sent(lab, address))).toBe('x')
    const second = await lab.agent()
    // The server knows of the first one's draining by now: a dial has gone through it since.
    for (let round = 0; round < 10; round++) {
      const stream = await lab.server.dialer.dial(placeOf(address), signal)
      expect([first.channelCount, second.channelCount]).toEqual([0, 1])
      stream.end('x')
      expect(await textOf(stream)).toBe('x')
      await lab.until(() => second.channelCount === 0)
    }
  })

  test('[TUN-U9, TUN-F6] readiness says whether there is one', async () => {
    await lab.start()
    const at = (path: string) => fetch(`http://127.0.0.1:${lab.server.ports.health}${path}`)
    const answer = async (path: string) => {
      const response = await at(path)
      return [response.status, await response.text()]
    }
    expect(await answer('/healthz')).toEqual([200, 'ok'])
    expect(await answer('/readyz')).toEqual([500, 'no connection to any proxy agent'])
    const agent = await lab.agent()
    expect(await answer('/readyz')).toEqual([200, 'ok'])
    expect(await answer('/ready')).toEqual([200, 'ok'])
    agent.close()
    await lab.until(() => lab.server.load.agents === 0)
    expect(await answer('/ready')).toEqual([500, 'no connection to any proxy agent'])
    expect((await at('/other')).status).toBe(404)
  })
})

describe('[TUN-R6] from nodes to the control plane', () => {
  test('[TUN-R9, TUN-R10] an agent dials what is allowed, while it is dialled itself', async () => {
    const api = await lab.target()
    const nodeTraffic = { isOn: true, allowedDestinations: [api], sniRoutes: [] }
    await lab.start({ mode: 'http-connect', config: { nodeTraffic } })
    const agent = await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const streams = await Promise.all(
      Array.from({ length: 10 }, async () => duplexOf(await agent.dial(api, dialOptions))),
    )
    for (const [index, stream] of streams.entries()) stream.end(`from node ${index}`)
    client.end('to node')
    expect(await textOf(client)).toBe('to node')
    const texts = await Promise.all(streams.map((stream) => textOf(stream)))
    expect(texts).toEqual(streams.map((_stream, index) => `from node ${index}`))
  })

  test('[TUN-R20] what is not allowed is refused at once', async () => {
    const nodeTraffic = { isOn: true, allowedDestinations: [], sniRoutes: [] }
    await lab.start({ config: { nodeTraffic } })
    const agent = await lab.agent()
    await expect(agent.dial('127.0.0.1:1', dialOptions)).rejects.toMatchObject({
      reason: 'refused-by-peer',
      text: 'destination "127.0.0.1:1" is not allowed',
    })
  })
})

test('a server inside another one takes links that came some other way, and opens no port', async () => {
  const pair = await linkPair()
  const server = createTunnelServer({
    config: {
      serverId: 'inside',
      serverCount: 1,
      strategies: ['default'],
      agentIdentityCheck: 'none',
      dialTimeoutMs: 5_000,
      nodeTraffic: { isOn: false, allowedDestinations: [], sniRoutes: [] },
      tlsMinVersion: 'TLSv1.2',
      drainMs: 0,
    },
    clock: systemClock,
    log: silentLogger,
  })
  await server.start()
  expect(server.listening).toEqual({})
  pair.acceptor.start({ dial: (dial) => dial.refuse(`no way to ${dial.address}`), drain: () => {} })
  const identifiers = { hosts: [], cidrs: [], isDefaultRoute: false }
  server.attachAgent(pair.dialer, { agentId: 'local', identifiers })
  expect(server.isReady).toBe(true)
  const dialling = server.dialer.dial({ host: 'fd00::1', port: 1 }, signal)
  await expect(dialling).rejects.toThrow('no way to [fd00::1]:1')
  await server.stop(signal)
  expect(server.load).toEqual(idle)
  await pair.close()
})
