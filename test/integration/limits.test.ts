import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http2'
import { text } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type HttpsCaller, requestOn } from '../support/https-caller.ts'
import { type InProcessServer, JumpingClock, startInProcess } from '../support/in-process-server.ts'

const path = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, data = 'x'): string =>
  JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name }, data: { data } })

/** Lets everybody in the group `writers` write ConfigMaps. */
async function allowWriters(server: InProcessServer): Promise<void> {
  const admin = await server.admin()
  const made = await admin.post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'writers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'writers' }],
  })
  if (made.status !== 201) throw new Error(made.text)
}

const writer = async (server: InProcessServer, name: string): Promise<HttpsCaller> =>
  server.as(await server.issue(name, ['writers']))

describe('slow clients are cut off in time, and others served meanwhile [GND-R83, GND-R93]', () => {
  let server: InProcessServer
  let admin: HttpsCaller
  beforeAll(async () => {
    server = await startInProcess({ http2: true, flags: ['--request-timeout', '2s'] })
    admin = await server.admin()
  })
  afterAll(() => server.close())

  /** Goes on sending a byte now and then, as slow attackers do, until the server has had enough. */
  async function drip(socket: TLSSocket, start: string): Promise<string> {
    let answer = ''
    const timer = setInterval(() => socket.write('a'), 100)
    socket.on('data', (chunk) => {
      clearInterval(timer)
      answer += String(chunk)
    })
    socket.write(start)
    await once(socket, 'close')
    return answer
  }

  test('who never finishes the headers', async () => {
    const slow = await Promise.all(Array.from({ length: 20 }, () => admin.socket()))
    const answers = slow.map((socket) => drip(socket, 'GET /version HTTP/1.1\r\nHost: a\r\nX: '))
    expect((await admin.get('/version')).status).toBe(200)
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('who never sends anything', async () => {
    const socket = await admin.socket()
    expect(await text(socket)).toMatch(/^(HTTP\/1\.1 408 |$)/)
  })

  test('who never finishes the body', async () => {
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"a":"`
    const slow = await Promise.all(Array.from({ length: 20 }, () => admin.socket()))
    const answers = slow.map((socket) => drip(socket, head))
    expect((await admin.post(path, configMap('meanwhile'))).status).toBe(201)
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatch(/^HTTP\/1\.1 504 /)
      expect(answer).toContain('"reason":"Timeout"')
    }
  })

  test('who never finishes a body over HTTP/2, and the connection goes on', async () => {
    const session = await admin.http2()
    const stream = session.request({ ':path': path, ':method': 'POST' })
    stream.write('{"a":"')
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect(headers[':status']).toBe(504)
    stream.destroy()
    expect((await requestOn(session, { ':path': '/version' })).status).toBe(200)
  })
})

describe('what is too large to be looked at [GND-R83]', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess()
  })
  afterAll(() => server.close())

  test.each([
    ['a URL', `/version?${'a'.repeat(20_000)}`, {}, 414],
    ['a header', '/version', { 'X-Large': 'a'.repeat(70_000) }, 431],
    ['many headers together', '/version', manyHeaders(2_000), 431],
  ])('%s is refused', async (_name, url, headers, code) => {
    const admin = await server.admin()
    expect((await admin.get(url, headers)).status).toBe(code)
    expect((await admin.get('/version')).status).toBe(200)
  })
})

function manyHeaders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_none, i) => [`X-${i}`, 'a'.repeat(40)]))
}

test('a new connection beyond the limit of an address closes the oldest one [GND-R83]', async () => {
  const server = await startInProcess({ flags: ['--max-connections-per-address', '3'] })
  const stranger = server.as({})
  const oldest = await stranger.socket()
  const closed = once(oldest, 'close')
  await Promise.all([stranger.socket(), stranger.socket()])
  const newest = await stranger.socket()
  await closed
  newest.end('GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  expect(await text(newest)).toMatch(/^HTTP\/1\.1 200 /)
  await server.close()
})

describe('requests under way [GND-R84]', () => {
  let server: InProcessServer
  beforeAll(async () => {
    const flags = ['--max-mutating-requests-inflight', '4', '--max-requests-inflight', '4']
    server = await startInProcess({ http2: true, flags })
    await allowWriters(server)
  })
  afterAll(() => server.close())

  test('need no permit while their bodies arrive: nobody waits, not even their user', async () => {
    const greedy = await (await writer(server, 'greedy')).http2()
    const unfinished = Array.from({ length: 150 }, () => {
      const stream = greedy.request({ ':path': path, ':method': 'POST' })
      stream.on('error', () => {})
      stream.write('{')
      return stream
    })
    const other = await writer(server, 'other')
    expect((await other.post(path, configMap('of-another'))).status).toBe(201)
    expect((await other.get(path)).status).toBe(200)
    const again = await writer(server, 'greedy')
    expect((await again.post(path, configMap('of-greedy'))).status).toBe(201)
    expect(unfinished.filter((stream) => stream.closed)).toEqual([])
    greedy.destroy()
  })

  test('of the administrators and health checks are never held back', async () => {
    const slow = await (await writer(server, 'slow')).http2()
    for (let i = 0; i < 100; i++)
      slow
        .request({ ':path': path, ':method': 'POST' })
        .on('error', () => {})
        .write('{')
    const admin = await server.admin()
    const answers = await Promise.all([
      ...Array.from({ length: 20 }, () => admin.get(path)),
      ...Array.from({ length: 20 }, () => server.as({}).get('/livez')),
    ])
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
    slow.destroy()
  })
})

describe('HTTP/2 connections [GND-R93]', () => {
  let server: InProcessServer
  let admin: HttpsCaller
  beforeAll(async () => {
    server = await startInProcess({ http2: true })
    admin = await server.admin()
  })
  afterAll(() => server.close())

  test('carry many requests at a time', async () => {
    const session = await admin.http2()
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, () => requestOn(session, { ':path': path })),
    )
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]))
  })

  test.each([
    ['only open requests and reset them', () => [...resetFlood(20_000)]],
    ['never end their headers', () => [...headersWithoutEnd(20_000)]],
  ])('that %s are cut, and others are served', async (_name, make) => {
    const socket = (await admin.socket({ ALPNProtocols: ['h2'] })).resume()
    const opening = [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]
    socket.write(Buffer.concat([...opening, ...make()]))
    await once(socket, 'close')
    expect((await admin.get(path)).status).toBe(200)
  })
})

