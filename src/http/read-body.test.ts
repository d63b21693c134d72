import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { constants } from 'node:http2'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiError } from '../core/index.ts'
import type { CertificateAuthority } from '../pki/index.ts'
import { type BodyLimits, ClientGone, readBody } from './body.ts'
import { labAuthority, labMaterial, TlsLab, textOf } from './tls-lab.suite.ts'
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

const defaults: BodyLimits = {
  maxBytes: 1000,
  timeoutMs: 60_000,
  signal: new AbortController().signal,
}

/** A server that answers with the body, or with the reason why it could not be read. */
async function reader(limits: Partial<BodyLimits> = {}) {
  const outcomes: unknown[] = []
  const waiting: ((outcome: unknown) => void)[] = []
  const settle = (outcome: unknown) => {
    const resolve = waiting.shift()
    if (resolve) resolve(outcome)
    else outcomes.push(outcome)
  }
  const { port } = await lab.serve({
    http2: true,
    onRequest: (request, response) => {
      readBody(request, { ...defaults, ...limits }).then(
        (body) => {
          settle(body.toString())
          response.end(`read ${body.length}`)
        },
        (error: unknown) => {
          settle(error)
          response.end(error instanceof ApiError ? `${error.reason}: ${error.message}` : 'gone')
        },
      )
    },
  })
  const outcome = () =>
    new Promise<unknown>((resolve) => {
      if (outcomes.length > 0) resolve(outcomes.shift())
      else waiting.push(resolve)
    })
  return { port, outcome }
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]), payload])
}

/** Posts a body by one of the protocols and returns the answer's text. */
type Post = (port: number, body: Buffer, headers?: Record<string, string>) => Promise<string>
const posts: [name: string, post: Post][] = [
  [
    'HTTP/1.1 with a length',
    async (port, body, headers = {}) =>
      (await lab.fetch(port, { method: 'POST', body, headers })).text,
  ],
  [
    'HTTP/1.1 in chunks',
    async (port, body, headers = {}) => {
      const chunked = { ...headers, 'transfer-encoding': 'chunked' }
      return (await lab.fetch(port, { method: 'POST', body, headers: chunked })).text
    },
  ],
  [
    'HTTP/2',
    async (port, body, headers = {}) => {
      const stream = lab.http2(port).request({ ':method': 'POST', ':path': '/', ...headers })
      stream.on('error', () => {})
      stream.end(body)
      return textOf(stream)
    },
  ],
]

describe.each(posts)('a body over %s', (_name, post) => {
  test.each([
    ['is read', Buffer.from('hello'), {}, 'read 5'],
    ['may be empty', Buffer.alloc(0), {}, 'read 0'],
    ['may have exactly the largest size', Buffer.alloc(1000), {}, 'read 1000'],
    [
      'may not be larger [GND-R83]',
      Buffer.alloc(1001),
      {},
      'RequestEntityTooLarge: Request entity too large: limit is 1000',
    ],
    [
      'may be far too large [GND-R83]',
      Buffer.alloc(3_000_000),
      {},
      'RequestEntityTooLarge: Request entity too large: limit is 1000',
    ],
    ['is unpacked', gzipSync('hello '.repeat(100)), { 'content-encoding': 'gzip' }, 'read 600'],
    [
      'may say that it is not packed',
      Buffer.from('hello'),
      { 'content-encoding': 'identity' },
      'read 5',
    ],
    [
      'may not unpack to more than the largest size [GND-R83]',
      gzipSync(Buffer.alloc(900_000)),
      { 'content-encoding': 'gzip' },
      'RequestEntityTooLarge: Request entity too large: limit is 1000',
    ],
    [
      'may not claim to be packed',
      Buffer.from('hello'),
      { 'content-encoding': 'gzip' },
      'BadRequest: the body is not valid gzip, although Content-Encoding says so',
    ],
    [
      'may not be cut off inside gzip',
      gzipSync('hello').subarray(0, 15),
      { 'content-encoding': 'gzip' },
      'BadRequest: the body is not valid gzip, although Content-Encoding says so',
    ],
    [
      'may not be packed in another way',
      Buffer.from('x'),
      { 'content-encoding': 'br' },
      'UnsupportedMediaType: the content encoding "br" is not supported: send gzip or none',
    ],
    [
      'may not be packed twice',
      Buffer.from('x'),
      { 'content-encoding': 'gzip, gzip' },
      'UnsupportedMediaType: the content encoding "gzip, gzip" is not supported: send gzip or none',
    ],
  ])('%s', async (_claim, body, headers, expected) => {
    const { port } = await reader()
    expect(await post(port, body, headers)).toBe(expected)
  })
})

