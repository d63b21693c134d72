import { afterEach, describe, expect, test, vi } from 'vitest'
import { type GuardLab, sendRaw, startGuardLab } from '../../src/addon/guard/guard-lab.suite.ts'
import { defaultGuardLimits } from '../../src/addon/guard/index.ts'
import { AddonTokenVerifier } from '../../src/addon/token/verifier.ts'
import { systemClock } from '../../src/core/index.ts'
import { switchProtocols } from '../support/forwarding-fronts.ts'
import { auth, closeOf, head, openRaw, websocket } from '../support/guard-connection.ts'

const labs: GuardLab[] = []
const start: typeof startGuardLab = async (options) => {
  const lab = await startGuardLab(options)
  labs.push(lab)
  return lab
}
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.stop()
})

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

  test('two hundred headers go through where they are allowed, none is lost [ADDON-T32]', async () => {
    const lab = await start({ limits: { maxHeaderCount: 1_000 } })
    const many = Array.from({ length: 200 }, (_, index) => `X-${index}: ${index}`)
    expect((await sendRaw(lab.port, head('GET / HTTP/1.1', ...many, auth(lab)))).status).toBe(200)
    expect(lab.addon.values('x-199')).toEqual(['199'])
    expect(lab.addon.values('x-authenticated-user')).toEqual(['bob'])
  })

  test.each([
    ['a body that stops', ''],
    ['a body that trickles', 'x'],
  ])('%s is a 408 long before the longest request [SEC-R2004]', async (_what, byte) => {
    const lab = await start({ limits: { bodyIdleMs: 200 } })
    const { socket, heard } = await openRaw(lab.port)
    socket.write(`${head('POST / HTTP/1.1', auth(lab), 'Content-Length: 100000')}hello`)
    const trickle = setInterval(() => socket.write(byte), 10)
    await closeOf(socket)
    clearInterval(trickle)
    expect(heard()).toMatch(/^HTTP\/1\.1 408 [^]*"body-too-slow"/)
    expect(lab.addon.seen).toEqual([])
  })

  test('header lines beyond the limit are a 431, and the limit can be set [SEC-R2003]', async () => {
    const lab = await start()
    const many = Array.from({ length: 150 }, (_, index) => `X-${index}: ${index}`)
    const { status } = await sendRaw(lab.port, head('GET / HTTP/1.1', ...many, auth(lab)))
    expect([status, lab.addon.connections]).toEqual([431, 0])
  })

  test('slow headers are cut, and others do not notice [ADDON-T36, ADDON-R42]', async () => {
    const lab = await start({ limits: { headersTimeoutMs: 1_000 } })
    const { socket, heard } = await openRaw(lab.port)
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n')
    const closed = closeOf(socket)
    expect((await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))).status).toBe(200)
    await closed
    expect(heard()).toMatch(/^HTTP\/1\.1 408 /)
    expect(lab.addon.seen).toHaveLength(1)
  })

  test('chunk extensions without end are refused [ADDON-T36]', async () => {
    const lab = await start()
    const { socket } = await openRaw(lab.port)
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
    const { socket, heard } = await openRaw(lab.port)
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

  test('is not ready while no key of a token could be known [ADDON-G5]', async () => {
    const source = { name: 'jwks', find: () => undefined, problem: 'keys-unavailable' as const }
    const verifier = new AddonTokenVerifier({ keys: [source], clock: systemClock })
    const lab = await start({ verifier })
    const { status, body } = await sendRaw(lab.healthPort, head('GET /readyz HTTP/1.1'))
    expect([status, body]).toEqual([503, 'keys-unavailable\n'])
    expect(await ask(lab, '/livez')).toBe(200)
  })

  test('answers though somebody holds all connections of the other [ADDON-X11]', async () => {
    const lab = await start({ limits: { maxConnections: 2 } })
    const held = [await openRaw(lab.port), await openRaw(lab.port)]
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

describe('at the limit of connections [SEC-R611]', () => {
  const respond = ({ heard }: { heard: () => string }) =>
    vi.waitFor(() => expect(heard()).toMatch(/^HTTP\/1\.1 \d+/))

  test.each([
    ['silent', ''],
    ['without a token', head('GET / HTTP/1.1')],
    ['with a wrong token', head('GET / HTTP/1.1', 'Authorization: Bearer a.b.c')],
  ])('the oldest one that is %s gives way to a new one', async (_name, text) => {
    const lab = await start({ limits: { maxConnections: 2 } })
    const first = await openRaw(lab.port)
    const second = await openRaw(lab.port)
    for (const each of [first, second])
      if (each.socket.write(text) && text !== '') await respond(each)
    const closed = closeOf(first.socket)
    expect((await sendRaw(lab.port, head('GET / HTTP/1.1', auth(lab)))).status).toBe(200)
    await closed
    second.socket.destroy()
  })

  test('those of users stay, for requests and for WebSockets', async () => {
    const lab = await start({ limits: { maxConnections: 2 } })
    lab.addon.onUpgrade = (_request, socket) => switchProtocols(socket)
    const first = await openRaw(lab.port)
    first.socket.write(head('GET / HTTP/1.1', auth(lab)))
    await respond(first)
    const second = await openRaw(lab.port)
    second.socket.write(head('GET / HTTP/1.1', auth(lab), ...websocket))
    await respond(second)
    const third = await openRaw(lab.port)
    await closeOf(third.socket)
    expect([first.socket.destroyed, second.socket.destroyed]).toEqual([false, false])
    for (const { socket } of [first, second]) socket.destroy()
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

test.each(['', 'localhost', '127.1'])(
  '%j is no address to listen on [ADDON-R37]',
  async (address) => {
    const addresses = ['127.0.0.1', address]
    await expect(startGuardLab({ addresses })).rejects.toThrow(`${JSON.stringify(address)} is none`)
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
  expect(addon.values('impersonate-extra-example-com-2fscope')).toEqual(['x'])
})

test('limits have defaults that end everything', () => {
  for (const limit of Object.values(defaultGuardLimits)) expect(limit).toBeLessThan(24 * 3_600_000)
})
