import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  type GuardLab,
  type LabAddon,
  sendRaw,
  startGuardLab,
} from '../../src/addon/guard/guard-lab.suite.ts'
import { defaultGuardLimits } from '../../src/addon/guard/index.ts'

const labs: GuardLab[] = []
const start: typeof startGuardLab = async (options) => {
  const lab = await startGuardLab(options)
  labs.push(lab)
  return lab
}
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.stop()
})

const head = (first: string, ...lines: readonly string[]): string =>
  [first, 'Host: a', ...lines, '', ''].join('\r\n')
const auth = (lab: GuardLab, sub = 'bob'): string =>
  `Authorization: Bearer ${lab.token({ claims: { sub } })}`

const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()))

/** A connection whose bytes are collected. */
async function open(port: number): Promise<{ socket: Socket; heard: () => string }> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return { socket, heard: () => text }
}

describe('requests on one connection', () => {
  test('are judged one by one: a pipelined one without a token is refused [ADDON-T34]', async () => {
    const lab = await start()
    const first = head('GET /1 HTTP/1.1', auth(lab), 'Content-Length: 3')
    const second = head('GET /2 HTTP/1.1', 'Connection: close')
    const { text } = await sendRaw(lab.port, `${first}abc${second}`, { untilClose: true })
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 403'])
    expect(lab.addon.seen.map(({ url, body }) => [url, body])).toEqual([['/1', 'abc']])
  })

  test('end with one that can be read in two ways: nothing behind it is read [ADDON-T33]', async () => {
    const lab = await start()
    const bad = head('GET /1 HTTP/1.1', auth(lab), 'Host: b')
    const good = head('GET /2 HTTP/1.1', auth(lab))
    const { text, closed } = await sendRaw(lab.port, bad + good, { untilClose: true })
    expect([text.match(/HTTP\/1\.1 \d+/g), closed]).toEqual([['HTTP/1.1 400'], true])
    await sendRaw(lab.port, head('GET /3 HTTP/1.1', auth(lab)))
    expect(lab.addon.seen.map(({ url }) => url)).toEqual(['/3'])
  })

  test('of users that follow each other never mix, on one connection to the add-on [ADDON-T35]', async () => {
    const lab = await start()
    const users = ['ann', 'bob', 'ann', '山', 'eve']
    const seen: string[] = []
    for (const user of users) {
      await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab, user)))
      seen.push(decodeURIComponent(lab.addon.values('x-authenticated-user').join(' & ')))
    }
    expect(seen).toEqual(users)
    expect(lab.addon.connections).toBe(1)
    expect(lab.addon.values('x-authenticated-user-encoding')).toEqual([])
  })
})

