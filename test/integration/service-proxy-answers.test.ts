import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'
import type { TcpTarget } from '../support/tcp-target.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const short = `${ok}Content-Length: 2\r\n\r\nok`
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`

describe.skipIf(outwardAddress === undefined)('the answer of a backend', () => {
  let lab: ServiceProxyLab
  let admin: HttpsCaller
  let backend: TcpTarget
  let base: string
  /** The first lines of what was asked, each with the connection that it came by. */
  const asked: { readonly line: string; readonly socket: Socket }[] = []
  const connections = (): number => new Set(asked.map(({ socket }) => socket)).size
  /** What the backend does once it has read the head of a request. */
  let serve: (socket: Socket, head: string) => void = () => {}

  beforeAll(async () => {
    lab = await ServiceProxyLab.open()
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
          asked.push({ line: head.split('\r\n', 1)[0] ?? '', socket })
          serve(socket, head)
        })
    })
    base = await lab.addon('web', backend)
  })
  beforeEach(async () => {
    for (const socket of backend.open) socket.destroy()
    await eventually('all is closed', () => backend.open.size === 0)
    asked.length = 0
  })
  afterAll(() => lab.close())

  const begin = async (path = '/'): Promise<IncomingMessage> =>
    ((await once(admin.send(base + path), 'response')) as [IncomingMessage])[0]

  test.each([
    ['with a length', [short], true],
    ['in chunks', [`${chunked}1;a=b\r\no\r\n`, '1\r\nk\r\n0\r\n\r\n'], true],
    ['in pieces', short.split(''), true],
    [
      'behind hints',
      [`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: a\r\n\r\n${short}`],
      true,
    ],
    [
      'of HTTP/1.0 that stays',
      [`${short.replace('1.1', '1.0').replace('OK', 'OK\r\nConnection: Keep-Alive')}`],
      true,
    ],
    ['of HTTP/1.0', [short.replace('1.1', '1.0')], false],
    ['that closes', [short.replace('OK', 'OK\r\nConnection: close')], false],
  ])('%s is passed on, and the connection kept as it says', async (_what, pieces, isKept) => {
    serve = (socket) => {
      for (const piece of pieces) socket.write(piece)
    }
    for (const path of ['/a', '/b']) expect((await admin.get(base + path)).text).toBe('ok')
    expect(asked.map(({ line }) => line)).toEqual(['GET /a HTTP/1.1', 'GET /b HTTP/1.1'])
    expect(connections()).toBe(isKept ? 1 : 2)
  })

  test('without a length lasts until the connection ends', async () => {
    serve = (socket) => void socket.end(`${ok}\r\nok`)
    expect((await admin.get(`${base}/`)).text).toBe('ok')
  })

  test.each([
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n', 204],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n', 304],
    ['HEAD', `${ok}Content-Length: 9\r\n\r\n`, 200],
    ['HEAD', `${ok}Transfer-Encoding: chunked\r\n\r\n`, 200],
    ['OPTIONS', `${ok}Content-Length: 0\r\n\r\n`, 200],
    ['DELETE', `${ok}Content-Length: 0\r\n\r\n`, 200],
    ['POST', `${ok}Content-Length: 0\r\n\r\n`, 200],
  ])('to %s that has no body is not waited for: %j', async (method, bytes, status) => {
    serve = (socket) => void socket.write(bytes)
    for (const path of ['/a', '/b']) {
      const answer = await admin.request(base + path, { method })
      expect([answer.status, answer.text]).toEqual([status, ''])
    }
    expect(asked.map(({ line }) => line.split(' ', 1)[0])).toEqual([method, method])
    expect(connections()).toBe(1)
  })

  test.each([
    ['two lengths', `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`],
    [
      'a length and chunks',
      `${ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a length that is none', `${ok}Content-Length: +2\r\n\r\nok`],
    ['a negative length', `${ok}Content-Length: -2\r\n\r\nok`],
    ['a space before a colon', `${ok}Content-Length : 2\r\n\r\nok`],
    ['a bare line feed', `${ok}A: b\nContent-Length: 2\r\n\r\nok`],
    ['a NUL', `${ok}A: b\0\r\nContent-Length: 2\r\n\r\nok`],
    ['a header without a name', `${ok}: b\r\nContent-Length: 2\r\n\r\nok`],
    ['a folded header', `${ok}A: b\r\n c\r\nContent-Length: 2\r\n\r\nok`],
    ['a head of 70 KB', `${ok}A: ${'b'.repeat(70_000)}\r\n\r\n`],
    ['another protocol', 'SSH-2.0-x\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
  ])('with %s is a 503, and its connection is closed', async (_what, bytes) => {
    serve = (socket) => void socket.write(bytes, 'latin1')
    const { status, object } = await admin.get(`${base}/`)
    expect([status, object['message']]).toEqual([
      503,
      expect.stringMatching(/^error trying to reach service: ./),
    ])
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test('that never comes is a 503 when the connection ends', async () => {
    serve = (socket) => void socket.destroy()
    expect((await admin.get(`${base}/`)).status).toBe(503)
    expect(asked).toHaveLength(1)
  })

  test.each([
    ['a length', `${ok}Content-Length: 9\r\n\r\nok`],
    ['chunks', `${chunked}2\r\nok\r\n`],
  ])('that breaks off before the end of its %s breaks off at the client', async (_what, bytes) => {
    serve = (socket) => void socket.write(bytes)
    const answer = await begin()
    const [first] = (await once(answer, 'data')) as [Buffer]
    expect(String(first)).toBe('ok')
    const failed = once(answer, 'error')
    for (const socket of backend.open) socket.destroy()
    expect(String((await failed)[0])).toContain('aborted')
  })

  test('with a chunk that is none breaks off at the client', async () => {
    serve = (socket) => void socket.write(`${chunked}2\r\nok\r\n`)
    const answer = await begin()
    await once(answer, 'data')
    const failed = once(answer, 'error')
    for (const socket of backend.open) socket.write('zz\r\n')
    expect(String((await failed)[0])).toContain('aborted')
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test.each([
    ['at once', (socket: Socket) => void socket.write(short + short.replace('ok', 'no'))],
    [
      'later',
      (socket: Socket) => {
        socket.write(short)
        setImmediate(() => socket.write(short.replace('ok', 'no')))
      },
    ],
  ])('is followed by another one %s that nobody gets [ADDON-T35]', async (_when, twice) => {
    serve = twice
    expect((await admin.get(`${base}/a`)).text).toBe('ok')
    await eventually('the connection is closed', () => backend.open.size === 0)
    serve = (socket) => void socket.write(short)
    expect((await admin.get(`${base}/b`)).text).toBe('ok')
  })

  test.each([
    ['GET', 200],
    ['HEAD', 200],
    ['OPTIONS', 200],
    ['DELETE', 503],
    ['POST', 503],
  ])(
    'to %s is asked for again on another connection only if that is safe: %i',
    async (method, status) => {
      const used = new Set<Socket>()
      serve = (socket, head) => {
        if (used.has(socket)) socket.destroy()
        else socket.write(head.startsWith('HEAD') ? `${ok}Content-Length: 2\r\n\r\n` : short)
        used.add(socket)
      }
      expect((await admin.request(`${base}/`, { method })).status).toBe(200)
      expect((await admin.request(`${base}/`, { method })).status).toBe(status)
      expect(asked).toHaveLength(status === 200 ? 3 : 2)
    },
  )

  test('is not asked for again once a byte of it has come', async () => {
    const used = new Set<Socket>()
    serve = (socket) => {
      if (used.has(socket)) socket.end('H')
      else socket.write(short)
      used.add(socket)
    }
    expect((await admin.get(`${base}/`)).status).toBe(200)
    expect((await admin.get(`${base}/`)).status).toBe(503)
    expect(asked).toHaveLength(2)
  })

  test.each([
    ['before it has begun', undefined],
    ['while it comes', `${chunked}2\r\nok\r\n`],
  ])('is ended by a client that goes %s', async (_when, bytes) => {
    serve = (socket) => {
      if (bytes !== undefined) socket.write(bytes)
    }
    const request = admin.send(`${base}/`)
    request.on('error', () => {})
    if (bytes === undefined) await eventually('it is asked', () => asked.length === 1)
    else await once(request, 'response')
    expect(backend.open.size).toBe(1)
    request.destroy()
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test('that has no end waits for a client that reads nothing', async () => {
    serve = (socket) => {
      const piece = Buffer.alloc(64 * 1024)
      const more = (): void => {
        while (!socket.destroyed && socket.write(piece));
      }
      socket.write(`${ok}Content-Type: text/plain\r\n\r\n`)
      socket.on('drain', more)
      more()
    }
    const answer = await begin()
    const [{ socket } = { socket: undefined }] = asked
    if (!socket) throw new Error('nothing was asked')
    let before = 0
    let timesSeen = 0
    await eventually('it stands still', () => {
      timesSeen = before === socket.bytesWritten ? timesSeen + 1 : 0
      before = socket.bytesWritten
      return timesSeen === 20
    })
    expect(before).toBeLessThan(32 * 2 ** 20)
    answer.on('data', () => {})
    await eventually('it goes on', () => socket.bytesWritten > before + 2 ** 20)
    answer.destroy()
    await eventually('the connection is closed', () => backend.open.size === 0)
  })

  test('of events arrives as it is sent, its head first', async () => {
    serve = (socket) => void socket.write(`${ok}Content-Type: text/event-stream\r\n\r\n`)
    const answer = await begin()
    const [{ socket } = { socket: undefined }] = asked
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      const heard = once(answer, 'data')
      socket?.write(event)
      expect(String((await heard)[0])).toBe(event)
    }
    socket?.end('data: 3\n\n')
    expect(await text(answer)).toBe('data: 3\n\n')
  })

  test('may be asked for by HTTP/1.0 too, whose connections are kept only on request', async () => {
    let heads = ''
    serve = (socket, head) => {
      heads += head
      socket.write(short)
    }
    await admin.get(`${base}/`, { Connection: 'close' })
    expect(heads.match(/^connection: .*$/gim)).toEqual(['Connection: keep-alive'])
  })

  test('keeps the bytes of its headers', async () => {
    serve = (socket) =>
      void socket.write(`${ok}X-A: \t voil\xc3\xa0 \r\nContent-Length: 0\r\n\r\n`, 'latin1')
    expect((await admin.get(`${base}/`)).headers['x-a']).toBe('voil\xc3\xa0')
  })
})
