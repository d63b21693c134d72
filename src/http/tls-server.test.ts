import { once } from 'node:events'
import type { ClientHttp2Session, IncomingHttpHeaders } from 'node:http2'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createPlainTlsServer } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import {
  type CertificateAuthority,
  peerCertificates,
  verifyClientCertificate,
} from '../pki/index.ts'
import type { TlsMaterial } from './tls-context.ts'
import { labAuthority, labClient, labMaterial, TlsLab, textOf } from './tls-lab.suite.ts'
import { createTlsServer, type RequestHandler } from './tls-server.ts'

let ca: CertificateAuthority
let material: TlsMaterial
let lab: TlsLab

beforeAll(async () => {
  ca = await labAuthority()
  material = await labMaterial(ca)
})
beforeEach(() => {
  lab = new TlsLab(ca, material)
})
afterEach(() => lab.close())

const echo: RequestHandler = (request, response) =>
  response.end(`${request.httpVersion} ${request.url}`)

async function get(session: ClientHttp2Session, path: string): Promise<string> {
  return textOf(session.request({ ':path': path }).setEncoding('utf8'))
}

describe('one port', () => {
  test('answers HTTP/1.1 and HTTP/2', async () => {
    const { port } = await lab.serve({ onRequest: echo })
    expect((await lab.fetch(port, { path: '/a' })).text).toBe('1.1 /a')
    expect(await get(lab.http2(port), '/b')).toBe('2.0 /b')
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (version) => {
    const { port } = await lab.serve({ onRequest: echo })
    const socket = await lab.connect(port, { minVersion: version, maxVersion: version })
    expect(socket.getProtocol()).toBe(version)
  })

  test('does not speak TLS 1.1', async () => {
    const { port } = await lab.serve({ onRequest: echo })
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
    await expect(lab.connect(port, old)).rejects.toThrow(/protocol version/i)
  })

  test('hands over connections that ask for another protocol', async () => {
    const { port } = await lab.serve({
      onRequest: echo,
      onUpgrade: (request, socket, head) => {
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n\r\n${request.url} ${head.toString()}`)
        socket.pipe(socket)
      },
    })
    const socket = await lab.connect(port)
    socket.write('GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhead')
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1.1 101 .*\/up head$/s)
    socket.write('ping')
    const [pong] = await once(socket, 'data')
    expect(String(pong)).toBe('ping')
  })

  test.each([
    ['in one packet with a request before it', true],
    ['whose handler throws', false],
  ])('outlives an upgrade %s [ADDON-X15]', async (_what, isBehind) => {
    const upgrades: string[] = []
    const { port } = await lab.serve({
      onRequest: () => {},
      onUpgrade: (request) => {
        upgrades.push(request.url ?? '')
        throw new Error('a bug')
      },
    })
    const socket = await lab.connect(port)
    const first = 'GET /first HTTP/1.1\r\nHost: a\r\n\r\n'
    const second = 'GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {}).resume()
    socket.write(isBehind ? first + second : second)
    await closed
    expect(upgrades).toEqual(isBehind ? [] : ['/up'])
  })

  test('outlives an upgraded connection that is reset', async () => {
    let upgraded: Duplex | undefined
    const { port } = await lab.serve({
      onRequest: echo,
      onUpgrade: (_request, socket) => {
        upgraded = socket
        socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      },
    })
    const socket = await lab.connect(port)
    socket.write('GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    await once(socket, 'data')
    const closed = new Promise((resolve) => upgraded?.once('close', resolve))
    upgraded?.destroy(new Error('connection reset'))
    await closed
    expect((await lab.fetch(port)).status).toBe(200)
  })

  test('outlives a handler that throws', async () => {
    const { port } = await lab.serve({
      onRequest: (request, response) => {
        if (request.url === '/bad') throw new Error('a bug')
        response.end('fine')
      },
    })
    await expect(lab.fetch(port, { path: '/bad' })).rejects.toThrow('socket hang up')
    expect((await lab.fetch(port)).text).toBe('fine')
  })
})

describe('client certificates', () => {
  const whoami: RequestHandler = (request, response) => {
    const chain = peerCertificates(request.socket)
    const name = chain.length
      ? verifyClientCertificate(chain, [ca.certificate], Date.now()).commonName
      : 'nobody'
    response.end(name)
  }

  test('are optional, and reach the handler on both protocols [GND-R72]', async () => {
    const { port } = await lab.serve({ onRequest: whoami })
    const jane = await labClient(ca, 'jane')
    expect((await lab.fetch(port, jane)).text).toBe('jane')
    expect(await get(lab.http2(port, jane), '/')).toBe('jane')
    expect((await lab.fetch(port)).text).toBe('nobody')
    expect(await get(lab.http2(port), '/')).toBe('nobody')
  })

  test('of an unknown CA get through the handshake, and are seen for what they are', async () => {
    let seen: unknown
    const { port } = await lab.serve({
      onRequest: (request, response) => {
        try {
          whoami(request, response)
        } catch (error) {
          seen = error
          response.end('refused')
        }
      },
    })
    const stranger = await labClient(await labAuthority('stranger'), 'system:admin')
    expect((await lab.fetch(port, stranger)).text).toBe('refused')
    expect(seen).toMatchObject({ why: 'UNKNOWN_AUTHORITY' })
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'are asked for on every connection: a session of %s is never resumed [GND-R72]',
    async (version) => {
      const { port } = await lab.serve({ onRequest: echo })
      const jane = await labClient(ca, 'jane')
      expect(await resumes(port, { ...jane, minVersion: version, maxVersion: version })).toBe(false)
    },
  )

  test('and a server with default settings would resume, so that test can fail', async () => {
    const server = createPlainTlsServer(
      { cert: material.certPem, key: material.keyPem.reveal() },
      (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    expect(await resumes(port, {})).toBe(true)
    server.close()
  })

  async function resumes(port: number, options: object): Promise<boolean> {
    const visit = async (old?: Buffer): Promise<{ reused: boolean; session: Buffer }> => {
      const socket = await lab.connect(port, { ...options, ...(old && { session: old }) })
      const reused = socket.isSessionReused()
      let latest = socket.getSession()
      socket.on('session', (data) => (latest = data))
      socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      await textOf(socket)
      return { reused, session: latest ?? Buffer.alloc(0) }
    }
    const first = await visit()
    return (await visit(first.session)).reused
  }
})

describe('listening', () => {
  const create = () => createTlsServer({ material, log: silentLogger, onRequest: echo })

  test('happens on several addresses at one port', async () => {
    const server = create()
    const port = await server.listen([{ host: '127.0.0.1' }, { host: '127.0.0.2' }], 0)
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      const { status } = await lab.fetch(port, { host, checkServerIdentity: () => undefined })
      expect(status).toBe(200)
    }
    await server.stop(AbortSignal.abort())
  })

  test('leaves out an optional address that the machine does not have', async () => {
    const server = create()
    const missing = { host: '192.0.2.1', optional: true }
    const port = await server.listen([missing, { host: '127.0.0.1' }], 0)
    expect((await lab.fetch(port)).status).toBe(200)
    await server.stop(AbortSignal.abort())
  })

  test.each([
    [
      'an address that the machine does not have',
      '192.0.2.1',
      'ADDRESS_NOT_AVAILABLE',
      /192\.0\.2\.1:0/,
    ],
    [
      'a name that does not exist',
      'no.such.name.invalid',
      'ADDRESS_NOT_AVAILABLE',
      /no\.such\.name\.invalid:0/,
    ],
  ])('on %s fails with a sentence', async (_name, host, code, message) => {
    await expect(create().listen([{ host }], 0)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  test('on a port in use names the address, the port and the way out, and leaves nothing open', async () => {
    const other = createTcpServer()
    await once(other.listen(0, '127.0.0.2'), 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address ? address.port : 0
    await expect(
      create().listen([{ host: '127.0.0.1' }, { host: '127.0.0.2' }], port),
    ).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      message: `cannot listen on 127.0.0.2:${port}: the port is in use`,
      hint: expect.stringContaining('choose another port'),
    })
    const [error] = await once(connectTcp(port, '127.0.0.1'), 'error')
    expect(error).toMatchObject({ code: 'ECONNREFUSED' })
    other.close()
  })
})

test('another certificate is shown to new connections, and open ones stay [GND-R41]', async () => {
  const { server, port } = await lab.serve({ onRequest: echo })
  const session = lab.http2(port)
  expect(await get(session, '/1')).toBe('2.0 /1')
  server.setSecureContext(await labMaterial(ca, 'renewed'))
  const socket = await lab.connect(port)
  expect(socket.getPeerCertificate().subject.CN).toBe('renewed')
  expect(await get(session, '/2')).toBe('2.0 /2')
  const jane = await labClient(ca, 'jane')
  expect((await lab.fetch(port, jane)).status).toBe(200)
})

describe('stopping', () => {
  /** A server whose requests to /slow wait until they are let go. */
  async function slowServer() {
    const waiting: (() => void)[] = []
    const arrivals: (() => void)[] = []
    const served = await lab.serve({
      onRequest: (request, response) => {
        if (request.url !== '/slow') {
          response.end('quick')
          return
        }
        response.writeHead(200)
        response.write('begun ')
        waiting.push(() => response.end('done'))
        for (const resolve of arrivals.splice(0)) resolve()
      },
    })
    return {
      ...served,
      arrival: () => new Promise<void>((resolve) => arrivals.push(resolve)),
      letGo: () => {
        for (const go of waiting.splice(0)) go()
      },
    }
  }
  const never = new AbortController().signal

  test('lets requests of both protocols finish, and refuses new connections meanwhile', async () => {
    const { server, port, arrival, letGo } = await slowServer()
    const first = arrival()
    const http1 = lab.fetch(port, { path: '/slow' })
    await first
    const second = arrival()
    const session = lab.http2(port)
    const goaway = once(session, 'goaway')
    const http2 = get(session, '/slow')
    await second
    let draining = false
    server.draining.addEventListener('abort', () => (draining = true))
    const stopped = server.stop(never)
    expect(draining).toBe(true)
    await goaway
    await expect(lab.connect(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    letGo()
    expect((await http1).text).toBe('begun done')
    expect(await http2).toBe('begun done')
    await stopped
    expect(server.connectionCount).toBe(0)
  })

  test('closes idle connections at once', async () => {
    const { server, port } = await slowServer()
    const socket = await lab.connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    const fresh = await lab.connect(port)
    const session = lab.http2(port)
    await get(session, '/')
    const closed = Promise.all([socket, fresh, session].map((each) => once(each, 'close')))
    fresh.resume()
    socket.resume()
    await server.stop(never)
    await expect(closed).resolves.toHaveLength(3)
  })

  test('tells a busy HTTP/1.1 connection that it was the last answer', async () => {
    const waiting: (() => void)[] = []
    const { server, port } = await lab.serve({
      onRequest: (_request, response) => waiting.push(() => response.end('late')),
    })
    const pending = lab.fetch(port, { headers: { connection: 'keep-alive' } })
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const stopped = server.stop(never)
    for (const go of waiting) go()
    expect((await pending).response.headers.connection).toBe('close')
    await stopped
  })

  test('cuts what is left when the deadline has come', async () => {
    const { server, port, arrival } = await slowServer()
    const first = arrival()
    const http1 = lab.fetch(port, { path: '/slow' })
    await first
    const second = arrival()
    const session = lab.http2(port)
    const stream = session.request({ ':path': '/slow' })
    stream.on('error', () => {})
    await second
    const deadline = new AbortController()
    const cut = once(stream, 'close')
    const stopped = server.stop(deadline.signal)
    deadline.abort()
    await stopped
    await expect(http1).rejects.toThrow('aborted')
    await expect(cut).resolves.toBeDefined()
  })

  test('cuts connections in the middle of their handshake', async () => {
    const { server, port } = await slowServer()
    const socket = connectTcp(port, '127.0.0.1')
    await once(socket, 'connect')
    while (server.connectionCount === 0) await new Promise((resolve) => setImmediate(resolve))
    await server.stop(AbortSignal.abort())
    socket.resume()
    await expect(once(socket, 'close')).resolves.toBeDefined()
  })

  test('can be done twice, and before the server listens', async () => {
    const { server } = await slowServer()
    await Promise.all([server.stop(never), server.stop(never)])
    const unborn = createTlsServer({ material, log: silentLogger, onRequest: echo })
    await expect(unborn.stop(never)).resolves.toBeUndefined()
  })
})

describe('limits hold [GND-R83]', () => {
  test('headers that are too large get 431 on HTTP/1.1', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { maxHeaderBytes: 32 * 1024 } })
    const fits = await lab.fetch(port, { headers: { a: 'x'.repeat(30_000) } })
    expect(fits.status).toBe(200)
    const socket = await lab.connect(port)
    socket.write(`GET / HTTP/1.1\r\nHost: a\r\nA: ${'x'.repeat(40_000)}\r\n\r\n`)
    expect(await textOf(socket)).toMatch(/^HTTP\/1.1 431 /)
  })

  test('headers that are too large get 431 on HTTP/2', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { maxHeaderBytes: 8 * 1024 } })
    const session = lab.http2(port)
    const stream = session.request({ ':path': '/', a: 'x'.repeat(10_000) })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(431)
    expect(await get(session, '/next')).toBe('2.0 /next')
  })

  test('headers that are too many end the stream on HTTP/2', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { maxHeaderCount: 100 } })
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'y']))
    const stream = lab.http2(port).request({ ':path': '/', ...many })
    await expect(once(stream, 'response')).rejects.toThrow('ENHANCE_YOUR_CALM')
  })

  test('an HTTP/1.1 request without Host is refused', async () => {
    const { port } = await lab.serve({ onRequest: echo })
    const socket = await lab.connect(port)
    socket.write('GET / HTTP/1.1\r\n\r\n')
    expect(await textOf(socket)).toMatch(/^HTTP\/1.1 400 /)
  })

  test.each([
    ['headers that never end', 'GET / HTTP/1.1\r\nHost: a\r\n'],
    ['a request that never begins', ''],
  ])('%s are cut off in time', async (_name, bytes) => {
    const { port } = await lab.serve({ onRequest: echo, limits: { headersTimeoutMs: 100 } })
    const socket = await lab.connect(port)
    if (bytes) socket.write(bytes)
    expect(await textOf(socket)).toMatch(/^HTTP\/1.1 408 /)
  })

  test('a handshake that never ends is cut off', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { handshakeTimeoutMs: 100 } })
    const socket = connectTcp(port, '127.0.0.1').resume()
    await expect(once(socket, 'close')).resolves.toBeDefined()
  })

  test('an idle HTTP/2 connection is closed', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { idleTimeoutMs: 50 } })
    const session = lab.http2(port)
    await get(session, '/')
    await expect(once(session, 'close')).resolves.toBeDefined()
  })

  test('an idle HTTP/1.1 connection is closed', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { idleTimeoutMs: 50 } })
    const socket = await lab.connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.resume()
    await expect(once(socket, 'close')).resolves.toBeDefined()
  })

  test('an HTTP/2 connection with a quiet watch is not idle', async () => {
    let answer = () => {}
    const { port } = await lab.serve({
      onRequest: (request, response) => {
        if (request.url === '/watch') answer = () => response.end('event')
        else response.end()
      },
      limits: { idleTimeoutMs: 50 },
    })
    const watching = lab.http2(port)
    const watch = get(watching, '/watch')
    const other = lab.http2(port)
    await get(other, '/')
    await once(other, 'close') // so the time is up for an idle one
    answer()
    expect(await watch).toBe('event')
  })

  test('connections beyond the limit are dropped, and room that is made is used', async () => {
    const { server, port } = await lab.serve({ onRequest: echo, limits: { maxConnections: 2 } })
    const first = await lab.connect(port)
    await lab.connect(port)
    await expect(lab.connect(port)).rejects.toThrow(/ECONNRESET|disconnected/)
    first.destroy()
    while (server.connectionCount > 1) await new Promise((resolve) => setImmediate(resolve))
    await expect(lab.connect(port)).resolves.toBeDefined()
  })

  test('the most streams of an HTTP/2 connection are announced to the client', async () => {
    const { port } = await lab.serve({ onRequest: () => {}, limits: { maxConcurrentStreams: 2 } })
    const session = lab.http2(port)
    const [settings] = (await once(session, 'remoteSettings')) as [{ maxConcurrentStreams: number }]
    expect(settings.maxConcurrentStreams).toBe(2)
  })

  test('an HTTP/2 connection that never says anything is closed', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { idleTimeoutMs: 50 } })
    const socket = await lab.connect(port, { ALPNProtocols: ['h2'] })
    expect(socket.alpnProtocol).toBe('h2')
    await expect(once(socket.resume(), 'close')).resolves.toBeDefined()
  })

  test('a flood of requests that are reset at once ends its connection, and no other', async () => {
    const { port } = await lab.serve({ onRequest: echo })
    const bystander = lab.http2(port)
    await get(bystander, '/before')
    const socket = await lab.connect(port, { ALPNProtocols: ['h2'] })
    socket.on('error', () => {}).resume()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(Buffer.concat([http2Preface, frame(4, 0, 0), ...resetFlood(20_000)]))
    await closed
    expect(await get(bystander, '/after')).toBe('2.0 /after')
  })

  test('a connection can be looked at and dropped before its handshake', async () => {
    const { port } = await lab.serve({
      onRequest: echo,
      onConnection: (socket) => socket.destroy(),
    })
    await expect(lab.connect(port)).rejects.toThrow(/ECONNRESET|disconnected/)
  })
})

const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt8(type, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}

function* resetFlood(count: number): Generator<Buffer> {
  const get = Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x61])
  const cancel = Buffer.from([0, 0, 0, 8])
  for (let i = 0; i < count; i++) {
    yield frame(1, 5, 2 * i + 1, get)
    yield frame(3, 0, 2 * i + 1, cancel)
  }
}

describe('an answer that comes before the body has been read', () => {
  const refuse: RequestHandler = (_request, response) => {
    response.writeHead(413)
    response.end('too large')
  }

  test('reaches an HTTP/1.1 client that is still sending, and the connection ends', async () => {
    const { port } = await lab.serve({ onRequest: refuse, limits: { lingerMs: 100 } })
    const socket = await lab.connect(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n')
    const sending = setInterval(() => socket.write('x'.repeat(100_000)), 1)
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => (text += String(chunk)))
    await new Promise((resolve) => socket.once('close', resolve)) // a reset is fine, too
    clearInterval(sending)
    expect(text).toMatch(/^HTTP\/1.1 413 .*too large/s)
  })

  test('keeps an HTTP/1.1 connection when the body ends soon', async () => {
    const { port } = await lab.serve({ onRequest: refuse, limits: { lingerMs: 50 } })
    const socket = await lab.connect(port)
    for (const _round of [1, 2]) {
      socket.write(
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
      )
      const [answer] = await once(socket, 'data')
      expect(String(answer)).toMatch(/^HTTP\/1.1 413 /)
    }
  })

  test.each([
    ['without a body', 'GET', true],
    ['with a body that has not ended', 'POST', false],
  ])('is whole, however slowly an HTTP/2 client reads it: %s', async (_name, method, ended) => {
    const large = 'x'.repeat(5_000_000)
    let answered = () => {}
    const handled = new Promise<void>((resolve) => (answered = resolve))
    const { port } = await lab.serve({
      onRequest: (_request, response) => {
        response.end(large)
        setImmediate(answered)
      },
    })
    const session = lab.http2(port)
    const stream = session.request({ ':method': method, ':path': '/' }, { endStream: ended })
    stream.on('error', () => {})
    if (!ended) stream.write('some')
    await handled
    await new Promise((resolve) => session.ping(resolve)) // all that fits has been sent by now
    expect((await textOf(stream)).length).toBe(large.length)
  })

  test('ends the stream of an HTTP/2 client that is still sending, and not its connection', async () => {
    const { port } = await lab.serve({ onRequest: refuse })
    const session = lab.http2(port)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write('x'.repeat(1_000_000))
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(413)
    const closed = once(stream, 'close')
    expect(await textOf(stream)).toBe('too large')
    await closed
    const second = session.request({ ':path': '/' })
    expect(await textOf(second)).toBe('too large')
  })
})