describe('large and slow', () => {
  test('headers beyond the limit are a 431 [ADDON-T32]', async () => {
    const lab = await start()
    const { status } = await sendRaw(lab.port, head('GET / HTTP/1.1', `A: ${'x'.repeat(33_000)}`))
    expect([status, lab.addon.connections]).toEqual([431, 0])
  })

  test('two hundred headers go through, none is lost [ADDON-T32]', async () => {
    const lab = await start()
    const many = Array.from({ length: 200 }, (_, index) => `X-${index}: ${index}`)
    expect((await sendRaw(lab.port, head('GET / HTTP/1.1', ...many, auth(lab)))).status).toBe(200)
    expect(lab.addon.values('x-199')).toEqual(['199'])
    expect(lab.addon.values('x-authenticated-user')).toEqual(['bob'])
  })

  test('slow headers are cut, and others do not notice [ADDON-T36, ADDON-R42]', async () => {
    const lab = await start({ limits: { headersTimeoutMs: 200 } })
    const { socket, heard } = await open(lab.port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n')
    const closed = closeOf(socket)
    expect((await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))).status).toBe(200)
    await closed
    expect(heard()).toMatch(/^HTTP\/1\.1 408 /)
    expect(lab.addon.seen).toHaveLength(1)
  })

  test('chunk extensions without end are refused [ADDON-T36]', async () => {
    const lab = await start()
    const { socket } = await open(lab.port)
    const closed = closeOf(socket)
    socket.write(head('POST / HTTP/1.1', auth(lab), 'Transfer-Encoding: chunked'))
    const more = (): void => {
      while (socket.writable && socket.write(`1;${'x'.repeat(16_384)}`))
        if (socket.destroyed) return
    }
    socket.on('drain', more)
    more()
    await closed
    expect(socket.bytesWritten).toBeLessThan(10 * 1024 * 1024)
    expect(lab.addon.seen).toEqual([])
  })

  test('a slow body is cut at the maximum age [ADDON-T36, ADDON-R42]', async () => {
    const lab = await start({ limits: { maxRequestMs: 300 } })
    const { socket, heard } = await open(lab.port)
    socket.write(`${head('POST / HTTP/1.1', auth(lab), 'Content-Length: 10')}a`)
    await closeOf(socket)
    expect(heard()).toMatch(/^HTTP\/1\.1 (504|408) /)
    expect(lab.addon.seen).toEqual([])
  })

  test('an answer without end is cut at the maximum age, with its own reason [ADDON-T49]', async () => {
    const lab = await start({ limits: { maxRequestMs: 2_000 } })
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
    }
    const { text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)), {
      untilClose: true,
    })
    expect(text).toContain('data: 1')
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"too-old"'))
  })

  test('an add-on that says nothing is a 504 at the maximum age', async () => {
    const lab = await start({ limits: { maxRequestMs: 200 } })
    lab.addon.onRequest = () => {}
    const { status, body } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect([status, JSON.parse(body)]).toMatchObject([504, { reason: 'too-old' }])
  })
})