describe('a body that does not come', () => {
  test('in time is a Timeout, over HTTP/1.1 [GND-R83]', async () => {
    const { port } = await reader({ timeoutMs: 50 })
    const socket = await lab.connect(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel')
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toContain('Timeout: the request body did not arrive within 0.05 seconds')
  })

  test('in time is a Timeout, over HTTP/2 [GND-R83]', async () => {
    const { port } = await reader({ timeoutMs: 50 })
    const stream = lab.http2(port).request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    stream.write('hel')
    expect(await textOf(stream)).toContain('Timeout: ')
  })

  test('because the client has gone is ClientGone, over HTTP/1.1', async () => {
    const { port, outcome } = await reader()
    const socket = await lab.connect(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel')
    socket.end()
    expect(await outcome()).toBeInstanceOf(ClientGone)
  })

  test.each([
    ['cancelled', constants.NGHTTP2_CANCEL],
    ['ended without an error code', constants.NGHTTP2_NO_ERROR],
    ['ended by an error', constants.NGHTTP2_INTERNAL_ERROR],
  ])('because the stream was %s is ClientGone, over HTTP/2', async (_how, code) => {
    const { port, outcome } = await reader()
    const socket = await lab.connect(port, { ALPNProtocols: ['h2'] })
    // Frame by frame: Node's client ends a request in good order before it resets the stream.
    const post = Buffer.from([0x83, 0x87, 0x84, 0x41, 1, 0x61])
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(4, 0, 0, Buffer.alloc(0)))
    socket.write(frame(1, 4, 1, post))
    socket.write(frame(0, 0, 1, Buffer.from('hel')))
    socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, code])))
    expect(await outcome()).toBeInstanceOf(ClientGone)
  })

  test('because the connection was cut is ClientGone, over HTTP/2', async () => {
    const { port, outcome } = await reader()
    const session = lab.http2(port)
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    await new Promise((resolve) => stream.write('hel', resolve))
    session.ping(() => session.destroy())
    expect(await outcome()).toBeInstanceOf(ClientGone)
  })

  test('because the server stops waiting is refused with a reason', async () => {
    const stop = new AbortController()
    const { port, outcome } = await reader({ signal: stop.signal })
    const socket = await lab.connect(port)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel')
    stop.abort()
    expect(await outcome()).toMatchObject({ reason: 'ServiceUnavailable' })
  })
})

test('a body in single bytes keeps nothing of what they were cut from [SEC-R607]', async () => {
  const slab = Buffer.alloc(1_000, 'abc')
  const request = Object.assign(new PassThrough({ objectMode: true }), { headers: {} })
  let body: Promise<Buffer> | undefined
  const arrived = new Promise<void>((resolve) => {
    const onBytes = (bytes: number) => void (bytes === slab.length && resolve())
    body = readBody(request as unknown as IncomingMessage, { ...defaults, onBytes })
  })
  for (let at = 0; at < slab.length; at++) request.write(slab.subarray(at, at + 1))
  await arrived
  slab.fill('-')
  request.end()
  expect((await body)?.equals(Buffer.alloc(1_000, 'abc'))).toBe(true)
})
