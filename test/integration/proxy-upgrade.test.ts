import { once } from 'node:events'
import { link, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import {
  type LabProxy,
  ProxyLab,
  untilText,
  websocketHeaders,
} from '../../src/local-proxy/proxy-lab.suite.ts'

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
