import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { HttpsCaller } from '../support/https-caller.ts'
import { allOfProxy, outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'
import type { TcpTarget } from '../support/tcp-target.ts'

const websocket = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

const handshake = (path: string, headers: Record<string, string | string[]>, more = ''): string => {
  const lines = Object.entries({ Host: 'api', ...headers }).flatMap(([name, value]) =>
    [value].flat().map((each) => `${name}: ${each}\r\n`),
  )
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n${more}`
}

/** As a browser says it, or our local proxy for one that does not. */
const sameOrigin = (origin: string) => ({ Origin: origin, 'Sec-Fetch-Site': 'same-origin' })

/** Everything up to a text. */
async function until(socket: Socket, wanted: string): Promise<string> {
  let seen = ''
  while (!seen.includes(wanted)) {
    const [chunk] = await once(socket, 'data')
    seen += String(chunk)
  }
  return seen
}

/** Everything up to the end of the head. */
const headOf = (socket: Socket): Promise<string> => until(socket, '\r\n\r\n')

describe.skipIf(outwardAddress === undefined)('a connection that leaves HTTP', () => {
  let lab: ServiceProxyLab
  let admin: HttpsCaller
  /** What the backend answers to a handshake; what it was sent is kept. */
  let answer = ''
  const received: string[] = []
  let backend: TcpTarget
  let accepted = 0
  const base = '/api/v1/namespaces/default/services/ws/proxy'

  beforeAll(async () => {
    lab = await ServiceProxyLab.open()
    admin = await lab.server.admin()
    backend = await lab.rawBackend((socket) => {
      accepted++
      let seen = ''
      let isOpen = false
      socket.on('data', (chunk) => {
        if (isOpen) {
          received.push(String(chunk))
          socket.write(`echo:${String(chunk)}`)
          return
        }
        seen += String(chunk)
        if (!seen.includes('\r\n\r\n')) return
        isOpen = true
        received.push(seen)
        socket.write(answer)
      })
      socket.on('end', () => socket.end())
    })
    await lab.addon('ws', backend)
  })
  afterAll(() => lab.close())

  const switching = (protocol = 'websocket'): string => {
    const accept = createHash('sha1')
      .update(`${websocket['Sec-WebSocket-Key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64')
    return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\nSet-Cookie: a=1; Path=/\r\n\r\n`
  }

  async function shake(
    path: string,
    headers: Record<string, string | string[]> = websocket,
    more = '',
    caller = admin,
  ): Promise<Socket> {
    received.length = 0
    const socket = await caller.socket()
    socket.write(handshake(path, headers, more))
    return socket
  }

  test('is joined to the backend, with its query and what was sent at once [ADDON-P3]', async () => {
    answer = switching()
    const socket = await shake(`${base}/live?room=1&x=%20`, websocket, 'first')
    const head = await until(socket, 'echo:first')
    expect(head).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n/)
    expect(head.toLowerCase()).toContain('sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=')
    expect(head).toContain(`a=1; Path=${base}/`)
    socket.write('second')
    expect(String((await once(socket, 'data'))[0])).toBe('echo:second')
    expect(received[0]).toMatch(/^GET \/live\?room=1&x=%20 HTTP\/1.1\r\n/)
    expect(received[0]).toContain('Upgrade: websocket')
    expect(received[0]).toContain(`X-Forwarded-Uri: ${base}/live`)
    socket.end()
    await once(socket, 'close')
  })

  test('may speak SPDY/3.1, as kubectl does', async () => {
    answer = switching('SPDY/3.1')
    const socket = await shake(`${base}/`, { Connection: 'Upgrade', Upgrade: 'SPDY/3.1' })
    expect(await headOf(socket)).toContain('101 Switching')
    socket.destroy()
  })

  test('needs the right to create as well as that to get [ADDON-P3]', async () => {
    answer = switching()
    const reader = await lab.user('reader', [allOfProxy('get')])
    const refused = await text(await shake(`${base}/`, websocket, '', reader))
    expect(refused).toMatch(/^HTTP\/1.1 403 /)
    expect(refused).toContain('cannot create resource')
    expect(received).toEqual([])
    const both = await lab.user('both', [allOfProxy('get', 'create')])
    const socket = await shake(`${base}/`, websocket, '', both)
    expect(await headOf(socket)).toContain('101 Switching')
    socket.destroy()
  })

  test.each<[string, number, Record<string, string | string[]>]>([
    [
      'h2c [ADDON-T44]',
      400,
      {
        Connection: 'Upgrade, HTTP2-Settings',
        Upgrade: 'h2c',
        'HTTP2-Settings': 'AAMAAABkAAQAAP__',
      },
    ],
    ['a protocol that nobody knows [ADDON-T45]', 400, { Connection: 'Upgrade', Upgrade: 'foo' }],
    ['two protocols [ADDON-T45]', 400, { ...websocket, Upgrade: ['websocket', 'foo'] }],
    ['a list of protocols [ADDON-T45]', 400, { ...websocket, Upgrade: 'websocket, foo' }],
    ['a WebSocket without its key [ADDON-T45]', 400, { ...websocket, 'Sec-WebSocket-Key': [] }],
    ['an old WebSocket [ADDON-T45]', 426, { ...websocket, 'Sec-WebSocket-Version': '12' }],
    [
      'a WebSocket of a foreign page [ADDON-T43]',
      403,
      { ...websocket, Origin: 'https://evil.example' },
    ],
    ['a WebSocket of no page [ADDON-T43]', 403, { ...websocket, Origin: 'null' }],
  ])('%s is refused with %i before anybody is dialled', async (_name, status, headers) => {
    const before = accepted
    const answered = await text(await shake(`${base}/`, headers, 'GET /smuggled HTTP/1.1\r\n\r\n'))
    expect(answered).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answered.match(/HTTP\/1.1/g)).toHaveLength(1)
    expect([received, accepted]).toEqual([[], before])
  })

  test('of another version is told which there is', async () => {
    const headers = { ...websocket, 'Sec-WebSocket-Version': '8' }
    const answered = await text(await shake(`${base}/`, headers))
    expect(answered).toMatch(/\r\nSec-WebSocket-Version: 13\r\n/)
    expect(answered).toMatch(/\r\nUpgrade: websocket\r\n/)
    expect(answered).toContain('"code":426')
  })

  test('needs the right to act as somebody else for create too, not only for get [ADDON-X6]', async () => {
    answer = switching()
    await lab.user('owner', [allOfProxy('get', 'create')])
    const acting = (...verbs: string[]) => [
      allOfProxy(...verbs.map((verb) => `impersonate-on:user-info:${verb}`)),
    ]
    const asOwner = { ...websocket, 'Impersonate-User': 'owner' }
    const reader = await lab.user('acts-reading', acting('get'))
    const both = await lab.user('acts', acting('get', 'create'))
    for (const name of ['acts-reading', 'acts']) await mayBe(name, 'owner')
    const get = await reader.get(`${base}/`, { 'Impersonate-User': 'owner' })
    expect(get.text).not.toContain('impersonate')
    const refused = await text(await shake(`${base}/`, asOwner, '', reader))
    expect(refused).toMatch(/^HTTP\/1.1 403 /)
    expect(received).toEqual([])
    const socket = await shake(`${base}/`, asOwner, '', both)
    expect(await headOf(socket)).toContain('101 Switching')
    socket.destroy()
  })

  /** Lets somebody be somebody else, for what they may do as them. */
  async function mayBe(name: string, other: string): Promise<void> {
    const group = 'rbac.authorization.k8s.io'
    const shared = { group, version: 'v1', namespaced: false }
    const kind = (kind: string, resource: string) => ({ ...shared, kind, resource })
    await lab.create(kind('ClusterRole', 'clusterroles'), {
      metadata: { name: `be-${name}` },
      rules: [
        {
          apiGroups: ['authentication.k8s.io'],
          resources: ['users'],
          verbs: ['impersonate:user-info'],
          resourceNames: [other],
        },
      ],
    })
    await lab.create(kind('ClusterRoleBinding', 'clusterrolebindings'), {
      metadata: { name: `be-${name}` },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: `be-${name}` },
      subjects: [{ apiGroup: group, kind: 'User', name }],
    })
  }

  test.each([
    ['the own origin', { Origin: 'https://api' }],
    ['a local proxy, as the browser says', sameOrigin('http://localhost:8001')],
    ['an add-on by our local proxy', sameOrigin('http://ws--default.localhost:8001')],
  ])('a page of %s may open one', async (_name, headers) => {
    answer = switching()
    const socket = await shake(`${base}/`, { ...websocket, ...headers })
    expect(await headOf(socket)).toContain('101 Switching')
    socket.destroy()
  })

  test.each(['http://localhost:3000', 'http://ws.default.localhost:8001', 'http://api', 'null'])(
    '[SEC-R403] a page of %s may not unless its browser has shown that it is of this origin',
    async (origin) => {
      const socket = await shake(`${base}/`, { ...websocket, Origin: origin })
      expect(await headOf(socket)).toContain('403 Forbidden')
      expect(received).toEqual([])
    },
  )

  test.each([
    ['200', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['401', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno'],
    ['426', 'HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n'],
  ])(
    'when the backend answers %s, that is passed on and both ends are closed [ADDON-T46, ADDON-T47]',
    async (status, refusal) => {
      answer = refusal
      const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
      const socket = await shake(`${base}/`, websocket, smuggled)
      const answered = await text(socket)
      expect(answered).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
      expect(answered.match(/HTTP\/1.1/g)).toHaveLength(1)
      expect(received).toHaveLength(1)
      expect(received[0]).not.toContain('smuggled')
      await Promise.all([...backend.open].map((open) => once(open, 'close')))
    },
  )

  test('a backend that changes to another protocol than asked for is a 503', async () => {
    answer = switching('foo')
    expect(await text(await shake(`${base}/`))).toMatch(/^HTTP\/1.1 503 /)
  })

  test('may be asked for on a connection that has carried a request', async () => {
    answer = switching()
    const socket = await admin.socket()
    socket.write('GET /version HTTP/1.1\r\nHost: api\r\n\r\n')
    expect(await until(socket, '}')).toContain('200 OK')
    socket.write(handshake(`${base}/`, websocket))
    expect(await until(socket, 'Switching')).toContain('101 Switching')
    socket.destroy()
  })

  test('behind a request that is not answered yet ends the connection, and nothing else [ADDON-X15]', async () => {
    const stranger = lab.server.as({})
    const pending = 'GET /api/v1/namespaces HTTP/1.1\r\nHost: api\r\n\r\n'
    const socket = await stranger.socket()
    socket.write(pending + handshake(`${base}/`, websocket))
    await text(socket)
    expect((await admin.get('/version')).status).toBe(200)
  })

  test('a backend that is cut cuts the client', async () => {
    answer = switching()
    const socket = await shake(`${base}/`)
    await headOf(socket)
    for (const open of backend.open) open.destroy()
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })

  test('a client that is cut cuts the backend', async () => {
    answer = switching()
    const socket = await shake(`${base}/`)
    await headOf(socket)
    const closed = [...backend.open].map((open) => once(open, 'close'))
    expect(closed.length).toBeGreaterThan(0)
    socket.destroy()
    await Promise.all(closed)
  })
})