describe('answers', () => {
  test('of events arrive as they are sent [ADDON-G4]', async () => {
    const lab = await start()
    let send = (_event: string): void => {}
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
      send = (event) => void response.write(`data: ${event}\n\n`)
    }
    const { socket, heard } = await open(lab.port)
    socket.write(head('GET / HTTP/1.1', auth(lab)))
    await vi.waitFor(() => expect(heard()).toContain('text/event-stream'))
    send('first')
    await vi.waitFor(() => expect(heard()).toContain('data: first'))
    send('second')
    await vi.waitFor(() => expect(heard()).toContain('data: second'))
    socket.destroy()
  })

  test('that redirect are passed on and never followed [ADDON-T54]', async () => {
    const lab = await start()
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(302, { Location: 'http://169.254.169.254/' }).end()
    }
    const { status, text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect([status, lab.addon.seen.length]).toEqual([302, 1])
    expect(text).toContain('Location: http://169.254.169.254/')
  })

  test.each([
    [undefined, 'private'],
    ['public, max-age=60', 'private, max-age=60'],
    ['max-age=60', 'private, max-age=60'],
    ['s-maxage=9, max-age=60', 'private, max-age=60'],
    ['no-store', 'no-store'],
    ['private="set-cookie", max-age=60', 'private, max-age=60'],
    ['max-age=60, x="no-store', 'private, max-age=60, x="no-store'],
  ])('with Cache-Control %s are for one user: %s [ADDON-T59]', async (said, expected) => {
    const lab = await start()
    lab.addon.onRequest = (_request, response) => {
      response.writeHead(200, said === undefined ? {} : { 'Cache-Control': said }).end('x')
    }
    const { text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(/\r\nCache-Control: (.*)\r\n/i.exec(text)?.[1]).toBe(expected)
  })

  test.each([
    ['GET', ''],
    ['POST', 'x'],
  ])(
    'to %s have the trailers that they announce, if they decide nothing [ADDON-X5]',
    async (method, body) => {
      const lab = await start()
      const trailers = 'Grpc-Status: 0\r\nSet-Cookie: a=b\r\nX-Late: 1\r\n'
      lab.addon.onRequest = (request) =>
        void request.socket.write(
          `HTTP/1.1 200 OK\r\nTrailer: Grpc-Status, Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n${trailers}\r\n`,
        )
      const lines = ['TE: trailers', 'Connection: close', `Content-Length: ${body.length}`]
      const asked = head(`${method} / HTTP/1.1`, auth(lab), ...lines.slice(0, body ? 3 : 2))
      const { text } = await sendRaw(lab.port, asked + body, { untilClose: true })
      expect(text).toMatch(/\r\nTrailer: Grpc-Status\r\n/)
      expect(text.endsWith('2\r\nhi\r\n0\r\nGrpc-Status: 0\r\n\r\n')).toBe(true)
      expect(lab.addon.values('te')).toEqual(['trailers'])
    },
  )

  test.each([204, 304])(
    'of %i have no trailers, whatever they announce [ADDON-X5]',
    async (code) => {
      const lab = await start()
      lab.addon.onRequest = ({ socket }) =>
        void socket.write(
          `HTTP/1.1 ${code} X\r\nTrailer: Digest\r\nTransfer-Encoding: chunked\r\n\r\n`,
        )
      for (const lines of [[], ['Content-Length: 0']]) {
        const { status, text } = await sendRaw(
          lab.port,
          head('GET / HTTP/1.1', auth(lab), ...lines),
        )
        expect([status, text.includes('Digest')]).toEqual([code, false])
      }
    },
  )

  test('with a status that is none are a 502, to an upgrade too [ADDON-X3]', async () => {
    const lab = await start()
    const bytes = 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'
    lab.addon.onRequest = ({ socket }) => void socket.end(bytes)
    lab.addon.onUpgrade = (_request, socket) => void socket.end(bytes)
    for (const lines of [[], ['Content-Length: 0'], websocket]) {
      const { body } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab), ...lines))
      expect(JSON.parse(body)).toMatchObject({
        code: 502,
        reason: expect.stringMatching(/^addon-/),
      })
    }
  })

  test('keep the last letter of a header in UTF-8', async () => {
    const lab = await start()
    lab.addon.onRequest = (request) =>
      void request.socket.write(
        'HTTP/1.1 204 No Content\r\nX-A: \t voil\xc3\xa0 \r\n\r\n',
        'latin1',
      )
    const { text } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(text).toContain('\r\nX-A: voil\xc3\xa0\r\n')
  })

  test.each(['GET', 'POST'])(
    'to %s that are hints without end are a 502 [ADDON-X3]',
    async (method) => {
      const lab = await start()
      lab.addon.onRequest = ({ socket }) => {
        const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(20)
        const more = (): void => {
          while (!socket.destroyed && socket.write(hints));
        }
        socket.on('drain', more).on('error', () => {})
        more()
      }
      const { status } = await sendRaw(
        lab.port,
        head(`${method} / HTTP/1.1`, auth(lab), 'Content-Length: 0'),
      )
      expect(status).toBe(502)
    },
  )

  test('of another protocol that nobody asked for are a 502 [ADDON-X3]', async () => {
    const lab = await start()
    lab.addon.onRequest = ({ socket }) =>
      void socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: Upgrade\r\n\r\n',
      )
    for (const lines of [[], ['Content-Length: 0']])
      expect((await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab), ...lines))).status).toBe(
        502,
      )
  })

  test('that come before the request was read end it, whoever goes on sending [ADDON-X9]', async () => {
    const early = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno')
      })
    })
    early.listen(0, '127.0.0.1')
    await once(early, 'listening')
    const { port } = early.address() as AddressInfo
    const guarded = await start({
      ports: [{ listenPort: 0, forward: { host: '127.0.0.1', port } }],
      limits: { lingerMs: 100 },
    })
    const token = `Authorization: Bearer ${guarded.token()}`
    const { socket, heard } = await open(guarded.port)
    socket.write(head('POST / HTTP/1.1', token, `Content-Length: ${2 ** 30}`))
    const piece = Buffer.alloc(2 ** 20)
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    }
    socket.on('drain', more)
    more()
    await closeOf(socket)
    expect(heard()).toMatch(/^HTTP\/1\.1 413 [^]*no$/)
    early.close()
  })

  test('that are not HTTP, or none, are a 502 with a reason', async () => {
    const lab = await start()
    lab.addon.onRequest = (request) => void request.socket.end('SSH-2.0-x\r\n')
    const { status, body } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect([status, JSON.parse(body)]).toMatchObject([502, { reason: 'addon-answer-unusable' }])
    lab.addon.onRequest = (request) => void request.socket.destroy()
    const { body: second } = await sendRaw(lab.port, head('POST / HTTP/1.1', auth(lab)))
    expect(JSON.parse(second)).toMatchObject({ reason: 'addon-broke-off' })
    await lab.addon.stop()
    const { body: third } = await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    expect(JSON.parse(third)).toMatchObject({ code: 502, reason: 'addon-unreachable' })
    await lab.addon.start()
  })
})

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const websocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  `Sec-WebSocket-Key: ${key}`,
]
const accepted = createHash('sha1')
  .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest('base64')

