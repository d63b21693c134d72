import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import type { Authentication, CallRequest } from '../../grpc/index.ts'
import {
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../pki/index.ts'
import { encodePacket, packetType } from '../protocol/index.ts'
import {
  type ConnectLinkOptions,
  connectLink,
  type Link,
  LinkServer,
  type LinkServerOptions,
} from './index.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const events = { dial: () => {}, drain: () => {} }

async function listening(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: net.Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}

interface Setup extends Partial<LinkServerOptions> {
  readonly answer?: Authentication | Error
  readonly tls?: tls.TlsOptions
}

async function serve({
  answer = { metadata: { serverID: 's1', serverCount: '2' } },
  ...given
}: Setup = {}) {
  const requests: CallRequest[] = []
  const links: Link[] = []
  const service = new LinkServer({
    path: '/AgentService/Connect',
    capabilities: ['rdial', 'credit', 'halfclose'],
    log: silentLogger,
    authenticate: (request) => {
      requests.push(request)
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
    onLink: (link) => {
      links.push(link)
      link.start(events)
    },
    ...given,
  })
  const port = await listening(
    given.tls ? service.secureServer(given.tls) : service.cleartextServer(),
  )
  closers.push(() => service.close())
  return { port, requests, links, service }
}

function connectTo(port: number, given: Partial<ConnectLinkOptions> = {}): Promise<Link> {
  const connecting = connectLink({
    host: '127.0.0.1',
    port,
    tls: 'cleartext',
    metadata: { agentID: 'a1' },
    capabilities: ['rdial', 'credit', 'halfclose'],
    signal: new AbortController().signal,
    log: silentLogger,
    ...given,
  })
  closers.push(() => connecting.then((link) => link.close()).catch(() => {}))
  return connecting
}

/** One request by node's own client; the answer's headers and trailers in one. */
async function ask(port: number, headers: http2.OutgoingHttpHeaders) {
  const session = http2.connect(`http://127.0.0.1:${port}`)
  closers.push(() => session.destroy())
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': '/AgentService/Connect',
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    },
    { endStream: false },
  )
  stream.on('error', () => {})
  const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
  return { answer, stream, session }
}

test('[TUN-F18] who is not let in wins no time by asking again', async () => {
  const { port } = await serve({
    answer: { grpcStatus: 2, message: 'no' },
    handshakeTimeoutMs: 300,
  })
  const { session } = await ask(port, {})
  let asked = 1
  const again = setInterval(() => {
    if (session.closed || session.destroyed) return
    session.request({ ':path': '/AgentService/Connect' }).on('error', () => {})
    asked++
  }, 20)
  closers.push(() => clearInterval(again))
  await once(session, 'close')
  expect(asked).toBeGreaterThan(1)
})

