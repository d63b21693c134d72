import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

const annToken = 'ann-secret-token-7Qm2'
const bobToken = 'bob-secret-token-9Zx4'
const cookieSecret = 'cookie-secret-5Tr8'
const base = '/api/v1/namespaces/default/services/web/proxy'
const other = '/api/v1/namespaces/default/services/other/proxy'

/** What the add-on saw of one request. */
interface Seen {
  readonly line: string
  readonly raw: readonly string[]
  readonly body: string
}

const ann = `Authorization: Bearer ${annToken}`
const lines = (...all: string[]): string => all.map((each) => `${each}\r\n`).join('')

/** A request as bytes; headers are whole lines. */
const request = (start: string, headers: readonly string[] = [ann], body = ''): string =>
  `${start} HTTP/1.1\r\n${lines('Host: api', ...headers)}\r\n${body}`

const get = (path: string, ...headers: string[]): string =>
  request(`GET ${base}${path}`, [ann, ...headers])

const post = (headers: readonly string[], body: string): string =>
  request(`POST ${base}/x`, [ann, ...headers], body)

/** The statuses that came back, in their order. */
const statusesOf = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => Number(code))

describe.skipIf(outwardAddress === undefined)('attacks on the service proxy', () => {
  let lab: ServiceProxyLab
  let directory = ''
  const seen: Seen[] = []
  const answers: string[] = []

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sallyport-attacks-'))
    const users = [`${annToken},ann,1`, `${bobToken},bob,2`]
    await writeFile(join(directory, 'tokens.csv'), users.join('\n'), { mode: 0o600 })
    lab = await ServiceProxyLab.open([
      '--token-auth-file',
      join(directory, 'tokens.csv'),
      '--request-timeout',
      '1s',
      '--addon-idle-timeout',
      '2s',
    ])
    const backend = await lab.backend((incoming, response) => {
      incoming.on('error', () => {})
      void text(incoming).then(
        (body) => {
          const line = `${incoming.method} ${incoming.url}`
          seen.push({ line, raw: [...incoming.rawHeaders, ...incoming.rawTrailers], body })
          response.end('ok')
        },
        () => {},
      )
    })
    const annotations = { 'sallyport.dev/add-auth': 'true' }
    await lab.addon('web', backend, { annotations })
    await lab.addon('other', backend, { annotations })
    const verbs = ['get', 'create', 'update', 'patch', 'delete']
    for (const name of ['ann', 'bob'])
      await lab.user(name, [{ apiGroups: [''], resources: ['services/proxy'], verbs }])
  })
  afterAll(async () => {
    await lab.close()
    await rm(directory, { recursive: true, force: true })
  })

  async function connected(): Promise<Socket> {
    return lab.server.as({}).socket()
  }

  /** Sends bytes and returns all that comes back until the server closes, or is silent after an answer. */
  async function exchange(bytes: string): Promise<string> {
    const socket = await connected()
    seen.length = 0
    let answer = ''
    socket.on('data', (chunk) => {
      answer += String(chunk)
    })
    socket.write(bytes, 'latin1')
    // Our own request ends the connection behind whatever was sent before it.
    socket.write(request('GET /version', [ann, 'Connection: close']), 'latin1')
    await new Promise<void>((resolve) => {
      socket.once('close', resolve)
    })
    answers.push(answer)
    return answer
  }

  const tokensSeen = (): string[] =>
    seen.flatMap(({ raw }) =>
      raw.flatMap((name, at) =>
        at % 2 === 0 && name.toLowerCase() === 'authorization' ? [raw[at + 1] ?? ''] : [],
      ),
    )

  const subjects = (): string[] =>
    tokensSeen().map((value) => {
      const payload = value.split('.')[1] ?? ''
      return JSON.parse(String(Buffer.from(payload, 'base64url'))).sub
    })

  const passed: [string, string, string][] = [
    [
      'T3',
      'odd spellings of an identity',
      get('/', 'X_Authenticated_User: root', 'x.authenticated.user: root'),
    ],
    [
      'T4',
      'an identity twice',
      get('/', 'X-Authenticated-User: root', 'X-Authenticated-User: root'),
    ],
    ['T5', 'Connection that names our header', get('/', 'Connection: keep-alive, X-Forwarded-Uri')],
    ['T12', 'names of the prototype', get('/', '__proto__: x', 'constructor: y')],
    [
      'T13',
      'identities of others',
      get(
        '/',
        'X-Remote-User: root',
        'X-Remote-Group: root',
        'X-Forwarded-User: root',
        'Remote-User: root',
        'Cf-Access-Jwt-Assertion: root',
        'x-goog-iap-jwt-assertion: root',
      ),
    ],
    [
      'T11',
      'an identity in a trailer',
      post(
        ['Transfer-Encoding: chunked', 'Trailer: X-Authenticated-User'],
        '1\r\nx\r\n0\r\nX-Authenticated-User: root\r\n\r\n',
      ),
    ],
  ]

  test.each(passed)(
    '%s: %s reaches the add-on without effect [ADDON-T3, ADDON-T4, ADDON-T5, ADDON-T11, ADDON-T12, ADDON-T13]',
    async (_id, _name, bytes) => {
      expect(statusesOf(await exchange(bytes))).toEqual([200, 200])
      expect(subjects()).toEqual(['ann'])
      expect(JSON.stringify(seen)).not.toContain('root')
    },
  )

  const refused: [string, string, number, string][] = [
    ['T3', 'an odd spelling of a header that decides', 400, get('/', 'x.remote.user: root')],
    ['T6', 'Connection that names Authorization', 400, get('/', 'Connection: Authorization')],
    [
      'T7',
      'an empty Connection and another',
      400,
      get('/', 'Connection:', 'Connection: Authorization'),
    ],
    [
      'T8',
      'two credentials',
      400,
      request(`GET ${base}/`, [ann, `Authorization: Bearer ${bobToken}`]),
    ],
    [
      'T8',
      'two credentials, the other way',
      400,
      request(`GET ${base}/`, [`Authorization: Bearer ${bobToken}`, ann]),
    ],
    ['T9', 'a list of credentials', 401, request(`GET ${base}/`, [`${ann}, Bearer ${bobToken}`])],
    ['T10', 'a credential in the query', 401, request(`GET ${base}/?access_token=${annToken}`, [])],
    [
      'T10',
      'a credential in a cookie',
      401,
      request(`GET ${base}/`, [`Cookie: token=${annToken}`]),
    ],
    [
      'T10',
      'a credential in another header',
      401,
      request(`GET ${base}/`, [
        `X-Authorization: Bearer ${annToken}`,
        `Authentication: Bearer ${annToken}`,
      ]),
    ],
    [
      'T32',
      'a credential of 20 KiB',
      401,
      request(`GET ${base}/`, [`Authorization: Bearer ${'x'.repeat(20_000)}`]),
    ],
    ['T33', 'two lengths', 400, post(['Content-Length: 4', 'Content-Length: 5'], 'abcde')],
    ['T33', 'an unknown framing', 400, post(['Transfer-Encoding: xchunked'], '0\r\n\r\n')],
    ['T33', 'a list of framings', 400, post(['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n')],
    [
      'T33',
      'a framing twice',
      400,
      post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
    ],
    [
      'T33',
      'an odd spelling of a framing',
      400,
      post(['Transfer_Encoding: chunked', 'Content-Length: 0'], ''),
    ],
    [
      'T36',
      'chunk extensions without end',
      413,
      post(['Transfer-Encoding: chunked'], `1;${'e'.repeat(100_000)}\r\nx\r\n0\r\n\r\n`),
    ],
    ['T37', 'an absolute target', 400, request('GET http://evil.example/x')],
    ['T37', 'an absolute target with a password', 400, request('GET http://u:p@evil.example/')],
    ['T37', 'a target without a scheme', 400, request('GET //evil.example/x')],
    ['T38', 'a climbing path', 400, get('/a/../../b')],
    ['T38', 'an encoded climb', 400, get('/%2e%2e/b')],
    ['T38', 'a half encoded climb', 400, get('/.%2E/b')],
    ['T38', 'a backslash', 400, get('/a\\b')],
    ['T38', 'a NUL', 400, get('/a%00b')],
    ['T38', 'a fragment', 400, get('/a#b')],
    ['T38', 'a fragment behind a query', 400, get('/a?b#c')],
    ['T38', 'a broken escape', 400, get('/a%zzb')],
    [
      'T38',
      'an encoded slash before the add-on',
      400,
      request('GET /api/v1/namespaces/default/services%2Fweb/proxy/'),
    ],
    ['T40', 'two hosts', 400, request(`GET ${base}/`, [ann, 'Host: evil.example'])],
    [
      'T58',
      'a page of another add-on',
      403,
      get(
        '/',
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        `Referer: http://localhost:8001${other}/`,
      ),
    ],
    [
      'T58',
      'a page that does not say whose it is',
      403,
      get('/', 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: cors'),
    ],
    [
      'T58',
      'a page of the API itself',
      403,
      get(
        '/',
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        'Referer: http://localhost:8001/',
      ),
    ],
    [
      'T58',
      'a form of another add-on',
      403,
      post(
        [
          'Content-Length: 0',
          'Origin: http://localhost:8001',
          'Sec-Fetch-Site: same-origin',
          'Sec-Fetch-Mode: navigate',
          'Sec-Fetch-Dest: document',
          `Referer: http://localhost:8001${other}/`,
        ],
        '',
      ),
    ],
    [
      'T58',
      "another add-on's own origin",
      403,
      get(
        '/',
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        'Referer: http://other--default.localhost:8001/',
        'X-Forwarded-Host: other--default.localhost:8001',
      ),
    ],
    [
      'T58',
      'a look-alike of its own origin',
      403,
      get(
        '/',
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        'Referer: http://evilweb--default.localhost:8001/',
        'X-Forwarded-Host: evilweb--default.localhost:8001',
      ),
    ],
    ...[
      ['another add-on', `http://localhost:8001${other}/`],
      ["its path inside another's", `http://localhost:8001${other}${base}/`],
      ["its path in another's query", `http://localhost:8001${other}/?${base}/`],
      ['its path below a prefix', `http://localhost:8001/k8s${base}/`],
      ['another port of it', `http://localhost:8001${base.replace('web', 'web:81')}/`],
    ].flatMap(([name, referer]): [string, string, number, string][] => {
      const same = ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Mode: cors', 'Sec-Fetch-Dest: empty']
      const sent = [`Referer: ${referer}`, 'Content-Length: 0']
      return [
        ['T58', `a POST of ${name}`, 403, post([...same, ...sent], '')],
        ['T58', `a POST of ${name} without fetch metadata`, 403, post(sent, '')],
        ['T58', `a GET of ${name} without fetch metadata`, 403, get('/', `Referer: ${referer}`)],
      ]
    }),
    [
      'T42',
      'a form of another site',
      403,
      post(['Content-Length: 0', 'Origin: https://evil.example', 'Sec-Fetch-Site: cross-site'], ''),
    ],
    [
      'T42',
      'a script of another site',
      403,
      get('/', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors', 'Sec-Fetch-Dest: image'),
    ],
    [
      'T42',
      'a form of no site',
      403,
      post(['Content-Length: 0', 'Origin: null', 'Sec-Fetch-Site: cross-site'], ''),
    ],
    ['T60', 'TRACE', 405, request(`TRACE ${base}/`)],
    ['T60', 'an unknown method', 405, request(`PROPFIND ${base}/`)],
    ['T56', 'add-auth twice', 400, get('/?add-auth=true&add-auth=false')],
  ]

  test.each(refused)(
    '%s: %s gets %i and reaches nobody [SEC-R1901, SEC-R1902, ADDON-T3, ADDON-T6, ADDON-T7, ADDON-T8, ADDON-T9, ADDON-T10, ADDON-T32, ADDON-T33, ADDON-T36, ADDON-T37, ADDON-T38, ADDON-T40, ADDON-T42, ADDON-T56, ADDON-T58, ADDON-T60]',
    async (_id, _name, status, bytes) => {
      const [first] = statusesOf(await exchange(bytes))
      expect(first).toBe(status)
      expect(seen).toEqual([])
    },
  )

  const allowed: [string, string[]][] = [
    [
      'its own page by XHR',
      [
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        `Referer: http://localhost:8001${base}/page?x`,
      ],
    ],
    [
      'its own page in the old form',
      [
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        'Referer: http://localhost:8001/api/v1/proxy/namespaces/default/services/http:web:/',
      ],
    ],
    [
      'its own origin',
      [
        'Sec-Fetch-Site: same-origin',
        'Sec-Fetch-Mode: cors',
        'Referer: http://web--default.localhost:8001/x',
        'X-Forwarded-Host: web--default.localhost:8001',
      ],
    ],
    [
      'a link from anywhere',
      ['Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
    ],
    [
      'an address that was typed',
      ['Sec-Fetch-Site: none', 'Sec-Fetch-Mode: navigate', 'Sec-Fetch-Dest: document'],
    ],
    ['a program', []],
  ]

  test.each(allowed)('%s is let through [ADDON-R7, ADDON-T58]', async (_name, headers) => {
    expect(statusesOf(await exchange(get('/', ...headers)))).toEqual([200, 200])
  })

  test('T32: headers of 80 KiB are cut off and reach nobody [ADDON-T32]', async () => {
    const large = Array.from({ length: 10 }, (_, at) => `X-${at}: ${'y'.repeat(8_000)}`)
    expect(statusesOf(await exchange(get('/', ...large)))).not.toContain(200)
    expect(seen).toEqual([])
  })

  test('T34: a request behind another one is judged on its own [ADDON-T34]', async () => {
    const first = post(['Content-Length: 3'], 'abc')
    const answer = await exchange(first + request(`GET ${base}/second`, []))
    expect(statusesOf(answer)).toEqual([200, 401, 200])
    expect(seen.map(({ line }) => line)).toEqual(['POST /x'])
  })

  test('T35: users that follow each other on one connection are never mixed [ADDON-T35]', async () => {
    const bob = request(`GET ${base}/b`, [`Authorization: Bearer ${bobToken}`])
    expect(statusesOf(await exchange(get('/a') + bob + get('/c')))).toEqual([200, 200, 200, 200])
    const who = seen.map(({ line }, at) => [line, subjects()[at]])
    expect(Object.fromEntries(who)).toEqual({ 'GET /a': 'ann', 'GET /b': 'bob', 'GET /c': 'ann' })
  })

  test('T30: a token of an add-on is no credential here [ADDON-T30]', async () => {
    await exchange(get('/'))
    const [stolen = ''] = tokensSeen()
    const answer = await exchange(request(`GET ${base}/`, [`Authorization: ${stolen}`]))
    expect(statusesOf(answer)[0]).toBe(401)
    expect(seen).toEqual([])
  })

  test('T60: CONNECT leads nowhere [ADDON-T60]', async () => {
    const socket = await connected()
    socket.write(`CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: x\r\n${ann}\r\n\r\n`)
    expect(await text(socket)).not.toMatch(/^HTTP\/1\.\d 2/m)
  })

  test.each([
    ['headers that do not end', `GET ${base}/ HTTP/1.1\r\nHost: x\r\n`],
    ['a body that does not come', post(['Content-Length: 10'], 'abc')],
  ])('T36: %s are cut, and others do not notice [ADDON-T36, ADDON-R42]', async (_name, bytes) => {
    const socket = await connected()
    socket.resume()
    socket.write(bytes)
    const closed = new Promise<void>((resolve) => {
      socket.once('close', resolve)
    })
    expect(statusesOf(await exchange(get('/')))).toEqual([200, 200])
    await closed
  })

  test('T41: what is not HTTP is refused and cut [ADDON-R41]', async () => {
    const socket = await connected()
    socket.write('PING\r\n\r\n')
    expect(await text(socket)).toMatch(/^(?:HTTP\/1.1 400 |$)/)
  })

  test('T64: no credential is in a log, in the audit or in an answer [ADDON-T64, ADDON-R2]', async () => {
    await exchange(get('/', `Cookie: session=${cookieSecret}`))
    const minted = tokensSeen().map((value) => value.slice('Bearer '.length))
    expect(minted).toHaveLength(1)
    expect(JSON.stringify(seen)).toContain(cookieSecret)
    expect(JSON.stringify(seen)).not.toContain(annToken)
    await lab.server.drain()
    const audit = await readFile(join(lab.server.dataDirectory, 'audit.log'), 'utf8')
    expect(audit.length).toBeGreaterThan(1_000)
    const written = lab.server.log + audit + answers.join('')
    for (const secret of [annToken, bobToken, cookieSecret, ...minted])
      expect(written).not.toContain(secret)
  })
})
