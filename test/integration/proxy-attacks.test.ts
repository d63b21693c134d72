import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import { type LabProxy, ProxyLab, websocketHeaders } from '../../src/local-proxy/proxy-lab.suite.ts'

let lab: ProxyLab
let proxy: LabProxy

beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy()
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(() => lab.close())

const untouched = (): void => expect(lab.api.seen).toEqual([])

describe('[CRED-P10, ADDON-T41] the Host header', () => {
  test.each([
    ['is there twice', ['Host: localhost', 'Host: localhost']],
    ['is there twice, one of them foreign', ['Host: localhost', 'Host: evil.com']],
    ['is empty', ['Host:']],
    ['has a path', ['Host: localhost/evil']],
    ['has a user', ['Host: localhost@evil.com']],
    ['has no port after its colon', ['Host: localhost:']],
    ['has a port that is none', ['Host: localhost:99999']],
    ['has a space', ['Host: local host']],
    ['has brackets round a name', ['Host: [localhost]']],
    ['is an open bracket', ['Host: [::1']],
  ])('that %s is refused', async (_name, headers) => {
    expect((await proxy.ask('/api', headers)).status).toBe(400)
    untouched()
  })

  test('that is missing is refused', async () => {
    const answer = await proxy.raw('GET /api HTTP/1.1\r\nConnection: close\r\n\r\n')
    expect(answer.status).toBe(400)
    untouched()
  })

  test('in capitals is read as its lower-case form', async () => {
    expect((await proxy.ask('/api', ['Host: LOCALHOST:8001'])).status).toBe(200)
  })
})

describe('[CRED-P11, ADDON-T41] a host that could be rebound', () => {
  test.each([
    'evil.com',
    'evil.com:8001',
    'localhost.evil.com',
    '127a0b0c1',
    'localhost.',
    '127.0.0.1.evil.com',
    '127.0.0.2',
    '0.0.0.0',
    '[::2]',
    'evil.localhost.com',
  ])('%s is refused', async (host) => {
    const answer = await proxy.ask('/api', [`Host: ${host}`])
    expect(answer.status).toBe(403)
    expect(answer.body).toContain('--accept-hosts')
    untouched()
  })

  test.each(['localhost', 'localhost:8001', '127.0.0.1', '127.0.0.1:8001', '[::1]', '[::1]:8001'])(
    '%s is accepted',
    async (host) => {
      expect((await proxy.ask('/api', [`Host: ${host}`])).status).toBe(200)
    },
  )

  test('gets no static files either, unlike with kubectl', async () => {
    const files = await lab.proxy({ www: { directory: import.meta.dirname, prefix: '/static/' } })
    expect((await files.ask('/static/proxy-attacks.test.ts')).status).toBe(200)
    expect((await files.ask('/static/proxy-attacks.test.ts', ['Host: evil.com'])).status).toBe(403)
  })
})

describe('[CRED-P12] a request of a foreign page', () => {
  test.each([
    ['a foreign origin', ['Origin: https://evil.com']],
    ['the origin null', ['Origin: null']],
    ['the origin null and a cross-site label', ['Origin: null', 'Sec-Fetch-Site: cross-site']],
    ['another port of localhost', ['Origin: http://localhost:3000']],
    ['our name with another scheme', ['Origin: https://localhost:8001']],
    ['an empty origin', ['Origin:']],
    ['a cross-site label', ['Sec-Fetch-Site: cross-site', 'Content-Type: text/plain']],
    ['a same-site label', ['Sec-Fetch-Site: same-site', 'Sec-Fetch-Mode: no-cors']],
    ['a label that nobody knows', ['Sec-Fetch-Site: friendly']],
  ])('with %s is refused', async (_name, headers) => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const answer = await proxy.ask('/api/v1/pods', ['Host: localhost:8001', ...headers], method)
      expect(answer.status).toBe(403)
    }
    untouched()
  })

  test.each([
    ['two origins', ['Origin: http://localhost:8001', 'Origin: https://evil.com']],
    ['two labels', ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site']],
  ])('with %s is malformed', async (_name, headers) => {
    const answer = await proxy.ask('/api', ['Host: localhost:8001', ...headers])
    expect(answer.status).toBe(400)
    untouched()
  })

  test.each([
    ['POST', 'document'],
    ['GET', 'iframe'],
    ['GET', 'embed'],
  ])('that navigates by %s to a %s is refused', async (method, dest) => {
    const headers = [
      'Sec-Fetch-Site: cross-site',
      'Sec-Fetch-Mode: navigate',
      `Sec-Fetch-Dest: ${dest}`,
    ]
    expect((await proxy.ask('/api', headers, method)).status).toBe(403)
    untouched()
  })

  test.each([
    ['of our own origin', ['Origin: http://localhost:8001', 'Sec-Fetch-Site: same-origin']],
    ['typed into the address bar', ['Sec-Fetch-Site: none', 'Sec-Fetch-Mode: navigate']],
    [
      'behind a link elsewhere',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
    ],
    ['of a form without referrer', ['Origin: null', 'Sec-Fetch-Site: same-origin']],
    ['without any label', []],
  ])('is another thing than one %s', async (_name, headers) => {
    expect((await proxy.ask('/api', ['Host: localhost:8001', ...headers])).status).toBe(200)
  })
})