/** An add-on that speaks: it says hello and sends everything back. */
function echoing(addon: LabAddon): Duplex[] {
  const joined: Duplex[] = []
  addon.onUpgrade = (request, socket) => {
    joined.push(socket)
    const user = String(request.headers['x-authenticated-user'])
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\nhello ${user} at ${request.url};`,
    )
    socket.pipe(socket)
  }
  return joined
}

async function openTunnel(lab: GuardLab, token = auth(lab)) {
  const tunnel = await open(lab.port)
  tunnel.socket.write(head('GET /ws?a=b HTTP/1.1', token, ...websocket))
  await vi.waitFor(() => expect(tunnel.heard()).toContain(';'))
  return { ...tunnel, id: /\r\nSallyport-Tunnel: (\w+)/.exec(tunnel.heard())?.[1] ?? '' }
}

describe('a WebSocket', () => {
  test('reaches the add-on with its user and its query, both ways [ADDON-G4]', async () => {
    const lab = await start()
    echoing(lab.addon)
    const { socket, heard } = await openTunnel(lab)
    expect(heard()).toMatch(/^HTTP\/1\.1 101 /)
    expect(heard()).toContain('hello bob at /ws?a=b;')
    socket.write('ping')
    await vi.waitFor(() => expect(heard()).toContain('ping'))
    socket.end()
    await closeOf(socket)
  })

  test.each<readonly [string, string, number, readonly string[]]>([
    [
      'T44',
      'h2c',
      400,
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
    ],
    ['T45', 'another protocol', 400, ['Connection: Upgrade', 'Upgrade: foo']],
    ['T45', 'two protocols', 400, [...websocket, 'Upgrade: h2c']],
    ['T45', 'no key', 400, websocket.slice(0, 3)],
    [
      'T45',
      'version 12',
      426,
      [...websocket.slice(0, 2), 'Sec-WebSocket-Version: 12', `Sec-WebSocket-Key: ${key}`],
    ],
    ['T45', 'a body', 400, [...websocket, 'Content-Length: 5']],
  ])('[ADDON-%s] %s is refused without a connection: %i', async (_number, _what, status, lines) => {
    const lab = await start()
    const { text, closed } = await sendRaw(
      lab.port,
      `${head('GET / HTTP/1.1', auth(lab), ...lines)}PRI * HTTP/2.0`,
      { untilClose: true },
    )
    expect([Number(text.slice(9, 12)), closed, lab.addon.connections]).toEqual([status, true, 0])
  })

  test('without a token is a 403 without a connection [ADDON-R32]', async () => {
    const lab = await start()
    const { status, body } = await sendRaw(lab.port, head('GET / HTTP/1.1', ...websocket))
    expect([status, JSON.parse(body)]).toMatchObject([403, { reason: 'no-token' }])
    expect(lab.addon.connections).toBe(0)
  })

  test.each([200, 401, 426])(
    'that the add-on answers with %i ends there: nothing is smuggled behind it [ADDON-T46, ADDON-T47]',
    async (status) => {
      const lab = await start()
      const behind: string[] = []
      lab.addon.onUpgrade = (_request, socket) => {
        socket.on('data', (chunk: Buffer) => behind.push(String(chunk)))
        socket.write(`HTTP/1.1 ${status} X\r\nContent-Length: 2\r\n\r\nno`)
      }
      const smuggled = head('GET /smuggled HTTP/1.1', 'X-Authenticated-User: root')
      const { text, closed } = await sendRaw(
        lab.port,
        head('GET / HTTP/1.1', auth(lab), ...websocket) + smuggled,
        { untilClose: true },
      )
      expect([Number(text.slice(9, 12)), text.endsWith('no'), closed]).toEqual([status, true, true])
      expect([behind, lab.addon.seen]).toEqual([[], []])
    },
  )

  test('ends when its token ends, at both ends and with a reason [ADDON-T48, ADDON-R43]', async () => {
    const lab = await start()
    const [now] = [Math.floor(lab.clock.now() / 1000)]
    const joined = echoing(lab.addon)
    // The leeway of ten seconds is over in a moment.
    const token = lab.token({ claims: { iat: now - 30, nbf: now - 30, exp: now - 9 } })
    const { socket } = await openTunnel(lab, `Authorization: Bearer ${token}`)
    await closeOf(socket)
    await vi.waitFor(() => expect(joined[0]?.destroyed).toBe(true))
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"token-expired"'))
  })

  test('ends at its maximum age, however fresh its token [ADDON-T48, ADDON-R43]', async () => {
    const lab = await start({ limits: { maxTunnelMs: 300 } })
    const joined = echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    await closeOf(socket)
    await vi.waitFor(() => expect(joined[0]?.destroyed).toBe(true))
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"too-old"'))
  })

  test.each([
    ['says nothing', '', 504],
    ['refuses and never ends', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nno', 200],
  ])(
    'that an add-on %s to ends at the maximum age of a request [ADDON-X10]',
    async (_what, said, status) => {
      const lab = await start({ limits: { maxRequestMs: 300 } })
      lab.addon.onUpgrade = (_request, socket) => void (said && socket.write(said))
      const { socket, heard } = await open(lab.port)
      socket.write(head('GET / HTTP/1.1', auth(lab), ...websocket))
      await closeOf(socket)
      expect(heard().slice(9, 12)).toBe(String(status))
    },
  )

  test('whose add-on names it does not have two names', async () => {
    const lab = await start()
    lab.addon.onUpgrade = (_request, socket) =>
      void socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSallyport-Tunnel: x\r\n\r\n;`,
      )
    const { socket, heard } = await openTunnel(lab)
    expect(heard().match(/Sallyport-Tunnel/gi)).toHaveLength(1)
    socket.destroy()
  })

  test('that is idle for too long ends', async () => {
    const lab = await start({ limits: { tunnelIdleMs: 200 } })
    echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    await closeOf(socket)
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"idle"'))
  })

  test('lives on with a fresh token of the same user, and of nobody else [ADDON-G4]', async () => {
    const lab = await start()
    echoing(lab.addon)
    const now = Math.floor(lab.clock.now() / 1000)
    const short = lab.token({ claims: { iat: now - 30, nbf: now - 30, exp: now - 8 } })
    const { socket, heard, id } = await openTunnel(lab, `Authorization: Bearer ${short}`)
    const other = await openTunnel(lab, `Authorization: Bearer ${short}`)
    const renew = (token: string, which = id) =>
      sendRaw(lab.port, head('POST / HTTP/1.1', token, `Sallyport-Renew-Tunnel: ${which}`))
    expect((await renew(auth(lab, 'eve'))).status).toBe(403)
    expect((await renew(auth(lab), 'ffff')).status).toBe(403)
    expect((await renew(auth(lab))).status).toBe(204)
    expect(lab.addon.seen).toEqual([])
    // Another one of the same token has ended by now.
    await closeOf(other.socket)
    socket.write('still here')
    await vi.waitFor(() => expect(heard()).toContain('still here'))
    socket.destroy()
  })

  test('is cut when the guard ends', async () => {
    const lab = await start()
    echoing(lab.addon)
    const { socket } = await openTunnel(lab)
    const closed = closeOf(socket)
    await lab.guard.stop(AbortSignal.timeout(5_000))
    await closed
    await vi.waitFor(() => expect(lab.logged.join('')).toContain('"reason":"shutting-down"'))
  })
})

