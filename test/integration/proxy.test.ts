import { once } from 'node:events'
import { link, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import { filterDefaults, proxyOptions } from '../../src/proxy/options/index.ts'
import {
  type LabProxy,
  ProxyLab,
  untilText,
  websocketHeaders,
} from '../../src/proxy/proxy-lab.suite.ts'

let lab: ProxyLab
let proxy: LabProxy
let directory: string

beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy()
  directory = await mkdtemp(join(tmpdir(), 'proxy-'))
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(async () => {
  await lab.close()
  await rm(directory, { recursive: true, force: true })
})

describe('[CRED-P1] a request', () => {
  test('goes to the cluster with the credential of the user', async () => {
    const answer = await proxy.ask('/api/v1/pods?limit=5&x=%2F', ['Accept: application/json'])
    expect(answer.status).toBe(200)
    const { url, rawHeaders } = lab.api.last
    expect(url).toBe('/api/v1/pods?limit=5&x=%2F')
    expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
    expect(rawHeaderValues(rawHeaders, 'host')).toEqual([new URL(lab.server).host])
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-for')).toEqual(['127.0.0.1'])
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s carries its body', async (method) => {
    const body = '{"a":1}'
    const request = httpRequest({ port: proxy.port, path: '/api/v1/x', method })
    request.setHeader('content-length', body.length)
    const [response] = (await once(request.end(body), 'response')) as [IncomingMessage]
    await text(response)
    expect(lab.api.last).toMatchObject({ method, body })
  })

  test.each(['POST', 'DELETE', 'GET'])('%s carries a body in chunks', async (method) => {
    const head = [`${method} /x HTTP/1.1`, 'Host: localhost', 'Connection: close'].join('\r\n')
    const chunks = '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    await proxy.raw(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`)
    expect(lab.api.last).toMatchObject({ method, body: 'abcde' })
  })

  test('without a body gets none', async () => {
    await proxy.ask('/x', [], 'POST')
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'transfer-encoding')).toEqual([])
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'content-length')).toEqual(['0'])
  })

  test('leaves behind what belongs to its own connection', async () => {
    await proxy.ask('/x', ['Keep-Alive: 1', 'TE: trailers', 'X-A: 1', 'X-Forwarded-For: 10.0.0.1'])
    const { rawHeaders } = lab.api.last
    expect(rawHeaderValues(rawHeaders, 'te')).toEqual([])
    expect(rawHeaderValues(rawHeaders, 'x-a')).toEqual(['1'])
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-for')).toEqual(['10.0.0.1, 127.0.0.1'])
  })

  test('that asks for HEAD gets the length and no body', async () => {
    lab.api.answers.set('/head', (_request, response) =>
      response.writeHead(200, { 'content-length': 1234 }).end(),
    )
    const answer = await proxy.ask('/head', [], 'HEAD')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '1234' }, body: '' })
  })

  test('to a server that is gone is answered with 502 and the reason', async () => {
    const gone = await ProxyLab.open()
    const alone = await gone.proxy()
    gone.api.close()
    const answer = await alone.ask('/api')
    await gone.close()
    expect(answer.status).toBe(502)
    expect(answer.body).toContain('ECONNREFUSED')
    expect(answer.body).not.toContain('janes-token')
  })
})

