import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { Readable } from 'node:stream'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { createTransport } from './authenticated-request.ts'
import { Connections } from './connections.ts'
import {
  ask,
  FakeSource,
  get,
  type Seen,
  seenIn,
  TransportLab,
  textOf,
  tokenCredential,
  whoAmI,
} from './transport-lab.suite.ts'

let lab: TransportLab
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())

const { signal } = new AbortController()
const post = (fields: { body?: Buffer; stream?: Readable | (() => Readable) }) => ({
  ...get('/'),
  method: 'POST',
  ...fields,
})

describe.each(['1.1', '2'] as const)('over HTTP %s', (http) => {
  test('10,000 requests use one set of connections [CRED-T1, CRED-I4]', async () => {
    const server = await lab.serve((request, response) =>
      response.end(request.headers.authorization),
    )
    const credentials = new FakeSource(tokenCredential('t1'))
    const transport = lab.transport(server, { credentials, http, maxConnections: 8 })
    const seen = new Set<string>()
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        for (let i = 0; i < 100; i++) seen.add(await textOf((await transport.send(get('/'))).body))
      }),
    )
    expect([...seen]).toEqual(['Bearer t1'])
    expect(server.connections()).toBe(http === '1.1' ? 8 : 1)
  }, 60_000)

  test('a server is spoken to in the version that was asked for [CRED-T1]', async () => {
    const server = await lab.serve((request, response) => response.end(request.httpVersion))
    const { body } = await lab.transport(server, { http }).send(get('/'))
    expect(await textOf(body)).toBe(http === '1.1' ? '1.1' : '2.0')
  })

  test('a 401 renews the credential and replays the request; the caller sees only the good answer [CRED-C6]', async () => {
    const seen: string[] = []
    const server = await lab.serve(async (request, response) => {
      const text = await textOf(request)
      seen.push(`${request.headers.authorization} ${text}`)
      response.statusCode = request.headers.authorization === 'Bearer t2' ? 200 : 401
      response.setHeader('www-authenticate', 'Bearer')
      response.end('{}')
    })
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const transport = lab.transport(server, { credentials, http })
    const response = await transport.send(post({ body: Buffer.from('body') }))
    expect(response.status).toBe(200)
    expect(seen).toEqual(['Bearer t1 body', 'Bearer t2 body'])
    expect(credentials.refusals).toMatchObject([
      { status: 401, headers: { 'www-authenticate': ['Bearer'] } },
    ])
  })

  test('a second 401 is returned with its body [CRED-C6, CRED-S17]', async () => {
    const server = await lab.serve((request, response) => {
      response.statusCode = 401
      response.end(request.headers.authorization)
    })
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const response = await lab.transport(server, { credentials, http }).send(get('/'))
    expect([response.status, await textOf(response.body)]).toEqual([401, 'Bearer t2'])
    expect(credentials.refusals).toHaveLength(1)
  })

  test('a 401 without a newer credential is returned with its body [CRED-C6]', async () => {
    const server = await lab.serve((_, response) => {
      response.statusCode = 401
      response.end('who?')
    })
    const credentials = new FakeSource(tokenCredential('t1'))
    const response = await lab.transport(server, { credentials, http }).send(get('/'))
    expect([response.status, await textOf(response.body)]).toEqual([401, 'who?'])
  })

  test.each([
    ['a stream is not', () => Readable.from(['body']), 401, 1],
    ['a function that makes streams is', () => () => Readable.from(['body']), 200, 2],
  ])('of bodies, %s replayed [CRED-C6]', async (_, make, status, count) => {
    const bodies: string[] = []
    const server = await lab.serve(async (request, response) => {
      bodies.push(await textOf(request))
      response.statusCode = request.headers.authorization === 'Bearer t2' ? 200 : 401
      response.end()
    })
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const transport = lab.transport(server, { credentials, http })
    expect((await transport.send(post({ stream: make() }))).status).toBe(status)
    expect(bodies).toEqual(Array(count).fill('body'))
    expect(credentials.refusals).toHaveLength(1)
  })

  test("the caller's Authorization is left alone, and the source is not asked [CRED-K6]", async () => {
    const server = await lab.serve((request, response) => {
      response.statusCode = 401
      response.end(JSON.stringify(seenIn(request)))
    })
    const certificate = await lab.certificate('user1')
    const credentials = new FakeSource({ clientCertificate: certificate, token: new Secret('t') })
    const transport = lab.transport(server, { credentials, http })
    const { body } = await transport.send({ ...get('/'), headers: { authorization: 'Bearer own' } })
    const seen = JSON.parse(await textOf(body)) as Seen
    expect(seen.authorization).toBe('Bearer own')
    expect(seen.commonName).toBeUndefined()
    expect([credentials.asked, credentials.refusals.length]).toEqual([0, 0])
  })

  test('an answer that breaks off is a failure, never a short answer', async () => {
    const server = await lab.serve((request, response) => {
      response.write('half')
      if (request.url === '/cancelled' && 'stream' in response)
        (response.stream as { close(code: number): void }).close(8)
      else for (const socket of server.sockets) setImmediate(() => socket.destroy())
    })
    const transport = lab.transport(server, { http })
    const { body } = await transport.send(get('/lost'))
    await expect(textOf(body)).rejects.toMatchObject({ code: 'ECONNRESET' })
    const other = await transport.send(get('/cancelled'))
    await expect(textOf(other.body)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('large bodies pass both ways, and an answer that nobody reads stops no other', async () => {
    const large = Buffer.alloc(20 * 1024 * 1024, 'x')
    const server = await lab.serve((request, response) => {
      if (request.url === '/unread') response.end(large)
      else request.pipe(response)
    })
    const transport = lab.transport(server, { http })
    const unread = await transport.send(get('/unread'))
    const { body } = await transport.send(post({ body: large }))
    let size = 0
    for await (const chunk of body) size += (chunk as Buffer).length
    expect(size).toBe(large.length)
    expect((await textOf(unread.body)).length).toBe(large.length)
  })

  test('an abort ends the request, or the body of its answer', async () => {
    const before = new AbortController()
    const within = new AbortController()
    const server = await lab.serve((request, response) => {
      if (request.url === '/begun') response.write('x')
      else before.abort(new Error('enough'))
    })
    const transport = lab.transport(server, { http })
    await expect(transport.send(get('/', before.signal))).rejects.toThrow('enough')
    const { body } = await transport.send(get('/begun', within.signal))
    within.abort()
    await expect(textOf(body)).rejects.toThrow(/abort/)
  })

  test('an abort releases a request that waits for its connection', async () => {
    const silent = createTcpServer(() => {}).listen(0, '127.0.0.1')
    lab.own({ destroy: () => void silent.close() })
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const connections = new Connections({
      servers: `https://127.0.0.1:${port}`,
      maxConnections: 1,
      http,
    })
    lab.own(connections)
    const transport = createTransport(connections)
    const abort = new AbortController()
    const attempts = [1, 2].map(() => transport.send(get('/', abort.signal)))
    await once(silent, 'connection')
    abort.abort(new Error('enough'))
    for (const attempt of attempts) await expect(attempt).rejects.toThrow('enough')
  })

  test('a server that is not there is named', async () => {
    const server = await lab.serve(whoAmI)
    await server.stop()
    const attempt = lab.transport(server, { http }).send(get('/'))
    await expect(attempt).rejects.toThrow(`no answer from ${server.url}: connect ECONNREFUSED`)
  })

  test('a read whose kept connection was just closed goes again', async () => {
    const server = await lab.serve((_, response) => response.end('{}'))
    const transport = lab.transport(server, { http })
    await ask(transport)
    for (const socket of server.sockets) socket.destroy()
    expect(await ask(transport)).toEqual({})
  })

  test('impersonation of the configuration goes in place of the one of a caller [CRED-K9]', async () => {
    const server = await lab.serve((request, response) => {
      const { headers } = request
      response.end(JSON.stringify([headers['impersonate-user'], headers['impersonate-group']]))
    })
    const transport = lab.transport(server, { http, headers: { 'impersonate-user': 'jane' } })
    const headers = { 'impersonate-user': 'admin', 'impersonate-group': 'system:masters' }
    const { body } = await transport.send({ ...get('/'), headers })
    expect(JSON.parse(await textOf(body))).toEqual(['jane', null])
  })

  test('a source that fails to renew fails the request, and nothing goes out anonymously [CRED-S16]', async () => {
    const seen: (string | undefined)[] = []
    const server = await lab.serve((request, response) => {
      seen.push(request.headers.authorization)
      response.statusCode = 401
      response.end()
    })
    const credentials = new FakeSource(tokenCredential('t1'))
    const failing = Object.assign(credentials, { renew: () => Promise.reject(new Error('plugin')) })
    const transport = lab.transport(server, { credentials: failing, http })
    await expect(transport.send(get('/'))).rejects.toThrow('plugin')
    expect(seen).toEqual(['Bearer t1'])
  })
})

test('a hundred watches leave the bounded pool to ordinary requests', async () => {
  const server = await lab.serve((request, response) => {
    if (request.url?.includes('watch')) response.write('{}\n')
    else whoAmI(request, response)
  })
  const transport = lab.transport(server, { http: '1.1', maxConnections: 2 })
  await Promise.all(Array.from({ length: 100 }, () => transport.send(get('/pods?watch=true'))))
  await Promise.all(Array.from({ length: 10 }, () => ask(transport)))
  expect(server.connections()).toBe(102)
})

test('a server that speaks only HTTP/1.1 is found out with one connection [CRED-T1]', async () => {
  const server = await lab.serve(whoAmI, { http1Only: true })
  const transport = lab.transport(server, { http: '2' })
  for (let i = 0; i < 5; i++) await ask(transport)
  expect(server.connections()).toBe(1)
})

test('unless told otherwise, watches share an HTTP/2 connection and requests go by HTTP/1.1 [CRED-T1]', async () => {
  const server = await lab.serve((request, response) => {
    response.write(JSON.stringify(request.httpVersion))
    if (!request.url?.includes('watch')) response.end()
  })
  const transport = lab.transport(server)
  const watches = Array.from({ length: 20 }, () => transport.send(get('/pods?watch=true')))
  for (const { body } of await Promise.all(watches))
    expect(String((await once(body, 'data'))[0])).toBe('"2.0"')
  for (let i = 0; i < 5; i++) expect(await ask(transport)).toBe('1.1')
  expect(server.connections()).toBe(2)
})

test.each([['t\nwo'], ['sp ace'], ['ümlaut'], ['']])(
  'a token %j is refused before it goes anywhere [CRED-S13]',
  async (token) => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource(tokenCredential(token))
    const attempt = lab.transport(server, { credentials }).send(get('/'))
    await expect(attempt).rejects.toThrow(/^the token is empty or has characters/)
  },
)