describe('[CRED-P13] a WebSocket', () => {
  test.each([
    ['of a foreign origin', 'Origin: https://evil.com'],
    ['of the origin null', 'Origin: null'],
    ['of another port of localhost', 'Origin: http://localhost:3000'],
    ['of another site', 'Sec-Fetch-Site: cross-site'],
  ])('%s is refused before anything is dialled', async (_name, header) => {
    const fresh = await lab.proxy()
    const before = lab.api.connections
    const { head } = await fresh.handshake('/api/v1/pods?watch=1', [...websocketHeaders, header])
    expect(head.status).toBe(403)
    expect(lab.api.connections).toBe(before)
  })
})

describe('[CRED-P14] an upgrade', () => {
  test.each([
    ['to h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    ['to an unknown protocol', ['Connection: Upgrade', 'Upgrade: foo']],
    ['to TLS', ['Connection: Upgrade', 'Upgrade: TLS/1.0']],
    ['to two protocols', ['Connection: Upgrade', 'Upgrade: websocket, h2c']],
    ['with two Upgrade headers', [...websocketHeaders, 'Upgrade: h2c']],
    ['with the same protocol twice', [...websocketHeaders, 'Upgrade: websocket']],
    ['without a key', websocketHeaders.filter((line) => !line.includes('-Key'))],
    ['with two keys', [...websocketHeaders, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']],
    [
      'with a short key',
      websocketHeaders.map((line) => (line.includes('-Key') ? 'Sec-WebSocket-Key: abc' : line)),
    ],
    ['with a body', [...websocketHeaders, 'Content-Length: 5']],
    ['with a chunked body', [...websocketHeaders, 'Transfer-Encoding: chunked']],
  ])('%s is malformed and not tunnelled', async (_name, headers) => {
    const { head, socket } = await proxy.handshake('/api/v1/x', headers)
    expect(head.status).toBe(400)
    await expectClosed(socket)
    untouched()
  })

  test.each(['12', '8', '13, 8', ''])('with WebSocket version %j needs another one', async (v) => {
    const headers = websocketHeaders.map((line) =>
      line.includes('-Version') ? `Sec-WebSocket-Version: ${v}` : line,
    )
    const { head } = await proxy.handshake('/api/v1/x', headers)
    expect(head.status).toBe(426)
    expect(head.headers['sec-websocket-version']).toBe('13')
    untouched()
  })

  test.each([
    ['without Connection', ['Upgrade: websocket']],
    ['with Connection alone', ['Connection: Upgrade']],
  ])('%s is an ordinary request that loses it', async (_name, headers) => {
    const answer = await proxy.ask('/api/v1/x', headers)
    expect(answer.status).toBe(200)
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'upgrade')).toEqual([])
  })

  test('over HTTP/1.0 is refused', async () => {
    const text = `GET /x HTTP/1.0\r\nHost: localhost\r\n${websocketHeaders.join('\r\n')}\r\n\r\n`
    expect((await proxy.raw(text)).status).toBe(400)
    untouched()
  })

  test('that the server refuses closes the connection, and what hides behind it is dropped', async () => {
    lab.api.upgradeAnswers.set(
      '/ws/refuse',
      'HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nnever',
    )
    const hidden = 'GET /api/v1/secrets HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const head = ['GET /ws/refuse HTTP/1.1', 'Host: localhost', ...websocketHeaders].join('\r\n')
    const answer = await proxy.raw(`${head}\r\n\r\n${hidden}`)
    expect(answer.status).toBe(403)
    expect(lab.api.seen.map(({ url }) => url)).toEqual(['/ws/refuse'])
  })
})

describe('a request that can be read in two ways', () => {
  test.each([
    ['two lengths', 'POST', ['Content-Length: 1', 'Content-Length: 1']],
    ['a length and chunks', 'POST', ['Content-Length: 1', 'Transfer-Encoding: chunked']],
    ['an unusual transfer encoding', 'POST', ['Transfer-Encoding: gzip, chunked']],
    ['an odd spelling of a length', 'POST', ['Content_Length: 5']],
    ['two credentials', 'GET', ['Authorization: Bearer a', 'Authorization: Bearer b']],
    ['two content types', 'POST', ['Content-Type: a/b', 'Content-Type: c/d']],
  ])('by %s is refused', async (_name, method, headers) => {
    expect((await proxy.ask('/api', headers, method)).status).toBe(400)
    untouched()
  })

  test.each([
    'http://evil.com/',
    'http://localhost/api',
    '*',
    '/a#b',
    String.raw`/a\b`,
    '/api/%2e%2e/x',
    '/api/.%2E/x',
    '/api/%zz',
  ])('by its target %s is refused', async (target) => {
    expect((await proxy.ask(target, [], 'OPTIONS')).status).toBe(400)
    untouched()
  })

  test.each([
    ['//evil.com/x', '/evil.com/x'],
    ['/api/../x?q=1', '/x?q=1'],
    ['/./api//v1/', '/api/v1/'],
    ['/..', '/'],
  ])('by its path %s is sent to the plain one', async (target, location) => {
    const answer = await proxy.ask(target)
    expect(answer).toMatchObject({ status: 307, headers: { location } })
    untouched()
  })

  test.each(['TRACE', 'CONNECT'])('%s is refused', async (method) => {
    expect([400, 405]).toContain((await proxy.ask('/api', [], method)).status)
    untouched()
  })

  test('ends its connection: what follows it is not read', async () => {
    const doubled = 'GET /a HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n'
    const { status, body } = await proxy.raw(`${doubled}GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    expect(status).toBe(400)
    expect(body).not.toContain('HTTP/1.1')
    untouched()
  })

  test('a path that is too long is refused', async () => {
    expect((await proxy.ask(`/${'a'.repeat(9_000)}`)).status).toBe(414)
  })
})

describe('[CRED-P6] an identity that the client claims', () => {
  /** With these removed, the request would have all rights of the proxy's user. */
  const decisive = [
    'Authorization: Bearer evil',
    'authorization: Basic ZXZpbA==',
    'Impersonate-User: evil',
    'Impersonate-User:',
    'IMPERSONATE-GROUP: evil',
    'Impersonate-Uid: evil',
    'Impersonate_User: evil',
    'impersonate.user: evil',
    'Impersonate-Extra-Scopes: evil',
    'Impersonate-Anything: evil',
  ]
  const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from('evil').toString('base64url')}`
  const tokenProtocols = [
    `Sec-WebSocket-Protocol: ${bearer}, v4.channel.k8s.io`,
    `sec-websocket-protocol: v4.channel.k8s.io,${bearer.toUpperCase()}`,
  ]

  test.each(decisive)(
    'by %s is refused, and nothing runs with our rights [SEC-R306]',
    async (line) => {
      for (const path of ['/api', '/api/v1/namespaces/a/services/b/proxy/x', '/version?x=1'])
        for (const method of ['GET', 'POST', 'DELETE']) {
          const { status, body } = await proxy.ask(path, [line], method)
          expect([path, method, status]).toEqual([path, method, 403])
          expect(body).toContain('the identity of its kubeconfig')
          expect(body).toContain(line.slice(0, line.indexOf(':')))
        }
      untouched()
    },
  )

  test.each([...decisive, ...tokenProtocols])(
    'by %s opens no WebSocket [SEC-R306]',
    async (line) => {
      const { head } = await proxy.handshake('/api/v1/x', [...websocketHeaders, line])
      expect(head.status).toBe(403)
      untouched()
    },
  )

  test.each(decisive)(
    'by %s at the origin of an add-on reaches neither server nor add-on',
    async (line) => {
      expect((await proxy.ask('/x', ['Host: b--a.localhost', line])).status).toBe(200)
      const { rawHeaders } = lab.api.last
      expect(namesIn(rawHeaders).filter((name) => /^impersonate/i.test(name))).toEqual([])
      expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
    },
  )

  test.each([
    'X-Remote-User: evil',
    'X_Remote_Group: evil',
    'X-Remote-Extra-Foo: evil',
    'X-Remote-Anything: evil',
    'Proxy-Authorization: Basic evil',
    'X-Authenticated-User: evil',
    'X-Forwarded-User: evil',
    'X.Forwarded.Email: evil',
    'Remote-User: evil',
    'X-Auth-Request-User: evil',
    'X-Forwarded-Client-Cert: evil',
  ])('by %s never reaches the server', async (header) => {
    expect((await proxy.ask('/api', [header])).status).toBe(200)
    const { rawHeaders } = lab.api.last
    expect(rawHeaders.join('\n')).not.toContain('evil')
    expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
  })

  test('is not kept by naming our own credential in Connection', async () => {
    const text = ['GET /api HTTP/1.1', 'Host: localhost', 'Connection: close, Authorization, Host']
    expect((await proxy.raw(`${text.join('\r\n')}\r\n\r\n`)).status).toBe(200)
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'authorization')).toEqual([
      'Bearer janes-token',
    ])
  })
})

const namesIn = (raw: readonly string[]): string[] => raw.filter((_each, index) => index % 2 === 0)

async function expectClosed(socket: Socket): Promise<void> {
  if (!socket.destroyed) await once(socket.resume(), 'close')
  expect(socket.destroyed).toBe(true)
}
