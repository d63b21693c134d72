import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../testing/index.ts'
import { addressTest } from './address-rules.ts'
import {
  type AllowHttp,
  cacheLifetimeMs,
  type FetchDocumentOptions,
  fetchDocument,
  isCertificateError,
  type ResolveName,
  urlProblem,
} from './fetch-document.ts'

const limits: FetchDocumentOptions = {
  isAllowedAddress: addressTest(false),
  allowHttp: 'loopback',
  timeoutMs: 5_000,
  maxBytes: 50 * 1024,
  contentType: /^application\/json/,
}
const json = { 'content-type': 'application/json' }

let respond: RequestListener
const server = createServer((request, response) => respond(request, response))
const portOf = (listening: { address(): unknown }): number =>
  (listening.address() as AddressInfo).port
const at = (path = '/', host = '127.0.0.1'): URL =>
  new URL(`http://${host}:${portOf(server)}${path}`)

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterEach(() => server.closeAllConnections())
afterAll(() => {
  server.close()
})

const outcome = async (url: URL, more: Partial<FetchDocumentOptions> = {}): Promise<string> =>
  fetchDocument(url, { ...limits, ...more }).then(
    ({ status, body }) => (status === 200 ? body.toString() : `status ${status}`),
    (error: { code?: string }) => error.code ?? 'thrown',
  )

describe('a response that is not the document itself is an error [ISS-P2]', () => {
  test.each<[string, string, RequestListener]>([
    ['a document', '{}', (_q, response) => response.writeHead(200, json).end('{}')],
    [
      'a redirect',
      'redirected',
      (_q, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    ],
    ['a permanent one', 'redirected', (_q, response) => response.writeHead(308, json).end('{}')],
    ['401', 'status 401', (_q, response) => response.writeHead(401, json).end('{}')],
    ['no content', 'status 204', (_q, response) => response.writeHead(204).end()],
    ['part of it', 'status 206', (_q, response) => response.writeHead(206, json).end('{}')],
    [
      'a page',
      'bad-content-type',
      (_q, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{}'),
    ],
    ['no type', 'bad-content-type', (_q, response) => response.writeHead(200).end('{}')],
    [
      'compression',
      'bad-content-type',
      (_q, response) =>
        response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync('{}')),
    ],
    [
      'no compression, explicitly',
      '{}',
      (_q, response) =>
        response.writeHead(200, { ...json, 'content-encoding': 'identity' }).end('{}'),
    ],
    [
      'a body in chunks of one byte',
      '{"a":1}',
      (_q, response) => {
        response.writeHead(200, json)
        for (const character of '{"a":1}') response.write(character)
        response.end()
      },
    ],
    [
      'a length that is too much',
      'too-large',
      (_q, response) =>
        response.writeHead(200, { ...json, 'content-length': '51201' }).flushHeaders(),
    ],
    [
      'more than that without a length',
      'too-large',
      (_q, response) => {
        response.writeHead(200, json)
        const more = (): void => {
          while (!response.destroyed && response.write(Buffer.alloc(16 * 1024, ' ')));
          response.once('drain', more)
        }
        more()
      },
    ],
    [
      'half a document',
      'unreachable',
      (_q, response) => {
        response.writeHead(200, { ...json, 'content-length': '10' })
        response.write('{', () => response.destroy())
      },
    ],
  ])('%s: %s', async (_name, expected, listener) => {
    respond = listener
    expect(await outcome(at())).toBe(expected)
  })

  test.each<[string, RequestListener]>([
    ['no head', () => {}],
    ['a head and no body', (_q, response) => response.writeHead(200, json).flushHeaders()],
    [
      'a body without end',
      (_q, response) => {
        response.writeHead(200, json).write('{')
        const timer = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(timer))
      },
    ],
  ])('%s: timeout, however many bytes trickle in', async (_name, listener) => {
    respond = listener
    expect(await outcome(at(), { timeoutMs: 300 })).toBe('timeout')
  })

  test.each([
    ['a change of protocol', 'HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['nothing', ''],
    ['two lengths', 'HTTP/1.1 200 x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
    [
      'a length and chunks',
      'HTTP/1.1 200 x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    ],
  ])('%s is no response', async (_name, bytes) => {
    const strange = createTcpServer((socket: Socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(bytes))
    })
    await once(strange.listen(0, '127.0.0.1'), 'listening')
    const url = new URL(`http://127.0.0.1:${portOf(strange)}/`)
    expect(await outcome(url, { timeoutMs: 2_000 })).toBe('unreachable')
    strange.close()
  })

  test('interim responses without end', async () => {
    const flood = createTcpServer((socket: Socket) => {
      socket.on('error', () => {})
      const more = (): void => {
        while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)));
        socket.once('drain', more)
      }
      more()
    })
    await once(flood.listen(0, '127.0.0.1'), 'listening')
    const url = new URL(`http://127.0.0.1:${portOf(flood)}/`)
    expect(await outcome(url, { timeoutMs: 300 })).toBe('timeout')
    flood.close()
  })

  test('headers without end', async () => {
    const flood = createTcpServer((socket: Socket) => {
      socket.on('error', () => {})
      socket.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}`)
    })
    await once(flood.listen(0, '127.0.0.1'), 'listening')
    expect(await outcome(new URL(`http://127.0.0.1:${portOf(flood)}/`))).toBe('unreachable')
    flood.close()
  })

  test('nobody there', async () => {
    const gone = createTcpServer()
    await once(gone.listen(0, '127.0.0.1'), 'listening')
    const url = new URL(`http://127.0.0.1:${portOf(gone)}/`)
    await new Promise((done) => gone.close(done))
    expect(await outcome(url)).toBe('unreachable')
  })
})

