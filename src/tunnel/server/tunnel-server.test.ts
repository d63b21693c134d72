import { createHash, randomBytes } from 'node:crypto'
import { once, setMaxListeners } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Logger, silentLogger, systemClock } from '../../core/index.ts'
import { labAuthority, labClient } from '../../http/tls-lab.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { duplexOf, type Link } from '../link/index.ts'
import { linkPair } from '../link/link-pair.suite.ts'
import { portOf } from '../ports/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'
import { createTunnelServer } from './tunnel-server.ts'

const signal = new AbortController().signal
setMaxListeners(0, signal)
const dialOptions = { signal, deadlineMs: 5_000 }
const established = 'HTTP/1.1 200 Connection Established\r\n\r\n'
/** Goes on to the socket, though the types of TLS do not know it. */
const halfOpen: object = { allowHalfOpen: true }
const idle = { agents: 0, pendingDials: 0, connections: 0, frontEndClients: 0 }

let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(async () => {
  await lab.close()
})

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

async function echoOverGrpc(link: Link, address: string, text: string): Promise<string> {
  const stream = duplexOf(await link.dial(address, dialOptions))
  stream.write(text)
  const [chunk] = (await once(stream, 'data')) as [Buffer]
  // Konnectivity's protocol ends both directions at once, so only after the answer.
  stream.end()
  await once(stream.resume(), 'close')
  return chunk.toString()
}

async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