test('bytes that are not HTTP get a 400 and are closed [ADDON-R41, ADDON-R6]', async () => {
  const lab = await start()
  for (const bytes of [
    'PING\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]) {
    const { text, closed } = await sendRaw(lab.port, Buffer.from(bytes, 'latin1'), {
      untilClose: true,
    })
    expect([text.slice(0, 12), closed]).toEqual(['HTTP/1.1 400', true])
  }
  expect(lab.addon.connections).toBe(0)
})

describe('the health port', () => {
  const ask = async (lab: GuardLab, path: string, port = lab.healthPort) =>
    (await sendRaw(port, head(`GET ${path} HTTP/1.1`, 'User-Agent: kube-probe/1.31'))).status

  test('has exact paths only, and its own port only [ADDON-T39, ADDON-G5]', async () => {
    const lab = await start()
    const paths = ['/healthz', '/livez', '/readyz', '/metrics', '/probe']
    expect(await Promise.all(paths.map((path) => ask(lab, path)))).toEqual([
      200, 200, 200, 200, 200,
    ])
    const odd = ['/healthz/../admin', '/healthz?x', '/HEALTHZ', '/probe?x', '/probe/', '/']
    expect(await Promise.all(odd.map((path) => ask(lab, path)))).toEqual(odd.map(() => 404))
    expect(lab.addon.seen.map(({ url }) => url)).toEqual(['/probe'])
    expect(await Promise.all(paths.map((path) => ask(lab, path, lab.port)))).toEqual(
      paths.map(() => 403),
    )
  })

  test('answers though somebody holds all connections of the other [ADDON-X11]', async () => {
    const lab = await start({ limits: { maxConnections: 2 } })
    const held = [await open(lab.port), await open(lab.port)]
    const third = await open(lab.port)
    await closeOf(third.socket)
    expect(await ask(lab, '/healthz')).toBe(200)
    for (const { socket } of held) socket.destroy()
  })

  test('counts by status and reason [ADDON-G5]', async () => {
    const lab = await start()
    await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))
    await sendRaw(lab.port, head('GET / HTTP/1.1'))
    await vi.waitFor(async () => {
      const { body } = await sendRaw(lab.healthPort, head('GET /metrics HTTP/1.1'))
      expect(body).toContain('sallyport_guard_requests_total{code="200",reason="ok"} 1')
      expect(body).toContain('sallyport_guard_requests_total{code="403",reason="no-token"} 1')
    })
  })
})

