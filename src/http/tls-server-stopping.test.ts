import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import type { CertificateAuthority } from '../pki/index.ts'
import { echo, get, labAuthority, labMaterial, TlsLab, textOf } from './tls-lab.suite.ts'
import type { TlsMaterial } from './tls-server.ts'
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

describe('stopping', () => {
  /** A server whose requests to /slow wait until they are let go. */
  async function slowServer(http2 = true) {
    const waiting: (() => void)[] = []
    const arrivals: (() => void)[] = []
    const served = await lab.serve({
      http2,
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

  test('closes idle connections at once, where only HTTP/1.1 is offered', async () => {
    const { server, port } = await slowServer(false)
    const socket = await lab.connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    const fresh = await lab.connect(port)
    const closed = Promise.all([socket, fresh].map((each) => once(each, 'close')))
    fresh.resume()
    socket.resume()
    await server.stop(never)
    await expect(closed).resolves.toHaveLength(2)
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
      http2: true,
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
    const { port } = await lab.serve({ http2: true, onRequest: refuse })
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