/** The header block of a GET of the list. */
const listHeaders = Buffer.concat([
  Buffer.from([0x82, 0x87, 0x04, path.length]),
  Buffer.from(path),
  Buffer.from([0x41, 1, 0x61]),
])

/** Opens requests and resets each at once. */
function* resetFlood(count: number): Generator<Buffer> {
  for (let i = 0; i < count; i++) {
    yield frame(1, 5, 2 * i + 1, listHeaders)
    yield frame(3, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8]))
  }
}

/** One request whose headers go on and on. */
function* headersWithoutEnd(count: number): Generator<Buffer> {
  yield frame(1, 1, 1, listHeaders)
  for (let i = 0; i < count; i++) yield frame(9, 0, 1, Buffer.from('\0\x01x\x01y'))
}

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const header = Buffer.alloc(9)
  header.writeUIntBE(payload.length, 0, 3)
  header.writeUInt8(type, 3)
  header.writeUInt8(flags, 4)
  header.writeUInt32BE(stream, 5)
  return Buffer.concat([header, payload])
}

describe('a client that never reads its watch [GND-R93]', () => {
  const eventBytes = 900_000
  const events = 35

  test('is cut off before it costs much, and others see everything', {
    timeout: 60_000,
  }, async () => {
    const server = await startInProcess({ http2: true })
    const admin = await server.admin()
    const watchPath = `${path}?watch=true&fieldSelector=metadata.name=large`
    const deaf = await admin.socket()
    const closed = new Promise((resolve) => deaf.once('close', resolve))
    deaf.write(`GET ${watchPath} HTTP/1.1\r\nHost: a\r\n\r\n`)
    deaf.once('data', () => deaf.pause())
    await once(deaf, 'pause')
    const deafTwo = (await admin.http2()).request({ ':path': watchPath })
    const failure = new Promise((resolve) => deafTwo.once('error', resolve))
    await new Promise((resolve) => deafTwo.once('response', resolve))
    const good = await admin.watch(watchPath)

    await admin.post(path, configMap('large'))
    for (let i = 0; i < events; i++) {
      const { status } = await admin.put(`${path}/large`, configMap('large', letter(i)))
      expect(status).toBe(200)
    }
    const seen = await good.until((event) => dataOf(event.object) === letter(events - 1))
    expect(seen).toHaveLength(events + 1)

    let received = 0
    deaf.on('data', (chunk) => {
      received += chunk.length
    })
    deaf.resume()
    await closed
    expect(received).toBeLessThan((events * eventBytes) / 2)
    deafTwo.resume()
    expect(String(await failure)).toContain('closed with error')
    await server.close()
  })

  const letter = (i: number): string => 'abcdefghij'.charAt(i % 10).repeat(eventBytes) + String(i)
  const dataOf = (object: Record<string, unknown>): unknown =>
    (object['data'] as Record<string, unknown>)['data']
})

describe('a wall clock that jumps [GND-R93]', () => {
  const yearMs = 365 * 24 * 3_600_000

  test('ends no watch and holds up no timer', async () => {
    const clock = new JumpingClock()
    const server = await startInProcess({ clock })
    const admin = await server.admin()
    const endless = await admin.watch(`${path}?watch=true`)
    const short = await admin.watch(`${path}?watch=true&timeoutSeconds=1`)
    // Not more than a certificate lives: requests of an expired one are refused, and rightly so.
    for (const [i, jump] of [yearMs / 2, -yearMs / 2, -30_000].entries()) {
      clock.jump(jump)
      expect((await admin.post(path, configMap(`jump-${i}`))).status).toBe(201)
      const seen = await endless.until(({ object }) => object.metadata.name === `jump-${i}`)
      const created = Date.parse(String(seen.at(-1)?.object.metadata.creationTimestamp))
      expect(Math.abs(created - clock.now())).toBeLessThan(60_000)
    }
    expect(await short.ended).toBe(true)
    await server.close()
  })
})