test('the access log tells user, path and reason as JSON, and no credential or query [ADDON-G5, ADDON-T64]', async () => {
  const lab = await start()
  const secrets = ['?key=s3cret', 'Cookie: session=c00kie']
  const lines = [auth(lab), secrets[1] ?? '', 'Audit-Id: 0a-1']
  await sendRaw(lab.port, head(`GET /a${secrets[0]} HTTP/1.1`, ...lines))
  await sendRaw(
    lab.port,
    head('GET /b HTTP/1.1', 'Authorization: Bearer abc.def.ghi', 'Audit-Id: 0a-2'),
  )
  await sendRaw(lab.port, head('GET /c HTTP/1.1', 'Authorization: Basic cm9vdDpwdw=='))
  await vi.waitFor(() => expect(lab.logged.join('')).toContain('/c'))
  const told = lab.logged
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(told).toMatchObject([
    { path: '/a', user: 'bob', audience: 'kube-system/dashboard', status: 200, auditId: '0a-1' },
    { path: '/b', status: 403, reason: 'bad-header' },
    { path: '/c', status: 403, reason: 'malformed' },
  ])
  expect(lab.logged.join('')).not.toMatch(/s3cret|c00kie|abc\.def|cm9vd|eyJ|0a-2/)
})

test('a refusal tells a reason and nothing of the request, and asks for no password [ADDON-R32, ADDON-R5]', async () => {
  const lab = await start()
  const { text, body } = await sendRaw(
    lab.port,
    head('GET /secret HTTP/1.1', 'Authorization: Bearer a.b.c'),
  )
  expect(JSON.parse(body)).toEqual({ code: 403, reason: 'malformed', message: expect.any(String) })
  expect(text).not.toMatch(/www-authenticate|secret|a\.b\.c/i)
})