test.each([
  ['gets no credential, and the source is not asked', {}, null, 0],
  ['gets one if the caller insists', { allowHttp: true }, 'Bearer t1', 1],
])('an http server %s [CRED-S9]', async (_, options, expected, asked) => {
  const server = createServer((request, response) =>
    response.end(JSON.stringify(request.headers.authorization ?? null)),
  ).listen(0, '127.0.0.1')
  lab.own({ destroy: () => server.close().closeAllConnections() })
  await once(server, 'listening')
  const credentials = new FakeSource(tokenCredential('t1'))
  const { port } = server.address() as AddressInfo
  const servers = `http://127.0.0.1:${port}`
  const connections = new Connections({ servers, credentials, ...options })
  lab.own(connections)
  expect(await ask(createTransport(connections))).toBe(expected)
  expect(credentials.asked).toBe(asked)
})

test('wrappers see a request in turn, the last one first, and may bring an identity [CRED-R22]', async () => {
  const order: string[] = []
  const server = await lab.serve(whoAmI)
  const credentials = new FakeSource(tokenCredential('t1'))
  const wrapper = (name: string) => (next: Parameters<NonNullable<Wrap>>[0]) => {
    return async (request: Parameters<typeof next>[0]) => {
      order.push(name)
      return next({ ...request, headers: { ...request.headers, authorization: name } })
    }
  }
  type Wrap = NonNullable<ConstructorParameters<typeof Connections>[0]['wrappers']>[number]
  const wrappers = [wrapper('inner'), wrapper('outer')]
  const transport = lab.transport(server, { credentials, wrappers })
  expect((await ask<Seen>(transport)).authorization).toBe('inner')
  expect(order).toEqual(['outer', 'inner'])
  expect(credentials.asked).toBe(0)
})