describe('a request', () => {
  test.each([
    ['for an unknown service', { ':path': '/Other/Connect' }, 200, '12', 'unknown service Other'],
    [
      'for an unknown method',
      { ':path': '/AgentService/Other' },
      200,
      '12',
      'unknown method Other for service AgentService',
    ],
    [
      'for the other service',
      { ':path': '/ProxyService/Proxy' },
      200,
      '12',
      'unknown service ProxyService',
    ],
    [
      'with another content type',
      { 'content-type': 'application/json' },
      415,
      '13',
      'invalid gRPC request content-type "application/json"',
    ],
    [
      'by another method',
      { ':method': 'PUT' },
      405,
      '13',
      'Received a HEADERS frame with :method "PUT" which should be POST',
    ],
  ])(
    '[TUN-W3] %s is refused as grpc-go refuses it',
    async (_name, headers, http, status, message) => {
      const { port } = await serve()
      const { answer } = await ask(port, headers)
      expect(answer).toMatchObject({
        ':status': http,
        'grpc-status': status,
        'grpc-message': message,
      })
    },
  )

  test('[TUN-W6] is answered right after authentication, with its metadata and gRPC’s headers', async () => {
    const { port, requests } = await serve()
    const { answer } = await ask(port, { agentid: 'a', 'content-type': 'application/grpc+proto' })
    expect(answer).toMatchObject({
      ':status': 200,
      'content-type': 'application/grpc',
      serverid: 's1',
      servercount: '2',
    })
    expect(answer['x-knp-ext']).toBeUndefined()
    expect(requests[0]?.metadata).toMatchObject({ agentid: ['a'] })
  })

  test('[TUN-W4] keeps every value of a repeated header apart', async () => {
    const { port, requests } = await serve()
    await ask(port, { agentid: ['a', 'b, c'] })
    expect(requests[0]?.metadata['agentid']).toEqual(['a', 'b, c'])
  })

  test('[TUN-W3] whose peer half-closes gets trailers with status 0', async () => {
    const { port, links } = await serve()
    const { stream } = await ask(port, {})
    stream.end(encodePacket({ type: packetType.DRAIN, dest: 0 }))
    stream.resume()
    const [trailers] = await once(stream, 'trailers')
    expect(trailers).toMatchObject({ 'grpc-status': '0' })
    expect(await links[0]?.ended).toEqual({})
    expect(links[0]?.isDraining).toBe(true)
  })

  test('[TUN-W3] that breaks the protocol is ended with a status and a message', async () => {
    const { port, links } = await serve()
    const { stream } = await ask(port, {})
    stream.write(Buffer.from('0100000000', 'hex'))
    stream.resume()
    const [trailers] = await once(stream, 'trailers')
    expect(trailers).toMatchObject({
      'grpc-status': '2',
      'grpc-message': expect.stringContaining('compressed'),
    })
    expect((await links[0]?.ended)?.error).toBeDefined()
  })

  test('a Go client that cancels its stream ends the link without an error', async () => {
    const { port, links, service } = await serve()
    const { stream } = await ask(port, {})
    expect(service.linkCount).toBe(1)
    stream.close(http2.constants.NGHTTP2_CANCEL)
    expect(await links[0]?.ended).toEqual({})
    expect(service.linkCount).toBe(0)
  })

  test('the signal of a request aborts when its peer goes away', async () => {
    let seen: (request: CallRequest) => void = () => {}
    const asked = new Promise<CallRequest>((resolve) => {
      seen = resolve
    })
    const { port } = await serve({
      authenticate: (request) => {
        seen(request)
        return new Promise(() => {})
      },
    })
    const session = http2.connect(`http://127.0.0.1:${port}`)
    session
      .request({
        ':method': 'POST',
        ':path': '/AgentService/Connect',
        'content-type': 'application/grpc',
      })
      .on('error', () => {})
    const { signal } = await asked
    session.destroy()
    await once(signal, 'abort')
    expect(signal.aborted).toBe(true)
  })
})

describe('connecting', () => {
  test('[TUN-W5, TUN-W6] gives a link with the server’s metadata and what both can do', async () => {
    const { port, links } = await serve({ capabilities: ['credit', 'halfclose'] })
    const link = await connectTo(port, { capabilities: ['rdial', 'credit'] })
    expect(link.metadata).toMatchObject({ serverid: ['s1'], servercount: ['2'] })
    expect([...link.capabilities]).toEqual(['credit'])
    expect([...(links[0]?.capabilities ?? [])]).toEqual(['credit'])
  })

  test('[TUN-W4] a refusal is reported with the server’s status and words', async () => {
    const { port } = await serve({
      answer: { grpcStatus: 2, message: 'exactly 1 agent ID: 100% needed, ünlike yours' },
    })
    await expect(connectTo(port)).rejects.toMatchObject({
      code: 'TUNNEL_LINK_REFUSED',
      grpcStatus: 2,
      message: expect.stringContaining('100% needed, ünlike yours'),
    })
  })

  test('[TUN-W4] a failure inside authentication says nothing about its cause', async () => {
    const { port } = await serve({ answer: new Error('secret detail') })
    const refused = connectTo(port)
    await expect(refused).rejects.toMatchObject({ grpcStatus: 2 })
    await expect(refused).rejects.not.toThrow(/secret/)
  })

  test('[TUN-W6] a server that never answers is given up at the deadline', async () => {
    const { port } = await serve({ authenticate: () => new Promise(() => {}) })
    await expect(connectTo(port, { handshakeTimeoutMs: 50 })).rejects.toMatchObject({
      code: 'TUNNEL_LINK_UNREACHABLE',
    })
  })

  test('something that does not speak HTTP/2 is reported, not waited for', async () => {
    const port = await listening(
      net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    )
    await expect(connectTo(port)).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
  })

  test('a port without a listener is reported', async () => {
    await expect(connectTo(1)).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
  })

  test('an aborted signal gives up', async () => {
    const { port } = await serve({ authenticate: () => new Promise(() => {}) })
    const cancel = new AbortController()
    const connecting = connectTo(port, { signal: cancel.signal })
    cancel.abort()
    await expect(connecting).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
  })

  test('[TUN-W14] a peer that has fallen silent is found and both ends are told', async () => {
    const sockets: net.Socket[] = []
    const { port } = await serve()
    const relay = net.createServer((near) => {
      const far = net.connect(port, '127.0.0.1')
      sockets.push(near, far)
      for (const socket of [near, far]) socket.on('error', () => {})
      near.pipe(far).pipe(near)
    })
    const link = await connectTo(await listening(relay), {
      keepalive: { timeMs: 30, timeoutMs: 30 },
    })
    link.start(events)
    for (const socket of sockets) socket.unpipe().pause()
    expect((await link.ended).error?.message).toMatch(/does not respond to keepalive pings/)
    for (const socket of sockets) socket.destroy()
  })

  test('[TUN-W14] a peer that answers pings is kept, however quiet it is', async () => {
    const { port, links } = await serve()
    const link = await connectTo(port, { keepalive: { timeMs: 10, timeoutMs: 1_000 } })
    link.start(events)
    const quiet = new Promise((resolve) => setTimeout(resolve, 1_500, 'quiet'))
    expect(await Promise.race([link.ended, quiet])).toBe('quiet')
    expect(links).toHaveLength(1)
  })
})

