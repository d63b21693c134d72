import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { allOfProxy, outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'
import type { TcpTarget } from '../support/tcp-target.ts'

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n'
const page = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n'

describe.skipIf(outwardAddress === undefined)('a backend that means harm', () => {
  let lab: ServiceProxyLab
  let admin: HttpsCaller
  let backend: TcpTarget
  let base: string
  /** What the backend does once it has read the head of a request. */
  let serve: (socket: Socket, head: string) => void = () => {}

  beforeAll(async () => {
    lab = await ServiceProxyLab.open(['--addon-bytes-per-second', '1Mi'])
    admin = await lab.server.admin()
    backend = await lab.rawBackend((socket) => {
      let seen = ''
      socket
        .on('error', () => {})
        .on('end', () => socket.end())
        .on('data', (chunk) => {
          seen += String(chunk)
          if (!seen.includes('\r\n\r\n')) return
          const head = seen
          seen = ''
          serve(socket, head)
        })
    })
    base = await lab.addon('web', backend)
  })
  afterAll(() => lab.close())

  test('and gives hints without end is a 503 [ADDON-X3]', async () => {
    serve = (socket) => {
      const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n'.repeat(50)
      const more = (): void => {
        while (!socket.destroyed && socket.write(hint));
      }
      socket.on('drain', more)
      more()
    }
    expect((await admin.get(`${base}/`)).status).toBe(503)
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test.each([
    ['another protocol', 'Upgrade: foo\r\nConnection: Upgrade\r\n'],
    ['a WebSocket', 'Upgrade: websocket\r\nConnection: Upgrade\r\n'],
  ])('and changes to %s unasked is a 503 [ADDON-X3]', async (_what, headers) => {
    serve = (socket) => void socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers}\r\nhi`)
    expect((await admin.get(`${base}/`)).status).toBe(503)
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test('and has a status that is none leaves nothing of its head in the refusal', async () => {
    serve = (socket) =>
      void socket.end('HTTP/1.1 042 X\r\nContent-Encoding: br\r\nSet-Cookie: a=b\r\nX-A: b\r\n\r\n')
    const { status, headers, object } = await admin.get(`${base}/`)
    expect([status, object.kind, headers['content-encoding']]).toEqual([503, 'Status', undefined])
    expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(['set-cookie']))
    expect(headers).not.toHaveProperty('x-a')
  })

  test('and packs a page a thousandfold is held to what it unpacks to [ADDON-X4]', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20, 32))
    serve = (socket) => void socket.end(Buffer.concat([Buffer.from(`${page}\r\n`), bomb]))
    const request = admin.send(`${base}/`)
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    answer.resume()
    const session = await eventually('it is shown', async () => {
      const path = '/apis/addon.sallyport.dev/v1alpha1/namespaces/default/sessions'
      const { items } = JSON.parse((await admin.get(path)).text) as { items: object[] }
      return items[0]
    })
    // One second's worth at once, and then one per second: nowhere near its 64 MiB.
    const { bytesToClient } = (session as { status: { bytesToClient: number } }).status
    expect(bytesToClient).toBeGreaterThan(0)
    expect(bytesToClient).toBeLessThan(16 * 2 ** 20)
    request.destroy()
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test('and keeps pages under br open gets no more of our memory: the next page is not asked for under br [ADDON-X19]', async () => {
    const packed = brotliCompressSync(Buffer.from('<p>'))
    const asked: string[] = []
    serve = (socket, head) => {
      asked.push(/^accept-encoding: (.*)\r$/im.exec(head)?.[1] ?? '')
      const size = head.startsWith('GET /whole') ? packed.length : packed.length + 1
      const coding = 'Content-Type: text/html\r\nContent-Encoding: br\r\n'
      socket.write(`HTTP/1.1 200 OK\r\n${coding}Content-Length: ${size}\r\n\r\n`)
      socket.write(packed)
    }
    const headers = { accept: 'text/html', 'accept-encoding': 'gzip, br' }
    const open = Array.from({ length: 8 }, () => admin.send(`${base}/`, { headers }))
    const statuses = open.map(async (request) => {
      const [answer] = (await once(request, 'response')) as [IncomingMessage]
      return answer.statusCode
    })
    expect(await Promise.all(statuses)).toEqual(Array.from({ length: 8 }, () => 200))
    const refused = await admin.get(`${base}/whole`, headers)
    expect([refused.status, refused.headers['retry-after'], asked.at(-1)]).toEqual([
      429,
      '1',
      'gzip',
    ])
    const other = await lab.user('other', [allOfProxy('get')])
    expect([(await other.get(`${base}/whole`, headers)).status, asked.at(-1)]).toEqual([
      200,
      'gzip, br',
    ])
    for (const request of open) request.destroy()
    await eventually('there is room again', async () => {
      const { status } = await admin.get(`${base}/whole`, headers)
      return status === 200 && asked.at(-1) === 'gzip, br'
    })
  })

  test.each([
    ['announced and harmless', 'Trailer: Grpc-Status, Digest', { 'grpc-status': '0', digest: 'd' }],
    ['not announced', 'X-A: b', {}],
    ['one that decides something', 'Trailer: Set-Cookie, Location, Content-Type, TE', {}],
  ])(
    'trailers that are %s are passed on as far as is safe [ADDON-X5]',
    async (_what, header, kept) => {
      const trailers = ['Grpc-Status: 0', 'Digest: d', 'Set-Cookie: a=b', 'Location: /x']
      serve = (socket) =>
        void socket.write(
          `${chunked}${header}\r\n\r\n2\r\nhi\r\n0\r\n${trailers.join('\r\n')}\r\n\r\n`,
        )
      const request = admin.send(`${base}/`)
      const [answer] = (await once(request, 'response')) as [IncomingMessage]
      expect(await text(answer)).toBe('hi')
      expect(answer.trailers).toEqual(kept)
    },
  )

  test('a client that takes trailers says so to the backend', async () => {
    let asked = ''
    serve = (socket, head) => {
      asked = head
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    }
    await admin.get(`${base}/`, { TE: 'gzip, trailers' })
    expect(asked.match(/^TE: .*$/gim)).toEqual(['TE: trailers'])
    await admin.get(`${base}/`, { TE: 'gzip' })
    expect(asked).not.toMatch(/^TE:/im)
  })
})