describe('a stream', () => {
  let held: ServerResponse
  const hold = (path: string): Promise<void> =>
    new Promise((resolve) => {
      lab.api.answers.set(path, (_request, response) => {
        held = response
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        resolve()
      })
    })

  test('of an answer arrives part by part, its head at once', async () => {
    const opened = hold('/watch')
    const request = httpRequest({ port: proxy.port, path: '/watch' }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await opened
    for (const part of ['one', 'two']) {
      held.write(part)
      const [chunk] = (await once(response, 'data')) as [Buffer]
      expect(String(chunk)).toBe(part)
    }
    held.end()
    await once(response, 'end')
  })

  test('that its client leaves is left at the server too', async () => {
    const opened = hold('/left')
    const request = httpRequest({ port: proxy.port, path: '/left' }).end()
    request.on('error', () => {})
    await Promise.all([once(request, 'response'), opened])
    request.destroy()
    await once(held, 'close')
    expect(held.writableFinished).toBe(false)
  })

  test('whose client leaves before it has begun is not begun', async () => {
    const asked = new Promise<IncomingMessage>((resolve) => {
      lab.api.answers.set('/slow', (request) => resolve(request))
    })
    const request = httpRequest({ port: proxy.port, path: '/slow' }).end()
    request.on('error', () => {})
    const { socket } = await asked
    request.destroy()
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })

  test('that breaks off at the server breaks off at the client', async () => {
    const opened = hold('/cut')
    const request = httpRequest({ port: proxy.port, path: '/cut' }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await opened
    held.destroy()
    await expect(text(response)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('that its client does not read is held back, both ways', async () => {
    const sent = { bytes: 0 }
    lab.api.answers.set('/flood', (_request, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      response.writeHead(200)
      const more = (): void => {
        while (sent.bytes < 256 * 1024 * 1024) {
          sent.bytes += chunk.length
          if (!response.write(chunk)) {
            response.once('drain', more)
            return
          }
        }
      }
      more()
    })
    const socket = await proxy.socket()
    socket.pause()
    socket.write('GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n')
    // The round trips of other requests are the clock: that nothing more comes has no event.
    for (let before = -1; before !== sent.bytes || before === 0; ) {
      before = sent.bytes
      for (let trip = 0; trip < 30; trip++) await proxy.ask('/x')
    }
    expect(sent.bytes).toBeLessThan(64 * 1024 * 1024)
    socket.destroy()
  })
})

describe('[CRED-P2] the filter', () => {
  const pod = '/api/v1/namespaces/a/pods/b'

  test.each([`${pod}/exec`, `${pod}/attach`, `${pod}/portforward`, `${pod}/e%78ec?command=sh`])(
    'rejects %s',
    async (path) => {
      for (const method of ['GET', 'POST'])
        expect((await proxy.ask(path, [], method)).status).toBe(403)
      const { head } = await proxy.handshake(path)
      expect(head.status).toBe(403)
      expect(lab.api.seen).toEqual([])
    },
  )

  test('rejects a path also if it is accepted, then a method, then what is not accepted', async () => {
    const filtered = await lab.proxy({
      filter: {
        ...filterDefaults,
        rejectPaths: '^/no',
        rejectMethods: 'POST,PUT',
        acceptPaths: '^/no,^/yes',
      },
    })
    const tried = async (path: string, method: string): Promise<string> => {
      const { status, body } = await filtered.ask(path, [], method)
      return `${status} ${/--[a-z-]+/.exec(body)?.[0] ?? ''}`
    }
    expect(await tried('/no', 'POST')).toBe('403 --reject-paths')
    expect(await tried('/yes', 'POST')).toBe('403 --reject-methods')
    expect(await tried('/other', 'GET')).toBe('403 --accept-paths')
    expect(await tried('/yes', 'GET')).toBe('200 ')
  })

  test('can be switched off', async () => {
    const open = await lab.unfiltered()
    const answer = await open.ask(`${pod}/exec`, ['Host: any.example.com', 'Origin: https://x.y'])
    expect(answer.status).toBe(200)
    await open.ask('/x', ['Authorization: Bearer evil'])
    expect(lab.api.last.rawHeaders.join()).not.toContain('evil')
  })

  test('takes hosts that the user names', async () => {
    const named = await lab.proxy({
      filter: { ...filterDefaults, acceptHosts: String.raw`^dev\.lan$` },
    })
    expect((await named.ask('/x', ['Host: dev.lan:8001'])).status).toBe(200)
    expect((await named.ask('/x', ['Host: localhost'])).status).toBe(403)
    expect((await named.ask('/x', ['Host: a.b.localhost'])).status).toBe(403)
  })
})

describe('[CRED-P3] paths of the proxy', () => {
  test('an API prefix is taken off, and nothing else is served', async () => {
    const custom = await lab.proxy({ apiPrefix: '/custom' })
    await custom.ask('/custom/api/v1?x=1')
    expect(lab.api.last.url).toBe('/api/v1?x=1')
    expect((await custom.ask('/api/v1')).status).toBe(404)
    expect((await custom.ask('/custom')).headers['location']).toBe('/custom/')
  })

  test.each([
    [true, '/clusters/c1/api'],
    [false, '/api'],
  ])('the path of the server is put before with --append-server-path=%j', async (append, url) => {
    const behind = await lab.proxy({ appendServerPath: append }, '/clusters/c1')
    await behind.ask('/api')
    expect(lab.api.last.url).toBe(url)
  })

  describe('static files', () => {
    let files: LabProxy

    beforeAll(async () => {
      const www = join(directory, 'www')
      await mkdir(join(www, 'sub'), { recursive: true })
      await mkdir(join(www, 'empty'))
      await Promise.all([
        writeFile(join(www, 'a.js'), '0123456789'),
        writeFile(join(www, 'sub', 'index.html'), '<p>sub'),
        writeFile(join(www, 'empty', '<b>&.txt'), 'x'),
        writeFile(join(directory, 'secret'), 'secret'),
        symlink(join(directory, 'secret'), join(www, 'out')),
        symlink(join(www, 'a.js'), join(www, 'in.js')),
      ])
      files = await lab.proxy({ www: { directory: www, prefix: '/static' } })
    })

    test.each([
      ['/static/a.js', 200, '0123456789'],
      ['/static/in.js', 200, '0123456789'],
      ['/static/sub/', 200, '<p>sub'],
      ['/static/nothing', 404, '404 page not found\n'],
      ['/static/out', 404, '404 page not found\n'],
      ['/static/%2e%2e/secret', 404, '404 page not found\n'],
      ['/static/..%2fsecret', 404, '404 page not found\n'],
      ['/static/a.js%00.txt', 404, '404 page not found\n'],
    ])('%s: %i', async (path, status, body) => {
      expect(await files.ask(path)).toMatchObject({ status, body })
    })

    test.each([
      ['/static/sub', 'sub/'],
      ['/static/a.js/', '../a.js'],
      ['/static/sub/index.html', './'],
    ])('%s moves to %s', async (path, location) => {
      expect(await files.ask(path)).toMatchObject({ status: 301, headers: { location } })
    })

    test('have a type, a date, and parts', async () => {
      const whole = await files.ask('/static/a.js')
      expect(whole.headers['content-type']).toBe('text/javascript; charset=utf-8')
      const part = await files.ask('/static/a.js', ['Range: bytes=2-4'])
      expect(part).toMatchObject({ status: 206, body: '234' })
      expect(part.headers['content-range']).toBe('bytes 2-4/10')
      const since = `If-Modified-Since: ${whole.headers['last-modified']}`
      expect((await files.ask('/static/a.js', [since])).status).toBe(304)
      expect((await files.ask('/static/a.js', ['Range: bytes=99-'])).status).toBe(416)
    })

    test('are listed where there is no index, with their names escaped', async () => {
      const { body } = await files.ask('/static/empty/')
      expect(body).toContain('<a href="./%3Cb%3E%26.txt">&lt;b&gt;&amp;.txt</a>')
    })

    test('are only read', async () => {
      expect((await files.ask('/static/a.js', [], 'POST')).status).toBe(405)
    })
  })
})

describe('[CRED-P4] a unix socket', () => {
  const askSocket = async (path: string): Promise<number | undefined> => {
    const request = httpRequest({ socketPath: path, path: '/api', headers: { host: 'localhost' } })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    await text(response)
    return response.statusCode
  }

  test('serves its owner only, and is gone when the proxy is', async () => {
    const path = join(directory, 'a.sock')
    const { proxy: local } = await lab.proxy({ listen: { unixSocket: path } })
    expect(local.address).toBe(path)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await askSocket(path)).toBe(200)
    await local.stop(AbortSignal.abort())
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('takes the place of a stale one', async () => {
    const path = join(directory, 'stale.sock')
    // A socket that nobody serves any more: its server has moved the name away before it closed.
    const old = createServer().listen(join(directory, 'old.sock'))
    await once(old, 'listening')

    await link(join(directory, 'old.sock'), path)
    old.close()
    await once(old, 'close')
    await lab.proxy({ listen: { unixSocket: path } })
    expect(await askSocket(path)).toBe(200)
  })

  test('that somebody serves, or that is a file, is left alone', async () => {
    const path = join(directory, 'live.sock')
    const live = createServer().listen(path)
    await once(live, 'listening')
    await expect(lab.proxy({ listen: { unixSocket: path } })).rejects.toThrow('a program answers')
    live.close()
    const file = join(directory, 'file')
    await writeFile(file, 'mine')
    await expect(lab.proxy({ listen: { unixSocket: file } })).rejects.toThrow('it is no socket')
  })

  test('in a directory that cannot be written to is refused', async () => {
    await expect(
      lab.proxy({ listen: { unixSocket: join(directory, 'none', 'a.sock') } }),
    ).rejects.toThrow('cannot listen on')
  })
})

describe('[CRED-P5] an upgrade', () => {
  test('to WebSocket passes with its query and carries bytes both ways', async () => {
    const { socket, head } = await proxy.handshake('/api/v1/ws?command=a&command=b%20c')
    expect(head.status).toBe(101)
    expect(head.headers['sec-websocket-accept']).toBe('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    const { url, rawHeaders } = lab.api.last
    expect(url).toBe('/api/v1/ws?command=a&command=b%20c')
    expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
    socket.write('ping')
    expect(await untilText(socket, 'ping')).toBe('ping')
  })

  test('to SPDY passes by POST, and its bytes are unchanged', async () => {
    const bytes = Buffer.from([0x80, 3, 0, 1, 0, 0, 0, 12, 0xff, 0xfe, 13, 10, 13, 10])
    const socket = await proxy.socket()
    const lines = [
      'POST /api/v1/namespaces/a/services/b/proxy/x?stdin=true HTTP/1.1',
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: SPDY/3.1',
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      'X-Stream-Protocol-Version: v3.channel.k8s.io',
      'Content-Length: 0',
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    expect(await untilText(socket, '\r\n\r\n')).toMatch(/^HTTP\/1.1 101 .*Upgrade: SPDY\/3.1/s)
    socket.write(bytes)
    expect(Buffer.from(await untilText(socket, '\r\n\r\n'), 'latin1')).toEqual(bytes)
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'x-stream-protocol-version')).toEqual([
      'v4.channel.k8s.io',
      'v3.channel.k8s.io',
    ])
    expect(lab.api.last.method).toBe('POST')
  })

  test('ends on both sides, whoever ends it', async () => {
    const first = await proxy.handshake('/ws')
    const server = lab.api.upgraded.at(-1)
    first.socket.destroy()
    await once(server!, 'close')
    expect(server?.destroyed).toBe(true)
    const second = await proxy.handshake('/ws')
    lab.api.upgraded.at(-1)?.destroy()
    await once(second.socket.resume(), 'close')
    expect(second.socket.destroyed).toBe(true)
  })

  test.each([
    ['403 Forbidden', ['X-App: yes', 'Content-Length: 5'], 'never', { 'x-app': 'yes' }],
    ['403 Forbidden', ['Transfer-Encoding: chunked'], 'never', {}],
    ['200 OK', ['Content-Type: text/plain', 'Content-Length: 5'], 'never', {}],
    ['204 No Content', ['X-App: yes'], '', { 'x-app': 'yes' }],
    ['302 Found', ['Location: /login', 'Content-Length: 0'], '', { location: '/login' }],
    [
      '302 Found',
      ['Location: /api/v1/namespaces/a/services/b/proxy/login', 'Content-Length: 0'],
      '',
      { location: '/api/v1/namespaces/a/services/b/proxy/login' },
    ],
  ])(
    'that is answered %s reaches the client as the very answer %#',
    async (status, lines, body, kept) => {
      const path = '/api/v1/namespaces/a/services/b/proxy/ws'
      const isChunked = lines.includes('Transfer-Encoding: chunked')
      const sent = isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
      lab.api.upgradeAnswers.set(path, [`HTTP/1.1 ${status}`, ...lines, '', sent].join('\r\n'))
      const head = [`GET ${path} HTTP/1.1`, 'Host: localhost', ...websocketHeaders].join('\r\n')
      const answer = await proxy.raw(`${head}\r\n\r\n`)
      lab.api.upgradeAnswers.delete(path)
      expect(answer).toMatchObject({ status: Number.parseInt(status), body, headers: kept })
      expect(answer.headers['connection']).toBe('close')
    },
  )

  test('keeps what the client has sent early until the server agrees', async () => {
    const socket = await proxy.socket()
    const head = ['GET /ws HTTP/1.1', 'Host: localhost', ...websocketHeaders].join('\r\n')
    socket.write(`${head}\r\n\r\nearly`)
    expect(await untilText(socket, 'early')).toMatch(/^HTTP\/1.1 101/)
  })

  test('is cut when the proxy stops', async () => {
    const own = await lab.proxy()
    const { socket } = await own.handshake('/ws')
    await own.proxy.stop(AbortSignal.abort())
    await once(socket.resume(), 'close')
    expect(socket.destroyed).toBe(true)
  })

  test.runIf(process.platform === 'linux').each([
    [0, 0, 15],
    [60_000, 15, 60],
  ])(
    'with --keepalive of %i ms asks after %i to %i seconds of silence',
    async (ms, above, below) => {
      const own = await lab.proxy({ keepAliveMs: ms })
      const { socket } = await own.handshake('/ws')
      const toServer = lab.api.upgraded.at(-1)
      if (!(toServer instanceof TLSSocket)) throw new Error('no connection to the server')
      for (const port of [socket.localPort, toServer.remotePort]) {
        // The timer is set when what was sent is acknowledged, of which nothing tells us.
        let seconds = Number.NaN
        while (Number.isNaN(seconds)) {
          await proxy.ask('/x')
          seconds = await keepAliveTimer(port ?? 0)
        }
        expect(seconds).toBeGreaterThan(above)
        expect(seconds).toBeLessThanOrEqual(below)
      }
    },
  )
})

/** Seconds until the kernel asks whether the peer of the proxy is still there; not a number if it will not. */
async function keepAliveTimer(port: number): Promise<number> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const ends = (await readFile('/proc/net/tcp', 'utf8'))
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  // Of the two ends of a connection on this machine, the proxy's is the one that asks.
  const timers = ends
    .filter(([, local = '', remote = '']) => `${local} ${remote}`.includes(`:${hex}`))
    .map((fields) => fields[5] ?? '')
    .filter((timer) => timer.startsWith('02:'))
  return Number.parseInt(timers[0]?.slice(3) ?? '', 16) / 100
}

test('[CRED-P1] the flags have the defaults of kubectl', () => {
  const defaults = Object.fromEntries(
    Object.entries(proxyOptions).map(([name, option]) => [
      name,
      'default' in option ? option.default : undefined,
    ]),
  )
  expect(defaults).toMatchObject({
    port: 8001,
    address: '127.0.0.1',
    'api-prefix': '/',
    'www-prefix': '/static/',
    'accept-hosts': String.raw`^localhost$,^127\.0\.0\.1$,^\[::1\]$`,
    'accept-paths': '^.*',
    'reject-methods': '^$',
    'disable-filter': false,
    'append-server-path': false,
    keepalive: 0,
  })
})
