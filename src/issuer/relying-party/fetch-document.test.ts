import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { addressTest } from '../../http/address-rules.ts'
import { startTestIssuer, type TestIssuer } from '../../testing/index.ts'
import { type FetchRules, fetchDocument, problemOfUrl, type ResolveName } from './fetch-document.ts'

const rules: FetchRules = {
  isAllowedAddress: addressTest(false),
  allowsHttpOnLoopback: true,
  timeoutMs: 5_000,
  maxBytes: 50 * 1024,
}
const json = { 'content-type': 'application/json' }

let answer: RequestListener
const server = createServer((request, response) => answer(request, response))
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

const outcome = async (url: URL, more: Partial<FetchRules> = {}): Promise<string> =>
  fetchDocument(url, { ...rules, ...more }).then(
    ({ body }) => body.toString(),
    (error: { code?: string }) => error.code ?? 'thrown',
  )

describe('an answer that is not plainly a document is refused [ISS-P2]', () => {
  test.each<[string, string, RequestListener]>([
    ['a document', '{}', (_q, response) => response.writeHead(200, json).end('{}')],
    [
      'a redirect',
      'redirected',
      (_q, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end(),
    ],
    ['a permanent one', 'redirected', (_q, response) => response.writeHead(308, json).end('{}')],
    ['401', 'bad-status', (_q, response) => response.writeHead(401, json).end('{}')],
    ['no content', 'bad-status', (_q, response) => response.writeHead(204).end()],
    ['part of it', 'bad-status', (_q, response) => response.writeHead(206, json).end('{}')],
    [
      'a page',
      'bad-document',
      (_q, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{}'),
    ],
    ['no type', 'bad-document', (_q, response) => response.writeHead(200).end('{}')],
    [
      'compression',
      'bad-document',
      (_q, response) =>
        response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync('{}')),
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
    answer = listener
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
  ])('%s: too slow, whatever trickles', async (_name, listener) => {
    answer = listener
    expect(await outcome(at(), { timeoutMs: 300 })).toBe('too-slow')
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
  ])('%s is no answer', async (_name, bytes) => {
    const strange = createTcpServer((socket: Socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(bytes))
    })
    await once(strange.listen(0, '127.0.0.1'), 'listening')
    const url = new URL(`http://127.0.0.1:${portOf(strange)}/`)
    expect(await outcome(url, { timeoutMs: 2_000 })).toMatch(/^(unreachable|bad-status)$/)
    strange.close()
  })

  test('interim answers without end', async () => {
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
    expect(await outcome(url, { timeoutMs: 300 })).toBe('too-slow')
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

describe('nothing inside is reached [ISS-P2]', () => {
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
  const trusting = (): Partial<FetchRules> => ({ caPem: issuer.caPem })

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
    expect(await outcome(withName('issuer.example'), hasty)).toBe('too-slow')
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
    expect(await outcome(new URL('http://93.184.216.34/'))).toBe('bad-document')
    const resolve: ResolveName = (_name, _options, done) =>
      done(null, [{ address: '93.184.216.34', family: 4 }])
    expect(await outcome(at('/', 'localhost'), { resolve })).toBe('blocked-address')
  })

  test('an unknown CA and a wrong name are refused', async () => {
    const anywhere = { isAllowedAddress: addressTest(true) }
    expect(await outcome(withName('127.0.0.1'), anywhere)).toBe('untrusted-certificate')
    const resolve: ResolveName = (_name, _options, done) =>
      done(null, [{ address: '127.0.0.1', family: 4 }])
    const other = { ...anywhere, ...trusting(), resolve }
    expect(await outcome(withName('other.example'), other)).toBe('untrusted-certificate')
  })
})

describe('a credential is shown to its own origin and to no other', () => {
  const seen: (string | undefined)[] = []
  const noting: RequestListener = ({ headers }, response) => {
    seen.push(headers.authorization)
    response.writeHead(200, json).end('{}')
  }
  test.each([
    ['its own', () => at().origin, 'Bearer of-mine'],
    ['another port', () => 'http://127.0.0.1:1', undefined],
    ['another scheme', () => at().origin.replace('http', 'https'), undefined],
  ])('%s', async (_name, origin, expected) => {
    answer = noting
    await fetchDocument(at(), {
      ...rules,
      credential: { origin: origin(), token: () => 'of-mine\n' },
    })
    expect(seen.pop()).toBe(expected)
  })
})

test.each([
  ['https://issuer.example', undefined],
  ['https://issuer.example:8443/path', undefined],
  ['http://127.0.0.1:80', undefined],
  ['http://issuer.example', 'is no https URL'],
  ['http://localhost.evil.example', 'is no https URL'],
  ['ftp://issuer.example', 'is no https URL'],
  ['file:///etc/passwd', 'is no https URL'],
  ['https://user:pass@issuer.example', 'has a user or a password in it'],
  ['issuer.example', 'is no URL'],
])('the address %s: %s', (url, problem) => {
  expect(problemOfUrl(url, rules)).toBe(problem)
})