test('one address per listener: the add-on keeps the same port on loopback [ADDON-R37, ADDON-R30]', async () => {
  const lab = await start()
  const other = await start({
    addresses: ['127.0.0.2'],
    ports: [{ listenPort: lab.addon.port, forward: { host: '127.0.0.1', port: lab.addon.port } }],
  })
  expect(other.guard.places[0]).toBe(`127.0.0.2:${lab.addon.port}`)
})

test.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::ffff:0.0.0.0', '::FFFF:0:0'])(
  'the wildcard %s is refused [ADDON-R37]',
  async (address) => {
    await expect(startGuardLab({ addresses: [address] })).rejects.toThrow('never on all')
  },
)

test('several port pairs are served by one guard [ADDON-G1]', async () => {
  const lab = await start()
  const second = await start()
  const pair = (port: number) => ({ listenPort: 0, forward: { host: '127.0.0.1', port } })
  const both = await start({
    ports: [pair(lab.addon.port), pair(second.addon.port)],
    audiences: dashboardOnly,
  })
  const [first = 0, next = 0] = both.guard.places.map((place) => Number(place.split(':')[1]))
  const token = `Authorization: Bearer ${both.token()}`
  await sendRaw(first, head('GET /one HTTP/1.1', token))
  await sendRaw(next, head('GET /two HTTP/1.1', token))
  expect([lab.addon.seen[0]?.url, second.addon.seen[0]?.url]).toEqual(['/one', '/two'])
})

const dashboardOnly = {
  has: (audience: string) => audience === 'kube-system/dashboard',
  problem: undefined,
}

test('groups, uid and impersonation are told when asked for, whatever is in them [ADDON-G2, ADDON-T15]', async () => {
  const lab = await start({
    output: {
      userHeader: 'X-Remote-User',
      groupsHeader: 'X-Authenticated-Groups',
      uidHeader: 'X-Authenticated-Uid',
      impersonation: true,
    },
  })
  const claims = {
    sub: '山田',
    uid: 'u,1',
    groups: ['a,b', 'c|d', '組'],
    'k8s.extra': { 'example.com/Scope': ['x'] },
  }
  const forged = ['X-Remote-User: root', 'Impersonate-Group: system:masters']
  const token = `Authorization: Bearer ${lab.token({ claims })}`
  expect((await sendRaw(lab.port, head('GET / HTTP/1.1', token, ...forged))).status).toBe(200)
  const { addon } = lab
  expect(addon.values('x-remote-user')).toEqual(['%E5%B1%B1%E7%94%B0'])
  expect(addon.values('x-remote-user-encoding')).toEqual(['percent'])
  expect(addon.values('x-authenticated-uid')).toEqual(['u%2C1'])
  expect(JSON.parse(addon.values('x-authenticated-groups')[0] ?? '')).toEqual(claims.groups)
  const utf8 = (text: string): string => Buffer.from(text, 'latin1').toString('utf8')
  expect(addon.values('impersonate-user').map(utf8)).toEqual(['山田'])
  expect(addon.values('impersonate-group').map(utf8)).toEqual(claims.groups)
  expect(addon.values('impersonate-extra-example-com%2fscope')).toEqual(['x'])
})

test('limits have defaults that end everything', () => {
  for (const limit of Object.values(defaultGuardLimits)) expect(limit).toBeLessThan(24 * 3_600_000)
})
