import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CertificateAuthority } from '../pki/index.ts'
import { echo, get, labAuthority, labMaterial, TlsLab, textOf } from './tls-lab.suite.ts'
import type { TlsMaterial } from './tls-server.ts'

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
    const { port } = await lab.serve({
      http2: true,
      onRequest: echo,
      limits: { maxHeaderBytes: 8 * 1024 },
    })
    const session = lab.http2(port)
    const stream = session.request({ ':path': '/', a: 'x'.repeat(10_000) })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(431)
    expect(await get(session, '/next')).toBe('2.0 /next')
  })

  test('headers that are too many end the stream on HTTP/2', async () => {
    const { port } = await lab.serve({
      http2: true,
      onRequest: echo,
      limits: { maxHeaderCount: 100 },
    })
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'y']))
    const stream = lab.http2(port).request({ ':path': '/', ...many })
    await expect(once(stream, 'response')).rejects.toThrow('ENHANCE_YOUR_CALM')
  })

  test('a body that stops is a 408 [SEC-R2004]', async () => {
    const { port } = await lab.serve({
      onRequest: (request) => void request.resume(),
      limits: { bodyIdleMs: 100 },
    })
    const socket = await lab.connect(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello')
    expect(await textOf(socket)).toMatch(/^HTTP\/1.1 408 /)
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
    const { port } = await lab.serve({
      http2: true,
      onRequest: echo,
      limits: { idleTimeoutMs: 500 },
    })
    const session = lab.http2(port)
    await get(session, '/')
    await expect(once(session, 'close')).resolves.toBeDefined()
  })

  test('an idle HTTP/1.1 connection is closed', async () => {
    const { port } = await lab.serve({ onRequest: echo, limits: { idleTimeoutMs: 500 } })
    const socket = await lab.connect(port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.resume()
    await expect(once(socket, 'close')).resolves.toBeDefined()
  })

  test('an HTTP/2 connection with a quiet watch is not idle', async () => {
    let answer = () => {}
    const { port } = await lab.serve({
      http2: true,
      onRequest: (request, response) => {
        if (request.url === '/watch') answer = () => response.end('event')
        else response.end()
      },
      limits: { idleTimeoutMs: 500 },
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
    const { port } = await lab.serve({
      http2: true,
      onRequest: () => {},
      limits: { maxConcurrentStreams: 2 },
    })
    const session = lab.http2(port)
    const [settings] = (await once(session, 'remoteSettings')) as [{ maxConcurrentStreams: number }]
    expect(settings.maxConcurrentStreams).toBe(2)
  })

  test('an HTTP/2 connection that never says anything is closed', async () => {
    const { port } = await lab.serve({
      http2: true,
      onRequest: echo,
      limits: { idleTimeoutMs: 500 },
    })
    const socket = await lab.connect(port, { ALPNProtocols: ['h2'] })
    expect(socket.alpnProtocol).toBe('h2')
    await expect(once(socket.resume(), 'close')).resolves.toBeDefined()
  })

  test('a flood of requests that are reset at once ends its connection, and no other', async () => {
    const { port } = await lab.serve({ http2: true, onRequest: echo })
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