describe('no connection to a forbidden address [ISS-P2]', () => {
  let issuer: TestIssuer
  let visits: () => number
  beforeAll(async () => {
    issuer = await startTestIssuer({ algorithm: 'ES256' })
    visits = () => issuer.requests.length
  })
  afterAll(() => issuer.stop())
  const withName = (host: string): URL => {
    const { port } = new URL(issuer.issuer)
    return new URL(`https://${host}:${port}/.well-known/openid-configuration`)
  }
  const trusting = (): Partial<FetchDocumentOptions> => ({ tls: { ca: issuer.caPem ?? '' } })

  test.each([
    'localhost',
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '[::ffff:127.0.0.1]',
    '[::1]',
    '0.0.0.0',
    '169.254.169.254',
    '[fd00:ec2::254]',
  ])('by https://%s', async (host) => {
    expect(await outcome(withName(host), trusting())).toBe('blocked-address')
    expect(visits()).toBe(0)
  })

  test('by a name that somebody points there', async () => {
    const resolve: ResolveName = (_name, _options, done) =>
      done(null, [
        { address: '93.184.216.34', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ])
    expect(await outcome(withName('issuer.example'), { ...trusting(), resolve })).toBe(
      'blocked-address',
    )
    expect(visits()).toBe(0)
  })

  test('the address that was checked is the one that is dialled', async () => {
    let asked = 0
    const resolve: ResolveName = (_name, _options, done) => {
      asked += 1
      done(null, [{ address: '127.0.0.1', family: 4 }])
    }
    const allowed = { ...trusting(), resolve, isAllowedAddress: addressTest(['127.0.0.1/32']) }
    expect(await outcome(withName('localhost'), allowed)).toContain('"issuer"')
    expect(asked).toBe(1)
  })

  test('a name that is never found ends with the time for it', async () => {
    const resolve: ResolveName = () => {}
    const hasty = { ...trusting(), resolve, timeoutMs: 200 }
    expect(await outcome(withName('issuer.example'), hasty)).toBe('timeout')
  })

  test.each([[[]], [[{ address: '', family: 4 }]], [[{ address: 'localhost', family: 4 }]]])(
    'by a resolver that answers %j',
    async (found) => {
      const resolve: ResolveName = (_name, _options, done) => done(null, found)
      const allowed = { ...trusting(), resolve, isAllowedAddress: addressTest(true) }
      const before = visits()
      expect(await outcome(withName('issuer.example'), allowed)).toMatch(
        /^(unreachable|blocked-address)$/,
      )
      expect(visits()).toBe(before)
    },
  )

  test('by http elsewhere, even where http is allowed on this machine', async () => {
    expect(await outcome(new URL('http://93.184.216.34/'))).toBe('blocked-address')
    const resolve: ResolveName = (_name, _options, done) =>
      done(null, [{ address: '93.184.216.34', family: 4 }])
    expect(await outcome(at('/', 'localhost'), { resolve })).toBe('blocked-address')
  })

  test('an unknown CA and a wrong name are refused', async () => {
    const anywhere = { isAllowedAddress: addressTest(true) }
    expect(await outcome(withName('127.0.0.1'), anywhere)).toBe('untrusted')
    const resolve: ResolveName = (_name, _options, done) =>
      done(null, [{ address: '127.0.0.1', family: 4 }])
    const other = { ...anywhere, ...trusting(), resolve }
    expect(await outcome(withName('other.example'), other)).toBe('untrusted')
  })

  test('an empty CA trusts nothing instead of the CAs of Node.js', async () => {
    const seen: unknown[] = []
    for (const ca of ['', []])
      seen.push(
        await outcome(withName('127.0.0.1'), {
          isAllowedAddress: addressTest(true),
          tls: { ca },
        }),
      )
    expect(seen).toEqual(['untrusted', 'untrusted'])
  })

  test('the environment does not turn verification off', async () => {
    const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      const anywhere = { isAllowedAddress: addressTest(true) }
      expect(await outcome(withName('127.0.0.1'), anywhere)).toBe('untrusted')
    } finally {
      if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
      else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
    }
  })

  test('a name in place of the host is the one that the certificate must have', async () => {
    const anywhere = { isAllowedAddress: addressTest(true) }
    const as = (servername: string) =>
      outcome(withName('127.0.0.1'), { ...anywhere, tls: { ca: issuer.caPem ?? '', servername } })
    expect(await as('localhost')).toContain('"issuer"')
    expect(await as('other.example')).toBe('untrusted')
  })
})