describe('compression [CRED-K10]', () => {
  const packed = gzipSync('{"a":1}')
  const packing = () =>
    lab.serve((request, response) => {
      const wanted = String(request.headers['accept-encoding'])
      response.setHeader('x-wanted', wanted)
      if (wanted === 'gzip') response.setHeader('content-encoding', 'gzip')
      response.end(wanted === 'gzip' ? packed : '{"a":1}')
    })

  test('is asked for and undone where the caller says nothing', async () => {
    const { headers, body } = await lab.transport(await packing()).send(get('/'))
    expect(await textOf(body)).toBe('{"a":1}')
    expect(headers['x-wanted']).toBe('gzip')
    expect(headers['content-encoding']).toBeUndefined()
  })

  test('is not asked for when it is disabled', async () => {
    const transport = lab.transport(await packing(), { disableCompression: true })
    expect((await transport.send(get('/'))).headers['x-wanted']).toBe('undefined')
  })

  test('is left to a caller who asks for it', async () => {
    const transport = lab.transport(await packing())
    const request = { ...get('/'), headers: { 'accept-encoding': 'gzip' } }
    const { headers, body } = await transport.send(request)
    expect(headers['content-encoding']).toBe('gzip')
    expect(Buffer.concat((await body.toArray()) as Buffer[])).toEqual(packed)
  })
})