describe('TLS', () => {
  let ca = ''
  const pair = { server: { cert: '', key: '' }, agent: { cert: '', key: '' } }
  beforeAll(async () => {
    const key = await generateEcKey()
    const times = { now: Date.now(), lifetimeMs: 3_600_000 }
    const authority = await issueAuthorityCertificate({ commonName: 'test', key, ...times })
    ca = authority.certPem
    for (const [name, usage] of [
      ['server', 'server auth'],
      ['agent', 'client auth'],
    ] as const) {
      const made = await issueKeyAndCertificate({
        ca: { name: 'test', certificate: authority.certificate, bundlePem: ca, key },
        subject: { commonName: name },
        usages: [usage],
        sans: ['tunnel.example'],
        ...times,
      })
      pair[name] = { cert: made.certPem, key: privateKeyPem(made.key).reveal() }
    }
  })

  const mutual = () => ({ ca, ...pair.server, requestCert: true, rejectUnauthorized: true })

  test('[TUN-F11, TUN-W3] a client certificate and ALPN h2 make a link', async () => {
    const { port, requests } = await serve({ tls: mutual() })
    await connectTo(port, { tls: { ca, ...pair.agent, servername: 'tunnel.example' } })
    const socket = requests[0]?.socket as tls.TLSSocket
    expect(socket.alpnProtocol).toBe('h2')
    expect(socket.getPeerCertificate().subject.CN).toBe('agent')
    expect(socket.servername).toBe('tunnel.example')
  })

  test('[TUN-F11] without one the server lets nobody in', async () => {
    const { port } = await serve({ tls: mutual() })
    await expect(
      connectTo(port, { tls: { ca, servername: 'tunnel.example' } }),
    ).rejects.toMatchObject({
      code: 'TUNNEL_LINK_UNREACHABLE',
    })
  })

  test('[TUN-F14] a certificate for another name is refused, and an address is no SNI', async () => {
    const { port } = await serve({ tls: pair.server })
    await expect(connectTo(port, { tls: { ca } })).rejects.toThrow(/127\.0\.0\.1/)
  })

  test('[TUN-U1] further ALPN names are offered before h2', async () => {
    let offered: readonly string[] = []
    const { port } = await serve({ tls: pair.server })
    const sniffer = tls.createServer({
      ...pair.server,
      ALPNCallback: ({ protocols }) => {
        offered = protocols
        return 'h2'
      },
    })
    sniffer.on('secureConnection', (socket) => socket.destroy())
    const refused = connectTo(await listening(sniffer), {
      tls: { ca, servername: 'tunnel.example', alpn: ['konnectivity'] },
    })
    await expect(refused).rejects.toMatchObject({ code: 'TUNNEL_LINK_UNREACHABLE' })
    expect(offered).toEqual(['konnectivity', 'h2'])
    await connectTo(port, { tls: { ca, servername: 'tunnel.example', alpn: ['konnectivity'] } })
  })
})