describe('addresses that are allowed by default', () => {
  test.each([
    ['169.254.169.254', 'blocked-address'],
    ['[::ffff:169.254.169.254]', 'blocked-address'],
    ['100.100.100.200', 'blocked-address'],
    ['[fd00:ec2::254]', 'blocked-address'],
  ])('https://%s: %s', async (host, expected) => {
    const { isAllowedAddress: _, ...others } = limits
    const failure: unknown = await fetchDocument(new URL(`https://${host}/`), others).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ code: expected })
  })

  test('all of this machine and its networks', async () => {
    respond = (_request, response) => response.writeHead(200, json).end('{}')
    const { isAllowedAddress: _, ...others } = limits
    expect((await fetchDocument(at(), others)).status).toBe(200)
  })
})

describe('a request', () => {
  test('is sent as given, without asking for compression', async () => {
    const seen: unknown[] = []
    respond = (request, response) => {
      request.setEncoding('utf8')
      let body = ''
      request.on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        seen.push([request.method, request.headers, body])
        response.writeHead(200, { ...json, 'x-two': ['a', 'b'] }).end('{}')
      })
    }
    const { rawHeaders } = await fetchDocument(at(), {
      ...limits,
      method: 'POST',
      body: 'a=b',
      headers: { authorization: 'Basic x' },
    })
    expect(seen).toMatchObject([
      [
        'POST',
        {
          authorization: 'Basic x',
          'accept-encoding': 'identity',
          connection: 'close',
          'content-length': '3',
          'user-agent': 'sallyport',
        },
        'a=b',
      ],
    ])
    expect(rawHeaders.filter((text) => text === 'x-two')).toHaveLength(2)
  })

  test('that its caller aborts ends with the reason of the caller', async () => {
    const ended = new AbortController()
    respond = () => ended.abort(new Error('enough'))
    await expect(fetchDocument(at(), { ...limits, signal: ended.signal })).rejects.toThrow('enough')
  })

  test('that fails names the URL without its query', async () => {
    respond = (_request, response) => response.writeHead(302, { location: '/next' }).end()
    const failure: unknown = await fetchDocument(at('/a?token=s3cret'), limits).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ code: 'redirected', status: 302, location: '/next' })
    expect(String(failure)).toContain('/a: redirect (status 302)')
    expect(String(failure)).not.toContain('s3cret')
  })
})

test.each<[string, AllowHttp, string | undefined]>([
  ['https://issuer.example', 'never', undefined],
  ['https://issuer.example:8443/path', 'never', undefined],
  ['http://127.0.0.1:80', 'loopback', undefined],
  ['http://127.0.0.1:80', 'never', 'is not an https URL'],
  ['http://issuer.example', 'loopback', 'is not an https URL'],
  ['http://issuer.example', 'always', undefined],
  ['http://localhost.evil.example', 'loopback', 'is not an https URL'],
  ['ftp://issuer.example', 'always', 'is not an https URL'],
  ['file:///etc/passwd', 'always', 'is not an https URL'],
  ['https://user:pass@issuer.example', 'never', 'contains a user or a password'],
  ['issuer.example', 'never', 'is not a valid URL'],
])('the URL %s, http allowed %s: %s', (url, allowHttp, problem) => {
  expect(urlProblem(url, allowHttp)).toBe(problem)
})

test.each([
  ['CERT_HAS_EXPIRED', true],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', true],
  ['SELF_SIGNED_CERT_IN_CHAIN', true],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', true],
  ['ERR_TLS_CERT_ALTNAME_INVALID', true],
  ['INVALID_CA', true],
  ['PATH_LENGTH_EXCEEDED', true],
  ['ECONNREFUSED', false],
  ['EPROTO', false],
  ['ERR_SSL_WRONG_VERSION_NUMBER', false],
  ['HPE_INVALID_CONSTANT', false],
])('%s is an error of the certificate: %s', (code, expected) => {
  expect(isCertificateError(code)).toBe(expected)
})

const minute = 60_000
test.each<[string | undefined, number, number]>([
  ['public, max-age=3600', 0, 60 * minute],
  ['max-age="600"', 0, 10 * minute],
  ['MAX-AGE=600', 0, 10 * minute],
  ['public, max-age=3600', 3_000, 10 * minute],
  ['max-age=0', 0, minute],
  ['max-age=600', 9_999, minute],
  ['no-store, max-age=600', 0, minute],
  ['no-cache', 0, minute],
  ['max-age=99999999', 0, 24 * 60 * minute],
  ['max-age=-1', 0, 5 * minute],
  ['max-age=many', 0, 5 * minute],
  [undefined, 0, 5 * minute],
])('Cache-Control %j at the age of %i s allows %i ms', (cacheControl, ageSeconds, expected) => {
  const bounds = { minMs: minute, maxMs: 24 * 60 * minute, defaultMs: 5 * minute }
  expect(cacheLifetimeMs({ cacheControl, ageSeconds }, bounds)).toBe(expected)
})
