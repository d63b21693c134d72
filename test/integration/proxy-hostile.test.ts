import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Secret } from '../../src/core/index.ts'
import { type CredentialSource, staticTrust } from '../../src/credentials/index.ts'
import { Connections } from '../../src/credentials/transport/index.ts'
import { type LabProxy, ProxyLab, websocketHeaders } from '../../src/local-proxy/proxy-lab.suite.ts'
import { transportOn } from '../../src/local-proxy/transport.ts'

let lab: ProxyLab
let proxy: LabProxy
const logged: string[] = []
const record = (fields: object, message: string): void => {
  const err = 'err' in fields && fields.err instanceof Error ? (fields.err.stack ?? '') : ''
  logged.push(`${message} ${JSON.stringify(fields)} ${err}`)
}
const log = {
  error: record,
  warn: record,
  info: record,
  debug: record,
  trace: record,
  child: () => log,
}

beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy({ log })
})
beforeEach(() => {
  lab.api.seen.length = 0
  logged.length = 0
})
afterAll(() => lab.close())

const upgrade = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${websocketHeaders.join('\r\n')}\r\n\r\n`

describe('[CRED-P14] an upgrade in one packet with other requests', () => {
  test('is not read behind one that can be read in two ways', async () => {
    const socket = await proxy.socket()
    socket.write(`GET /a HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n${upgrade('/b')}`)
    socket.resume()
    await once(socket, 'close')
    expect(lab.api.seen).toEqual([])
  })

  test('is not answered before a request that came first', async () => {
    let asked = (): void => {}
    const open = new Promise<void>((resolve) => (asked = resolve))
    lab.api.answers.set('/slow', () => asked())
    const socket = await proxy.socket()
    let answer = ''
    socket.on('data', (chunk) => (answer += String(chunk)))
    socket.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await open
    socket.write(upgrade('/b'))
    await once(socket, 'close')
    expect(answer).toBe('')
    expect(lab.api.seen.map(({ url }) => url)).toEqual(['/slow'])
  })
})

test('an answer that comes before its request was read ends the request [ADDON-X9]', async () => {
  lab.api.answers.set('/api/v1/early', (request, response) => {
    request.pause()
    response.writeHead(413, { 'content-length': 2 }).end('no')
  })
  const before = lab.api.open
  const socket = await proxy.socket()
  let answer = ''
  socket.on('error', () => {}).on('data', (chunk) => (answer += String(chunk)))
  socket.write(
    `POST /api/v1/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 ** 30}\r\n\r\n`,
  )
  const piece = Buffer.alloc(2 ** 20)
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', more)
  more()
  await new Promise((resolve) => socket.once('close', resolve))
  expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*no$/)
  await vi.waitFor(() => expect(lab.api.open).toBeLessThanOrEqual(before))
})

describe('[CRED-P2] a path whose slashes are hidden', () => {
  test.each([
    '/%2Fapi/v1/namespaces/default/pods/x/exec',
    '/%2fapi/v1/namespaces/default/pods/x/portforward',
    '/api/v1/namespaces/d/%2Fservices/evil/proxy/page',
    '/api/v1/%2F/nodes/n/proxy/page',
  ])('%s does not reach the server', async (path) => {
    expect((await proxy.ask(path)).status).toBe(400)
    expect(lab.api.seen).toEqual([])
  })

  test('is let through where it is the path of an application', async () => {
    const path = '/api/v1/namespaces/d/services/web/proxy/fetch/https:%2F%2Fexample.com'
    expect((await proxy.ask(path)).status).toBe(200)
    expect(lab.api.last.url).toBe(path)
  })
})

describe('a server that answers badly', () => {
  const service = '/api/v1/namespaces/evil/services/bomb'
  const askAddon = () => proxy.ask('/', ['Host: bomb--evil.localhost'])

  test('with more about a service than anybody could want is cut off', async () => {
    let sent = 0
    let closed = false
    lab.api.answers.set(service, (_request, response) => {
      const part = Buffer.alloc(1024 * 1024, ' ')
      const more = (): void => {
        while (!closed && response.write(part)) sent += part.length
      }
      response.on('drain', more).on('close', () => (closed = true))
      more()
    })
    expect((await askAddon()).status).toBe(502)
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    expect(closed).toBe(true)
  })

  test('with a small answer that unpacks to a large one is cut off', async () => {
    const bomb = gzipSync(Buffer.alloc(40 * 1024 * 1024, ' '))
    lab.api.answers.set(service, (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    )
    expect((await askAddon()).status).toBe(502)
  })

  test('[CRED-S4] with a secret in place of JSON does not get it into a log', async () => {
    lab.api.answers.set(service, (_request, response) => response.end('s3cret'))
    const { status, body } = await askAddon()
    expect(status).toBe(502)
    expect(body + logged.join('\n')).not.toContain('s3cret')
  })

  test.each([
    ['a status that is none', 'HTTP/1.1 099 Odd\r\nContent-Length: 9000000\r\n\r\n'],
    [
      'a header that cannot be sent on',
      'HTTP/1.1 200 OK\r\nX-Bad: a\u0001b\r\nContent-Length: 9000000\r\n\r\n',
    ],
  ])('with %s costs no connection', async (_name, head) => {
    const closed = new Promise((resolve) => {
      lab.api.answers.set('/odd', ({ socket }) => {
        socket.once('close', resolve)
        socket.write(head + 'x'.repeat(100), 'latin1')
      })
    })
    expect((await proxy.ask('/odd')).status).toBe(502)
    await closed
  })
})

describe('[CRED-S17] a 401 of an add-on', () => {
  const renewed: string[] = []
  const credential = { token: new Secret('t') }
  const credentials: CredentialSource = {
    current: () => Promise.resolve(credential),
    renew: async (_used, refusal) => void renewed.push(String(refusal.headers['x-from'])),
    onRotate: () => () => {},
    dispose: () => {},
  }
  const addon = '/api/v1/namespaces/dev/services/web/proxy/'
  const who = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const refuse = (from: string) => (_request: IncomingMessage, response: ServerResponse) =>
    void response.writeHead(401, { 'x-from': from }).end('no')
  let guarded: LabProxy

  beforeEach(async () => {
    renewed.length = 0
    lab.api.answers.delete(who)
    lab.api.answers.set(addon, refuse('add-on'))
    const tls = { trust: staticTrust(lab.caPem) }
    guarded = await lab.proxy({
      transport: transportOn(
        new Connections({ servers: lab.server, tls, credentials, http: '1.1' }),
      ),
    })
  })

  test('is passed on and costs no login, however often it comes', async () => {
    for (let count = 0; count < 3; count++) {
      const { status, body } = await guarded.ask(addon)
      expect([status, body]).toEqual([401, 'no'])
    }
    await expect.poll(() => lab.api.seen.map(({ url }) => url)).toContain(who)
    expect((await guarded.handshake(addon)).head.status).toBe(101)
    expect(lab.api.seen.filter(({ url }) => url === who)).toHaveLength(1)
    expect(renewed).toEqual([])
  })

  test('renews the credential if the API server refuses it as well', async () => {
    lab.api.answers.set(who, refuse('API server'))
    await guarded.ask(addon)
    await expect.poll(() => renewed).toEqual(['API server'])
  })

  test('is not taken for one of the API server, which renews at once', async () => {
    lab.api.answers.set('/api/v1/pods', refuse('API server'))
    await guarded.ask('/api/v1/pods')
    expect(renewed).toEqual(['API server'])
  })
})

test('[CRED-S4] what a query says, such as a code of a login, is in no log', async () => {
  expect((await proxy.ask('/login?code=s3cret')).status).toBe(200)
  expect(lab.api.last.url).toBe('/login?code=s3cret')
  expect(logged.join('\n')).toContain('/login')
  expect(logged.join('\n')).not.toContain('s3cret')
})