describe('several addresses [CRED-T5]', () => {
  test('the next one is asked when one is gone, and the good one is remembered', async () => {
    const gone = await lab.serve(whoAmI)
    const good = await lab.serve(whoAmI)
    await gone.stop()
    const dead = createTcpServer((socket) => socket.destroy()).listen(gone.port, '127.0.0.1')
    lab.own({ destroy: () => void dead.close() })
    let asked = 0
    dead.on('connection', () => asked++)
    const servers = [gone.url, good.url]
    const connections = lab.connect(good, { servers, http: '1.1' })
    const transport = createTransport(connections)
    expect(transport.server).toBe(gone.url)
    await ask(transport)
    connections.identityOf(undefined).generation.closeIdle()
    await ask(transport)
    expect([asked, good.connections()]).toEqual([1, 2])
  })

  test('a failover happens within a request, when the server dies between two', async () => {
    const one = await lab.serve(whoAmI)
    const other = await lab.serve(whoAmI)
    const transport = lab.transport(one, { servers: [one.url, other.url] })
    await ask(transport)
    await one.stop()
    await ask(transport)
    expect(other.connections()).toBe(1)
  })

  test('when all are gone, each is named with its reason, and no credential', async () => {
    const servers = [await lab.serve(whoAmI), await lab.serve(whoAmI)]
    for (const server of servers) await server.stop()
    const credentials = new FakeSource(tokenCredential('s3cr3t'))
    const urls = servers.map(({ url }) => url)
    const attempt = ask(lab.transport(servers[0]!, { servers: urls, credentials }))
    const error: unknown = await attempt.catch((caught: unknown) => caught)
    expect(inspect(error)).toContain('none of the 2 addresses of the cluster can be reached')
    for (const url of urls) expect(inspect(error)).toContain(`${url}: connect ECONNREFUSED`)
    expect(inspect(error, { depth: 9 })).not.toContain('s3cr3t')
  })

  test.each([
    ['paths', ['https://a/x', 'https://b/y']],
    ['schemes', ['https://a', 'http://b']],
    ['nothing', []],
  ])('of different %s are refused', (_, servers) => {
    expect(() => new Connections({ servers })).toThrow(/address/)
  })
})

test('a server that accepts and says nothing is given up in time', async () => {
  const silent = createTcpServer(() => {}).listen(0, '127.0.0.1')
  lab.own({ destroy: () => void silent.close() })
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo
  const connections = new Connections({
    servers: `https://127.0.0.1:${port}`,
    connectTimeoutMs: 50,
  })
  lab.own(connections)
  const attempt = createTransport(connections).send({ ...get('/'), signal })
  await expect(attempt).rejects.toThrow(/no connection to https:.* within 0.05 s/)
})

test('a certificate of the server must have the name asked for [CRED-K10]', async () => {
  const server = await lab.serve(whoAmI)
  const trust = lab.trust()
  const named = lab.transport(server, { tls: { trust, serverName: 'kubernetes' } })
  expect(await ask(named)).toBeDefined()
  const wrong = lab.transport(server, { tls: { trust, serverName: 'example.com' } })
  await expect(ask(wrong)).rejects.toThrow(/does not match certificate/)
  const careless = lab.transport(server, { tls: { insecureSkipVerify: true } })
  expect(await ask(careless)).toBeDefined()
  await expect(ask(lab.transport(server, { tls: {} }))).rejects.toThrow(/certificate/)
})

describe('addresses that change while a transport is in use [DISC-R45, DISC-R48]', () => {
  test('are taken for new connections', async () => {
    const one = await lab.serve(whoAmI)
    const other = await lab.serve(whoAmI)
    const connections = new Connections({ servers: one.url, tls: { trust: lab.trust() } })
    lab.own(connections)
    const transport = createTransport(connections)
    await ask(transport)
    connections.useServers([other.url, 'https://127.0.0.1:1'])
    await ask(transport)
    expect([one.connections(), other.connections()]).toEqual([1, 1])
    expect(() => connections.useServers([`${other.url}/prefix`])).toThrow(/one path/)
  })

  test('are tried beside one that accepts and says nothing', async () => {
    const silent = createTcpServer(() => {}).listen(0, '127.0.0.1')
    lab.own({ destroy: () => void silent.close() })
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const good = await lab.serve(whoAmI)
    const servers = [`https://127.0.0.1:${port}`, good.url]
    // Whoever waited for the first to fail would wait longer than any test may take.
    await ask(lab.transport(good, { servers, connectTimeoutMs: 600_000 }))
    expect(good.connections()).toBe(1)
  })
})
