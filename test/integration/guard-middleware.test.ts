import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import Fastify from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../../src/addon/guard/guard-lab.suite.ts'
import {
  type AddonGuard,
  createGuard,
  type MiddlewareOptions,
} from '../../src/addon/guard/index.ts'
import { createAddonTokenMinter } from '../../src/addon/token/index.ts'
import { LabClock, labCa, labLeaf, labSigner } from '../../src/addon/token/token-lab.suite.ts'

const clock = new LabClock()
let directory: string
let token: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'guard-'))
  const ca = await labCa()
  await writeFile(join(directory, 'ca.crt'), ca.certificate.toString())
  const minter = createAddonTokenMinter({ signer: labSigner(await labLeaf(ca)), clock })
  token = await minter.mint({ user: 'ann', groups: ['a'], namespace: 'shop', service: 'web' })
})
afterAll(() => rm(directory, { recursive: true }))

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function guardOf(options: Partial<MiddlewareOptions> = {}): Promise<AddonGuard> {
  const caFile = join(directory, 'ca.crt')
  const guard = await createGuard({ audiences: ['shop/web'], caFile, clock, ...options })
  closers.push(() => guard.close())
  return guard
}

async function listen(handle: RequestListener, host = '127.0.0.1'): Promise<number> {
  const server = createServer(handle).listen(0, host)
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

/** What an application sees of a request: all that it could believe. */
const seenBy = ({ headers, rawHeaders }: IncomingMessage): string =>
  JSON.stringify({
    user: headers['x-authenticated-user'],
    authorization: headers.authorization,
    root: JSON.stringify([headers, rawHeaders]).includes('root'),
  })

const frameworks: readonly (readonly [
  name: string,
  serve: (guard: AddonGuard) => Promise<number>,
])[] = [
  [
    'node:http',
    (guard) => listen(guard.listener((request, response) => void response.end(seenBy(request)))),
  ],
  [
    'Express',
    (guard) => {
      const app = express()
      app.use('/app', guard.express, (request, response) => void response.send(seenBy(request)))
      return listen(app as RequestListener)
    },
  ],
  [
    'Fastify',
    async (guard) => {
      const app = Fastify()
      await app.register(guard.fastify)
      app.get('/app/x', (request) => seenBy(request.raw))
      closers.push(() => app.close())
      await app.listen({ port: 0, host: '127.0.0.1' })
      return (app.server.address() as AddressInfo).port
    },
  ],
]

const get = (...lines: readonly string[]): string =>
  ['GET /app/x HTTP/1.1', 'Host: localhost', ...lines, '', ''].join('\r\n')

describe.each(frameworks)('in %s [ADDON-G6, ADDON-R1]', (_name, serve) => {
  test('a good token becomes the header that the sidecar sets, whatever else was sent', async () => {
    const port = await serve(await guardOf())
    const forged = ['X-Authenticated-User: root', 'x_authenticated_user: root', 'Remote-User: root']
    const { status, body } = await sendRaw(port, get(`Authorization: Bearer ${token}`, ...forged))
    expect([status, JSON.parse(body)]).toEqual([200, { user: 'ann', root: false }])
  })

  test.each([
    ['no token', [], 'no-token'],
    ['a bare header of an older server', ['X-Authenticated-User: root'], 'no-token'],
    ['a bad token', ['Authorization: Bearer a.b.c'], 'malformed'],
    [
      'two tokens',
      ['Authorization: Bearer a.b.c', 'Authorization: Bearer a.b.c'],
      'ambiguous-token',
    ],
  ])('%s is a 403 [ADDON-R35]', async (_what, lines, reason) => {
    const port = await serve(await guardOf())
    const { status, body } = await sendRaw(port, get(...lines))
    expect([status, JSON.parse(body)]).toMatchObject([403, { reason }])
  })

  test('a token of another Service is a 403 [ADDON-R23]', async () => {
    const port = await serve(await guardOf({ audiences: ['shop/other'] }))
    const { status, body } = await sendRaw(port, get(`Authorization: Bearer ${token}`))
    expect([status, JSON.parse(body)]).toMatchObject([403, { reason: 'wrong-audience' }])
  })
})

test("Fastify's own request leads to its user as well [ADDON-G6]", async () => {
  const guard = await guardOf()
  const app = Fastify()
  await app.register(guard.fastify)
  app.get('/app/x', (request) => guard.userOf(request)?.user)
  closers.push(() => app.close())
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const { body } = await sendRaw(port, get(`Authorization: Bearer ${token}`))
  expect(body).toBe('ann')
})

test.each<readonly [what: string, options: object, message: string]>([
  ['no audiences', { audiences: undefined }, 'audiences must list the Services'],
  ['none at all', { audiences: [] }, 'audiences must list the Services'],
  ['one that is no list', { audiences: 'shop/web' }, 'audiences must list the Services'],
  ['a Service without a namespace', { audiences: ['web'] }, 'audiences must list the Services'],
  ['no key to believe', { x5c: false }, 'nobody would be believed'],
  ['a developer without a name', { developmentUser: '' }, 'developmentUser must be a name'],
  ['an age that is none', { maxTunnelMs: 'an hour' }, 'maxTunnelMs must be a number'],
  ['a header that is none', { output: { userHeader: 'a b' } }, '"a b" is not the name of a header'],
  [
    'a header with another purpose',
    { output: { userHeader: 'Host' } },
    'the header Host has another',
  ],
  ['a CA that is not there', { caFile: '/nonexistent/ca' }, 'there is no such file'],
])('a guard with %s is refused in words', async (_what, options, message) => {
  await expect(guardOf(options)).rejects.toThrow(message)
})

const websocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

test.each([
  ['h2c', 400, ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c']],
  ['another protocol', 400, ['Connection: Upgrade', 'Upgrade: foo']],
  ['a WebSocket without a key', 400, websocket.slice(0, 3)],
  ['an old WebSocket', 426, [...websocket.slice(0, 2), 'Sec-WebSocket-Version: 12']],
])('%s is no upgrade, whoever asks [ADDON-T44, ADDON-T45]', async (_what, expected, lines) => {
  const guard = await guardOf()
  const server = createServer().listen(0, '127.0.0.1')
  closers.push(() => server.close())
  let handled = 0
  server.on(
    'upgrade',
    guard.upgradeListener((_request, socket) => {
      handled += 1
      socket.destroy()
    }),
  )
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { status } = await sendRaw(port, get(...lines, `Authorization: Bearer ${token}`))
  expect([status, handled]).toEqual([expected, 0])
})

test('a refused upgrade leaves no connection behind, whatever the client does [ADDON-T46]', async () => {
  const guard = await guardOf()
  const server = createServer().listen(0, '127.0.0.1')
  closers.push(() => server.close())
  const accepted = once(server, 'connection') as Promise<[Socket]>
  server.on(
    'upgrade',
    guard.upgradeListener(() => {}),
  )
  await once(server, 'listening')
  // It hears the end of the answer, and never ends its own half.
  const client = connect({ port: (server.address() as AddressInfo).port, allowHalfOpen: true })
  closers.push(() => client.destroy())
  client.on('error', () => {}).write(get(...websocket))
  client.resume()
  const [socket] = await accepted
  await once(socket, 'close')
  expect(socket.destroyed).toBe(true)
})

test('upgrades are guarded too, and the user is known to the handler [ADDON-G6]', async () => {
  const guard = await guardOf()
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  server.on(
    'upgrade',
    guard.upgradeListener((request, socket) => {
      const answer = `hello ${guard.userOf(request)?.user}`
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`,
      )
    }),
  )
  const { port } = server.address() as AddressInfo
  const upgrade = websocket
  const good = await sendRaw(port, get(...upgrade, `Authorization: Bearer ${token}`), {
    untilClose: true,
  })
  expect(good.body).toBe('hello ann')
  expect((await sendRaw(port, get(...upgrade))).status).toBe(403)
})

describe('the development identity [ADDON-G6]', () => {
  const ask = async (port: number, lines: readonly string[], host = 'Host: localhost:3000') => {
    const bytes = ['GET / HTTP/1.1', host, ...lines, '', ''].join('\r\n')
    const { status, body } = await sendRaw(port, bytes)
    return status === 200 ? (JSON.parse(body) as { user: string }).user : status
  }
  const serve = async (host?: string) => {
    const guard = await guardOf({ developmentUser: 'dev' })
    return listen(
      guard.listener((request, response) => void response.end(seenBy(request))),
      host,
    )
  }

  test.each([
    ['is for requests of this machine', [], 'Host: localhost:3000', 'dev'],
    ['is for its addresses', [], 'Host: 127.0.0.1', 'dev'],
    ['is for IPv6', [], 'Host: [::1]:1', 'dev'],
    ['is not for names that were rebound', [], 'Host: evil.example', 403],
    ['is not for what a proxy forwards', ['X-Forwarded-For: 10.0.0.1'], 'Host: localhost', 403],
    [
      'is not for what a standard proxy forwards',
      ['Forwarded: for=10.0.0.1'],
      'Host: localhost',
      403,
    ],
    ['does not cover a bad token', ['Authorization: Bearer a.b.c'], 'Host: localhost', 403],
    ['is for a page of its own', ['Origin: http://localhost:3000'], 'Host: localhost:3000', 'dev'],
    [
      'is not for a page of another port [ADDON-X14]',
      ['Origin: http://localhost:4000'],
      'Host: localhost:3000',
      403,
    ],
    ['is not for a foreign page [ADDON-X14]', ['Origin: https://evil'], 'Host: localhost', 403],
    ['is not for no page [ADDON-X14]', ['Origin: null'], 'Host: localhost', 403],
    [
      'is not for a picture in a foreign page [ADDON-X14]',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image'],
      'Host: localhost',
      403,
    ],
    [
      'is for a link in a foreign page',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
      'Host: localhost',
      'dev',
    ],
    ['does not keep a forged name', ['X-Authenticated-User: root'], 'Host: localhost', 'dev'],
  ])('%s', async (_what, lines, host, expected) => {
    expect(await ask(await serve(), lines, host)).toBe(expected)
  })

  test('is not for other addresses of the machine', async ({ skip }) => {
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4')?.address
    if (own === undefined) return skip('this machine has loopback addresses only')
    const port = await serve(own)
    const answer = await fetch(`http://${own}:${port}/`, { headers: { host: 'localhost' } })
    expect(answer.status).toBe(403)
  })
})