describe('[TUN-U1] through agent and server to a target and back', () => {
  test('[TUN-W21] gRPC on a unix socket', async () => {
    await lab.start()
    await lab.agent()
    const address = await lab.target()
    expect(await echoOverGrpc(await lab.frontEndLink(), address, 'hello')).toBe('hello')
    expect((await stat(lab.socketPath)).mode & 0o777).toBe(0o770)
    const page = await lab.metrics()
    expect(page).toContain('grpc_connections{service_method="Connect"} 1\n')
    expect(page).toContain('dial_duration_seconds_count 1\n')
    expect(page).toContain('stream_packets_total{segment="from_client",packet_type="DIAL_REQ"} 1\n')
    expect(page).toContain('stream_packets_total{segment="to_agent",packet_type="DIAL_REQ"} 1\n')
    expect(page).toContain('stream_packets_total{segment="from_agent",packet_type="DIAL_RSP"} 1\n')
  })

  test('[TUN-W21] gRPC with the path of the socket as authority, as kube-apiserver has it', async () => {
    await lab.start()
    const session = connectHttp2('http://localhost', {
      createConnection: () => connect(lab.socketPath),
    })
    lab.closeLater(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/ProxyService/Proxy',
      ':authority': encodeURIComponent(lab.socketPath),
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect([headers[':status'], headers['grpc-status']]).toEqual([200, undefined])
  })

  test('[TUN-W21] gRPC with TLS', async () => {
    await lab.start({ tcp: true })
    await lab.agent()
    const { cert, key } = await labClient(lab.ca, 'kube-apiserver')
    const link = await lab.frontEndLink({ ca: lab.ca.bundlePem, cert, key })
    expect(await echoOverGrpc(link, await lab.target(), 'hello')).toBe('hello')
  })

  test('[TUN-W22] CONNECT on a unix socket', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    client.end('hello')
    expect(await textOf(client)).toBe('hello')
    expect((await stat(lab.socketPath)).mode & 0o777).toBe(0o770)
  })

  test('[TUN-W22] CONNECT with TLS', async () => {
    await lab.start({ mode: 'http-connect', tcp: true })
    await lab.agent()
    const address = await lab.target()
    const { cert, key } = await labClient(lab.ca, 'kube-apiserver')
    const port = lab.server.ports.frontEnd
    const client = connectTls({
      port,
      host: '127.0.0.1',
      ca: lab.ca.bundlePem,
      cert,
      key,
      ...halfOpen,
    })
    await once(client, 'secureConnect')
    client.write(`CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
    expect(await nextText(client)).toBe(established)
    // The end of our direction leaves the other one open, through TLS as well.
    client.end('hello')
    expect(await textOf(client)).toBe('hello')
  })

  test('with an agent that offers a protocol of its own before h2', async () => {
    await lab.start()
    const { cert, key } = await labClient(lab.ca, 'agent')
    await lab.agent({}, { tls: { ca: lab.ca.bundlePem, cert, key, alpn: ['proto1'] } })
    expect(await echoOverGrpc(await lab.frontEndLink(), await lab.target(), 'hello')).toBe('hello')
  })

  test('inside the same process', async () => {
    await lab.start({ config: { strategies: ['least-loaded'] } })
    await lab.agent()
    const [host = '', port] = (await lab.target()).split(':')
    const stream = await lab.server.dialer.dial({ host, port: Number(port) }, signal)
    stream.end('hello')
    expect(await textOf(stream)).toBe('hello')
  })
})

test('much goes both ways at once, whole and in order', async () => {
  await lab.start({ mode: 'http-connect' })
  await lab.agent()
  const sent = randomBytes(8 * 1024 * 1024)
  const client = await lab.connectClient(await lab.target())
  expect(await nextText(client)).toBe(established)
  client.end(sent)
  const hash = createHash('sha256')
  for await (const chunk of client) hash.update(chunk as Buffer)
  expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'))
})

describe('[TUN-P12] what was sent before a close arrives', () => {
  const size = 4 * 1024 * 1024

  /** A target that counts what it gets, to its end. */
  async function countingTarget(): Promise<{ address: string; count: Promise<number> }> {
    let done: (count: number) => void = () => {}
    const count = new Promise<number>((resolve) => {
      done = resolve
    })
    const address = await lab.target((socket) => {
      let got = 0
      socket.on('data', (chunk) => {
        got += chunk.length
      })
      socket.on('end', () => {
        socket.end()
        done(got)
      })
    })
    return { address, count }
  }

  test('at the target, from a CONNECT client that ends', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const { address, count } = await countingTarget()
    const client = await lab.connectClient(address)
    await nextText(client)
    client.end(Buffer.alloc(size))
    expect(await count).toBe(size)
  })

  test('at the target, from a gRPC client that closes', async () => {
    await lab.start()
    await lab.agent()
    const { address, count } = await countingTarget()
    const link = await lab.frontEndLink()
    duplexOf(await link.dial(address, dialOptions)).end(Buffer.alloc(size))
    expect(await count).toBe(size)
  })

  test('at a CONNECT client, from a target that ends', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const client = await lab.connectClient(
      await lab.target((socket) => socket.resume().end(Buffer.alloc(size))),
    )
    let got = 0
    for await (const chunk of client) got += (chunk as Buffer).length
    expect(got).toBe(established.length + size)
  })

  test('at a gRPC client, from a target that ends', async () => {
    await lab.start()
    await lab.agent()
    const address = await lab.target((socket) => socket.resume().end(Buffer.alloc(size)))
    const stream = duplexOf(await (await lab.frontEndLink()).dial(address, dialOptions))
    let got = 0
    for await (const chunk of stream) got += (chunk as Buffer).length
    expect(got).toBe(size)
  })
})

describe('[TUN-U2] a dial that fails', () => {
  test('[TUN-W8] without an agent, over gRPC', async () => {
    await lab.start()
    const link = await lab.frontEndLink()
    await expect(link.dial('127.0.0.1:1', dialOptions)).rejects.toMatchObject({
      reason: 'refused-by-peer',
      text: 'No agent available',
    })
    expect(await lab.metrics()).toContain('dial_failure_count{reason="no_agent"} 1\n')
  })

  test('at the target, over gRPC', async () => {
    await lab.start()
    await lab.agent()
    const link = await lab.frontEndLink()
    await expect(link.dial('127.0.0.1:1', dialOptions)).rejects.toThrow('ECONNREFUSED')
    expect(await lab.metrics()).toContain('dial_failure_count{reason="error_response"} 1\n')
  })

  test('[TUN-W24] at the target, over CONNECT', async () => {
    await lab.start({ mode: 'http-connect' })
    await lab.agent()
    const text = await textOf(await lab.connectClient('127.0.0.1:1'))
    expect(text).toMatch(/^HTTP\/1.1 502 .*ECONNREFUSED/s)
  })
})

describe('[TUN-U4] a dial that is cancelled', () => {
  test('leaves nothing behind', async () => {
    await lab.start()
    const agent = await lab.agent({}, { isSilent: true })
    const link = await lab.frontEndLink()
    const client = new AbortController()
    const dialling = link.dial('127.0.0.1:1', { signal: client.signal, deadlineMs: 5_000 })
    await lab.until(() => agent.pendingDialCount === 0 && lab.server.load.pendingDials === 1)
    client.abort()
    await expect(dialling).rejects.toMatchObject({ reason: 'cancelled' })
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
  })

  test('fifty times at once leaves nothing behind', async () => {
    await lab.start()
    await lab.agent({}, { isSilent: true })
    const links = await Promise.all(Array.from({ length: 50 }, () => lab.frontEndLink()))
    const client = new AbortController()
    setMaxListeners(0, client.signal)
    const dials = links.map((link) =>
      link.dial('127.0.0.1:1', { signal: client.signal, deadlineMs: 5_000 }),
    )
    await lab.until(() => lab.server.load.pendingDials === 50)
    client.abort()
    await Promise.allSettled(dials)
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 50\n')
  })

  test('[TUN-U3] also when its front end just goes away', async () => {
    await lab.start()
    await lab.agent({}, { isSilent: true })
    const link = await lab.frontEndLink()
    const dialling = link.dial('127.0.0.1:1', dialOptions)
    dialling.catch(() => {})
    await lab.until(() => lab.server.load.pendingDials === 1)
    link.close()
    await lab.until(() => lab.server.load.pendingDials === 0)
    expect(await lab.metrics()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
  })
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
    expect(await textOf(await sent(address))).toBe('x')
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

async function sent(address: string) {
  const stream = await lab.server.dialer.dial(placeOf(address), signal)
  stream.end('x')
  return stream
}

function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [host = '', port] = address.split(':')
  return { host, port: Number(port) }
}

test('[TUN-F8] the admin port has metrics too, and profiles only when they are switched on', async () => {
  await lab.start({ config: { admin: { host: '127.0.0.1', port: 0, isProfiling: false } } })
  const at = (path: string) => fetch(`http://127.0.0.1:${lab.server.ports.admin}${path}`)
  expect(await (await at('/metrics')).text()).toContain('server_ready_backend_connections 0\n')
  expect((await at('/debug/pprof/')).status).toBe(404)
})

describe('who may connect as an agent', () => {
  test('[TUN-W4, TUN-W6] is told the server’s ID, the count and what it can do', async () => {
    await lab.start({
      config: { nodeTraffic: { isOn: true, allowedDestinations: [], sniRoutes: [] } },
    })
    const agent = await lab.agent()
    expect(agent.metadata['serverid']).toEqual(['server-1'])
    expect(agent.metadata['servercount']).toEqual(['3'])
    expect([...agent.capabilities]).toEqual(['rdial', 'credit', 'halfclose'])
  })

  test('[TUN-R21, TUN-W5] with the gate off no dial of an agent is on offer', async () => {
    await lab.start()
    const agent = await lab.agent()
    expect([...agent.capabilities]).toEqual(['credit', 'halfclose'])
  })

  test.each<[string, Record<string, string>]>([
    ['no agent ID', { agentid: '' }],
    ['identifiers that cannot be read', { agentidentifiers: 'host=%zz' }],
  ])('[TUN-W4, TUN-U11] nobody with %s', async (_name, metadata) => {
    await lab.start()
    await expect(lab.link(metadata)).rejects.toMatchObject({ grpcStatus: 2 })
  })

  test.each<[string, Record<string, string[]>]>([
    ['two agent IDs', { agentid: ['a', 'b'] }],
    ['two sets of identifiers', { agentid: ['a'], agentidentifiers: ['host=a', 'host=b'] }],
  ])('[TUN-W4] nobody with %s', async (_name, metadata) => {
    await lab.start()
    expect(await rawStatus(metadata)).toBe('2')
    expect(lab.server.load.agents).toBe(0)
  })

  /** The gRPC status that a client gets which writes its own headers. */
  async function rawStatus(metadata: Record<string, string[]>): Promise<string | undefined> {
    const { cert, key } = await labClient(lab.ca, 'agent')
    const session = connectHttp2(`https://127.0.0.1:${lab.server.ports.agents}`, {
      ca: lab.ca.bundlePem,
      cert,
      key,
    })
    lab.closeLater(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/AgentService/Connect',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...metadata,
    })
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    return headers['grpc-status']
  }

  test.each(['none', 'another CA'] as const)(
    '[TUN-F11] nobody with a certificate of %s',
    async (which) => {
      await lab.start()
      const other = await labAuthority('other CA')
      const shown = which === 'none' ? {} : await labClient(other, 'agent')
      const opening = lab.link({}, { tls: { ca: lab.ca.bundlePem, ...shown } })
      await expect(opening).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
    },
  )

  test('nobody of another organization, where one is asked for', async () => {
    const tls = {
      certFile: lab.path('server.crt'),
      keyFile: lab.path('server.key'),
      clientCaFile: lab.path('ca.crt'),
    }
    const local = { host: '127.0.0.1', port: 0, tls, keepaliveMs: 0 }
    await lab.start({ config: { agents: { ...local, organization: 'system:nodes' } } })
    // The lab's clients are of the organization dev.
    await expect(lab.link()).rejects.toMatchObject({ grpcStatus: 2 })
    await lab.server.stop(signal)
    await lab.start({ config: { agents: { ...local, organization: 'dev' } } })
    await lab.agent()
    expect(lab.server.load.agents).toBe(1)
  })

  test('[TUN-F11, TUN-F12] by token: the right account and no other', async () => {
    const view = new FakeClusterView({
      review: (_kind, object) => {
        const { token } = object['spec'] as { token: string }
        const username = `system:serviceaccount:ns:${token}`
        return {
          ...object,
          status: { authenticated: true, user: { username }, audiences: ['aud'] },
        }
      },
    })
    await lab.start({ view })
    const tls = { ca: lab.ca.bundlePem }
    await lab.agent({ authorization: 'Bearer sa' }, { tls })
    for (const metadata of [{}, { authorization: 'Bearer other' }, { authorization: 'sa' }]) {
      await expect(lab.link(metadata, { tls })).rejects.toMatchObject({
        grpcStatus: 2,
        message: expect.stringContaining('the agent could not be authenticated'),
      })
    }
    expect(lab.server.load.agents).toBe(1)
  })

  test('[TUN-F21] by token, for as long as that is good', async () => {
    const revoked = new Set<string>()
    const user = { username: 'system:serviceaccount:ns:sa' }
    const view = new FakeClusterView({
      review: (_kind, object) => {
        const { token } = object['spec'] as { token: string }
        const authenticated = !revoked.has(token)
        return { ...object, status: { authenticated, user, audiences: ['aud'] } }
      },
    })
    await lab.start({ view, reviewEveryMs: 50 })
    const tls = { ca: lab.ca.bundlePem }
    const lost = await lab.agent({ authorization: 'Bearer first' }, { tls })
    const kept = await lab.agent({ authorization: 'Bearer second' }, { tls })
    revoked.add('first')
    await lost.ended
    await lab.until(() => lab.server.load.agents === 1)
    const channel = await kept.dial('nowhere:1', { signal, deadlineMs: 5_000 }).catch(String)
    // It is refused, but it is answered: the other agent is still there.
    expect(channel).toContain('nowhere:1')
  })
})

test('[TUN-F11] an agent whose certificate TLS refuses is told in the log, and a knock without a word is not', async () => {
  const said: object[] = []
  const log: Logger = { ...silentLogger, warn: (fields) => void said.push(fields) }
  await lab.start({ log: { ...log, child: () => log } })
  const knock = connect(lab.server.ports.agents, '127.0.0.1')
  await once(knock, 'connect')
  knock.destroy()
  const foreign = await labClient(await labAuthority('other CA'), 'agent')
  const opening = lab.link({}, { tls: { ca: lab.ca.bundlePem, ...foreign } })
  await expect(opening).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
  await lab.until(() => said.length > 0)
  expect(said).toEqual([
    { from: '127.0.0.1', why: expect.stringContaining('a certificate that is not trusted here') },
  ])
})

describe('who may connect to the front end', () => {
  test.each(['grpc', 'http-connect'] as const)(
    'nobody without a client certificate (%s)',
    async (mode) => {
      await lab.start({ mode, tcp: true })
      const port = lab.server.ports.frontEnd
      const client = connectTls({ port, host: '127.0.0.1', ca: lab.ca.bundlePem })
      client.on('error', () => {})
      const closed = new Promise((resolve) => client.once('close', resolve))
      client.resume()
      client.write('CONNECT a:1 HTTP/1.1\r\n\r\n')
      await closed
      expect(lab.server.load.frontEndClients).toBe(0)
    },
  )
})

describe('[TUN-F13] certificates follow their files', () => {
  function recorded(): { readonly log: Logger; readonly said: string[] } {
    const said: string[] = []
    const note = (_fields: object, message: string): void => {
      said.push(message)
    }
    const log: Logger = {
      error: note,
      warn: note,
      info: note,
      debug: note,
      trace: note,
      child: () => log,
    }
    return { log, said }
  }

  const seenSerial = async (): Promise<string> => {
    const { cert, key } = await labClient(lab.ca, 'agent')
    const port = lab.server.ports.agents
    const client = connectTls({
      port,
      host: '127.0.0.1',
      cert,
      key,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2'],
    })
    client.on('error', () => {})
    await once(client, 'secureConnect')
    const { serialNumber } = client.getPeerCertificate()
    client.destroy()
    return serialNumber
  }

  test('a new certificate is shown to new connections, and open ones stay', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    const agent = await lab.agent()
    const before = await seenSerial()
    await lab.writeServing()
    await lab.until(() => said.includes('serving certificate replaced'))
    expect(await seenSerial()).not.toBe(before)
    expect(await textOf(await sent(await lab.target()))).toBe('x')
    expect(agent.channelCount).toBe(0)
  })

  test('a broken one is reported, and the old one stays', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    const before = await seenSerial()
    await writeFile(lab.path('server.crt'), 'no certificate')
    await lab.until(() => said.some((line) => line.includes('the old one stays')))
    expect(await seenSerial()).toBe(before)
  })

  test('a new CA counts for new agents; a broken one does not', async () => {
    const { log, said } = recorded()
    await lab.start({ log })
    await writeFile(lab.path('ca.crt'), 'no CA')
    await lab.until(() => said.some((line) => line.includes('CA of clients is unfit')))
    await lab.agent()
    const other = await labAuthority('other CA')
    await writeFile(lab.path('ca.crt'), other.bundlePem)
    await lab.until(() => said.includes('CA of clients replaced') && lab.server.load.agents === 0)
    const tls = { ca: lab.ca.bundlePem, ...(await labClient(other, 'agent')) }
    await lab.agent({}, { tls })
    await expect(lab.link()).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
    expect(lab.server.load.agents).toBe(1)
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

describe('the end', () => {
  test('[TUN-F15, TUN-P10] open connections may go on until the deadline', async () => {
    await lab.start({ mode: 'http-connect', config: { drainMs: 60_000 } })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const stopping = lab.server.stop(new AbortController().signal)
    await lab.until(() => lab.server.ports.frontEnd === 0)
    const ready = await fetch(`http://127.0.0.1:${lab.server.ports.health}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([500, 'the server is shutting down'])
    client.write('still here')
    expect(await nextText(client)).toBe('still here')
    client.end()
    await stopping
    await expect(stat(lab.socketPath)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('[TUN-F15] the deadline cuts what is left', async () => {
    await lab.start({ mode: 'http-connect', config: { drainMs: 30 } })
    await lab.agent()
    const client = await lab.connectClient(await lab.target())
    expect(await nextText(client)).toBe(established)
    const closed = new Promise((resolve) => client.once('close', resolve))
    client.resume()
    await lab.server.stop(new AbortController().signal)
    client.end()
    await closed
  })

  test.each(['grpc', 'http-connect'] as const)(
    '[TUN-U1] leaves no socket, server or watcher behind (%s)',
    async (mode) => {
      const held = (): string[] =>
        process
          .getActiveResourcesInfo()
          .filter((name) => /Wrap|Event/.test(name))
          .toSorted((a, b) => a.localeCompare(b))
      const before = held()
      const other = await openTunnelLab()
      await other.start({ mode })
      const agent = await other.agent()
      const target = await other.target()
      if (mode === 'grpc') await echoOverGrpc(await other.frontEndLink(), target, 'x')
      else {
        const client = await other.connectClient(target)
        await nextText(client)
        client.end()
      }
      expect(held().length).toBeGreaterThan(before.length)
      await other.until(() => agent.channelCount === 0 && other.server.load.connections === 0)
      await other.close()
      await lab.until(() => held().length <= before.length)
      expect(held()).toEqual(before)
    },
  )

  test('a second stop is fine', async () => {
    await lab.start()
    await lab.server.stop(signal)
    await lab.server.stop(signal)
    expect(lab.server.load).toEqual(idle)
  })
})

describe('what cannot be opened is explained', () => {
  test('a port in use', async () => {
    await lab.start()
    const other = await openTunnelLab()
    const health = { host: '127.0.0.1', port: lab.server.ports.agents }
    await expect(other.start({ config: { health } })).rejects.toThrow('the port is in use')
    await other.close()
  })

  test('a file in the place of the socket is not removed', async () => {
    await writeFile(lab.socketPath, 'precious')
    await expect(lab.start()).rejects.toMatchObject({ code: 'SOCKET_PATH_TAKEN' })
    expect((await stat(lab.socketPath)).isFile()).toBe(true)
  })

  test('[TUN-W21] a socket that was left behind is', async () => {
    await lab.start()
    const { path, replace } = { path: lab.socketPath, replace: true }
    await lab.server.stop(signal)
    const stale = createServer().listen(path)
    await once(stale, 'listening')
    lab.closeLater(() => stale.close())
    await lab.start({
      config: { frontEnd: { mode: 'grpc', place: { path, replace }, keepaliveMs: 0 } },
    })
    expect((await stat(path)).isSocket()).toBe(true)
  })

  test('a certificate that is missing', async () => {
    const missing = { certFile: lab.path('none.crt'), keyFile: lab.path('server.key') }
    const agents = {
      host: '127.0.0.1',
      port: 0,
      tls: { ...missing, clientCaFile: lab.path('ca.crt') },
      keepaliveMs: 0,
    }
    await expect(lab.start({ config: { agents } })).rejects.toThrow('none.crt')
  })
})

test('a client that speaks something else to the agent port is cut', async () => {
  await lab.start()
  const client = connect(lab.server.ports.agents, '127.0.0.1')
  client.on('error', () => {})
  const closed = new Promise((resolve) => client.once('close', resolve))
  client.write('GET / HTTP/1.1\r\n\r\n')
  client.resume()
  await closed
  expect(lab.server.load).toEqual(idle)
})
