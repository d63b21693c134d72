import { constants, createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type GuardLab, sendRaw, startGuardLab } from '../../src/addon/guard/guard-lab.suite.ts'
import {
  type Forgery,
  forgedToken,
  labCa,
  labLeaf,
  labSigner,
  sans,
  segmentOf,
  signedToken,
} from '../../src/addon/token/token-lab.suite.ts'
import { labNow, named, usage } from '../../src/pki/certificate-lab.suite.ts'

let lab: GuardLab
beforeAll(async () => {
  lab = await startGuardLab()
})
afterAll(() => lab.stop())

const now = Math.floor(labNow / 1000)

/** A request with these header lines; `$T` stands for a good token of bob. */
const get = (...lines: readonly string[]): string =>
  ['GET /x HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n')
const bearer = 'Authorization: Bearer $T'

/** What the add-on and the client see: `bob` if exactly he reached it, else the status, if nothing reached it. */
async function outcome(bytes: string, token = lab.token()): Promise<string | number> {
  const { addon, port } = lab
  const requests = addon.seen.length
  const { connections } = addon
  const { status, text } = await sendRaw(port, bytes.replaceAll('$T', token))
  if (status === 200) return addon.values('x-authenticated-user').join(' & ')
  if (addon.seen.length !== requests || addon.connections !== connections)
    return 'reached the add-on'
  if (/www-authenticate/i.test(text)) return 'asked for a password'
  return status
}

type Row = readonly [number: string, what: string, bytes: string, expected: string | number]
const rows = (...list: readonly Row[]): readonly Row[] => list

describe('headers: expected and seen', () => {
  test.each(
    rows(
      [
        '[ADDON-T1]',
        'a forged header beside a token',
        get(bearer, 'X-Authenticated-User: root'),
        'bob',
      ],
      ['[ADDON-T2]', 'a forged header without a token', get('X-Authenticated-User: root'), 403],
      ['[ADDON-T3]', 'underscores', get(bearer, 'X_Authenticated_User: root'), 'bob'],
      ['[ADDON-T3]', 'an underscore and a dash', get(bearer, 'x-authenticated_user: root'), 'bob'],
      ['[ADDON-T3]', 'dots', get(bearer, 'X.Authenticated.User: root'), 'bob'],
      ['[ADDON-T3]', 'other signs', get(bearer, "X!Authenticated'User: root"), 'bob'],
      ['[ADDON-T3]', 'capitals', get(bearer, 'X-AUTHENTICATED-USER: root'), 'bob'],
      [
        '[ADDON-T4]',
        'two of them',
        get(bearer, ...Array<string>(2).fill('X-Authenticated-User: root')),
        'bob',
      ],
      [
        '[ADDON-T5]',
        'a nominated identity',
        get(bearer, 'Connection: close, X-Authenticated-User'),
        'bob',
      ],
      ['[ADDON-T6]', 'a nominated token', get(bearer, 'Connection: Authorization'), 'bob'],
      ['[ADDON-T6]', 'a nominated token that is absent', get('Connection: Authorization'), 403],
      [
        '[ADDON-T7]',
        'two Connection headers',
        get(bearer, 'Connection: ', 'Connection: X-Authenticated-User'),
        'bob',
      ],
      ['[ADDON-T8]', 'a good token, then a bad one', get(bearer, 'Authorization: Bearer x'), 403],
      ['[ADDON-T8]', 'a bad token, then a good one', get('Authorization: Bearer x', bearer), 403],
      ['[ADDON-T9]', 'the scheme in small letters', get('Authorization: bearer $T'), 'bob'],
      ['[ADDON-T9]', 'two spaces', get('Authorization: Bearer  $T'), 403],
      ['[ADDON-T9]', 'two tokens', get('Authorization: Bearer $T, Bearer $T'), 403],
      ['[ADDON-T9]', 'a tab', get('Authorization: Bearer\t$T'), 403],
      ['[ADDON-T9]', 'another scheme', get('Authorization: Basic cm9vdDpyb290'), 403],
      [
        '[ADDON-T10]',
        'a token in the query',
        'GET /?access_token=$T HTTP/1.1\r\nHost: a\r\n\r\n',
        403,
      ],
      ['[ADDON-T10]', 'a token in a cookie', get('Cookie: token=$T'), 403],
      ['[ADDON-T10]', 'a token in Authentication', get('Authentication: Bearer $T'), 403],
      ['[ADDON-T10]', 'a token in X-Authorization', get('X-Authorization: Bearer $T'), 403],
      ['[ADDON-T12]', 'names of prototypes', get(bearer, '__proto__: x', 'constructor: y'), 'bob'],
      [
        '[ADDON-T13]',
        'names of others',
        get(bearer, 'Impersonate-User: root', 'X-Remote-User: root'),
        'bob',
      ],
      ['[ADDON-T33]', 'two lengths of a body', post('Content-Length: 1', 'Content-Length: 1'), 400],
      [
        '[ADDON-T33]',
        'a length and chunks',
        post('Content-Length: 5', 'Transfer-Encoding: chunked'),
        400,
      ],
      ['[ADDON-T33]', 'xchunked', post('Transfer-Encoding: xchunked'), 400],
      ['[ADDON-T33]', 'gzip, chunked', post('Transfer-Encoding: gzip, chunked'), 400],
      [
        '[ADDON-T33]',
        'chunked twice',
        post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'),
        400,
      ],
      [
        '[ADDON-T33]',
        'Transfer~Encoding',
        post('Transfer~Encoding: chunked', 'Content-Length: 0'),
        400,
      ],
      [
        '[ADDON-T33]',
        'Transfer_Encoding',
        post('Transfer_Encoding: chunked', 'Content-Length: 0'),
        400,
      ],
      ['[ADDON-T37]', 'an absolute address', line('GET http://evil/x HTTP/1.1'), 400],
      ['[ADDON-T37]', 'two slashes', line('GET //evil.com/x HTTP/1.1'), 400],
      ['[ADDON-T37]', 'an address with a password', line('GET http://u:p@evil/ HTTP/1.1'), 400],
      ['[ADDON-T40]', 'two hosts', get(bearer, 'Host: b'), 400],
      ['[ADDON-T40]', 'no host', `GET / HTTP/1.1\r\n${bearer}\r\n\r\n`, 400],
      ['[ADDON-T40]', 'an empty host', `GET / HTTP/1.1\r\nHost: \r\n${bearer}\r\n\r\n`, 400],
      [
        '[ADDON-T40]',
        'a host with a path',
        `GET / HTTP/1.1\r\nHost: a/b\r\n${bearer}\r\n\r\n`,
        400,
      ],
      [
        '[ADDON-T40]',
        'a host in capitals',
        `GET / HTTP/1.1\r\nHost: A.B:80\r\n${bearer}\r\n\r\n`,
        'bob',
      ],
      ['[ADDON-T60]', 'TRACE', line('TRACE / HTTP/1.1'), 405],
      ['[ADDON-T60]', 'CONNECT', line('CONNECT 169.254.169.254:80 HTTP/1.1'), 405],
      ['[ADDON-T60]', 'an unknown method', line('STEAL / HTTP/1.1'), 400],
    ),
  )('%s %s', async (_number, _what, bytes, expected) => {
    expect(await outcome(bytes)).toBe(expected)
  })

  test('nothing of an attacker reaches the add-on, whatever it is called, and no token does [ADDON-R33, ADDON-R34, ADDON-T13]', async () => {
    const names = [
      'Impersonate-User',
      'Impersonate-Extra-Scopes',
      'X-Remote-User',
      'X-Remote-Group',
      'X-Forwarded-User',
      'X-Forwarded-Groups',
      'Remote-User',
      'REMOTE_USER',
      'Cf-Access-Jwt-Assertion',
      'X-Goog-Authenticated-User-Email',
      'X-Goog-Iap-Jwt-Assertion',
      'X-Amzn-Oidc-Data',
      'X-Authorized-User',
      'X-Authenticated-Groups',
      'X-Authenticated-User-Encoding',
      'X-Auth-Request-User',
      'Proxy-Authorization',
      'Authentication',
    ]
    expect(await outcome(get(bearer, ...names.map((name) => `${name}: evil`)))).toBe('bob')
    expect(JSON.stringify(lab.addon.seen.at(-1))).not.toMatch(/evil|authorization|Bearer/i)
  })

  test('a trailer never becomes a header [ADDON-T11]', async () => {
    const body = '3\r\nabc\r\n0\r\nX-Authenticated-User: root\r\n\r\n'
    const head = post('Transfer-Encoding: chunked', 'Trailer: X-Authenticated-User')
    expect(await outcome(head + body)).toBe('bob')
    const seen = lab.addon.seen.at(-1)
    expect([seen?.body, seen?.trailers]).toEqual(['abc', []])
  })
})

function post(...lines: readonly string[]): string {
  return ['POST /x HTTP/1.1', 'Host: a', bearer, ...lines, '', ''].join('\r\n')
}

function line(first: string): string {
  return [first, 'Host: a', bearer, '', ''].join('\r\n')
}

describe('paths: the same bytes, or a 400 [ADDON-T38]', () => {
  test.each([
    ['/..;/', 400],
    ['/a/../../b', 400],
    ['/%2e%2e/', 400],
    ['/%2E%2e%2fb', 400],
    ['/a/..%5cb', 400],
    ['/a\\b', 400],
    ['/a%00b', 400],
    ['/a#b', 400],
    ['//admin', 400],
    ['/a%2fb', 'bob'],
    ['/%252e%252e/', 'bob'],
    ['/a%23b', 'bob'],
    ['/a//b', 'bob'],
    ['/.well-known/x', 'bob'],
    ['/a?b=../c', 'bob'],
  ])('%s', async (path, expected) => {
    const before = lab.addon.seen.length
    expect(await outcome(line(`GET ${path} HTTP/1.1`))).toBe(expected)
    const reached = lab.addon.seen.slice(before).map(({ url }) => url)
    expect(reached).toEqual(expected === 'bob' ? [path] : [])
  })
})

describe('names of users arrive whole and unambiguous', () => {
  test.each([
    ['山田', '%E5%B1%B1%E7%94%B0', ['percent']],
    ['é', '%C3%A9', ['percent']],
    ['bob, root', 'bob%2C%20root', ['percent']],
    ['bob%2C%20root', 'bob%252C%2520root', ['percent']],
    ['system:serviceaccount:a:b', 'system:serviceaccount:a:b', []],
    ['Ann Smith', 'Ann Smith', []],
  ])('%j [ADDON-T14, ADDON-T15]', async (sub, expected, encoding) => {
    expect(await outcome(get(bearer), lab.token({ claims: { sub } }))).toBe(expected)
    expect(lab.addon.values('x-authenticated-user-encoding')).toEqual(encoding)
  })

  test.each([
    ['of 4 KiB and more', 'x'.repeat(4097)],
    ['that is half a character', '\ud800'],
    ['with a line break', 'a\r\nX-Authenticated-User: root'],
    ['with a null byte', 'a\0b'],
    ['with a space in front', ' bob'],
    ['with a space behind', 'bob '],
    ['of one space', ' '],
  ])('a name %s is refused, not cut [ADDON-T14]', async (_what, sub) => {
    expect(await outcome(get(bearer), lab.token({ claims: { sub } }))).toBe(403)
  })
})

const attacker = generateKeyPairSync('ec', { namedCurve: 'P-256' })

describe('tokens: each of these is a 403, and no connection is made', () => {
  const forged = (...list: readonly (readonly [string, string, Forgery])[]) => list
  test.each(
    forged(
      ['[ADDON-T16]', 'alg none', { header: { alg: 'none' } }],
      ['[ADDON-T16]', 'alg None', { header: { alg: 'None' } }],
      ['[ADDON-T16]', 'alg nOnE', { header: { alg: 'nOnE' } }],
      ['[ADDON-T19]', 'RS256 with an EC key', { header: { alg: 'RS256' } }],
      ['[ADDON-T19]', 'an unknown algorithm', { header: { alg: 'ES256K' } }],
      ['[ADDON-T20]', 'an unknown kid', { header: { kid: 'x' } }],
      ['[ADDON-T20]', 'a kid that is a path', { header: { kid: '../../etc/passwd' } }],
      ['[ADDON-T20]', 'a kid that is SQL', { header: { kid: "' OR 1=1 --" } }],
      ['[ADDON-T20]', 'a kid of 10 KiB', { header: { kid: 'k'.repeat(10_240) } }],
      ['[ADDON-T20]', 'a kid that is a number', { header: { kid: 1 } }],
      ['[ADDON-T20]', 'a kid of a prototype', { header: { kid: '__proto__' } }],
      ['[ADDON-T21]', 'jku', { header: { jku: 'http://169.254.169.254/' } }],
      ['[ADDON-T21]', 'x5u', { header: { x5u: 'http://169.254.169.254/' } }],
      [
        '[ADDON-T22]',
        'an embedded key',
        { header: { jwk: attacker.publicKey.export({ format: 'jwk' }) } },
      ],
      ['[ADDON-T24]', 'crit', { header: { crit: ['x'] } }],
      ['[ADDON-T24]', 'b64', { header: { b64: false } }],
      ['[ADDON-T24]', 'zip', { header: { zip: 'DEF' } }],
      ['[ADDON-T24]', 'cty', { header: { cty: 'JWT' } }],
      ['[ADDON-T25]', 'two subjects', { payload: claimsText('"sub":"bob","sub":"root"') }],
      ['[ADDON-T25]', 'two audiences', { payload: claimsText('"sub":"bob","aud":["a/b"]') }],
      ['[ADDON-T26]', 'a list as payload', { payload: '[]' }],
      ['[ADDON-T26]', 'bytes behind the payload', { payload: `${claimsText('"sub":"bob"')}x` }],
      ['[ADDON-T26]', 'bad UTF-8', { payload: Buffer.from([0x7b, 0xff, 0x7d]) }],
      ['[ADDON-T27]', 'no exp', { claims: { exp: undefined } }],
      ['[ADDON-T27]', 'exp as text', { claims: { exp: String(now + 60) } }],
      ['[ADDON-T27]', 'exp null, as NaN becomes', { claims: { exp: Number.NaN } }],
      ['[ADDON-T27]', 'exp 1e308', { claims: { exp: 1e308 } }],
      ['[ADDON-T27]', 'a negative exp', { claims: { exp: -1 } }],
      ['[ADDON-T27]', 'exp with a fraction', { claims: { exp: now + 0.5 } }],
      [
        '[ADDON-T27]',
        'exp beyond the skew',
        { claims: { iat: now - 60, nbf: now - 60, exp: now - 11 } },
      ],
      ['[ADDON-T27]', 'iat in the future', { claims: { iat: now + 30 } }],
      ['[ADDON-T27]', 'nbf in the future', { claims: { nbf: now + 30 } }],
      ['[ADDON-T27]', 'a year of life', { claims: { exp: now + 31_536_000 } }],
      ['[ADDON-T28]', 'no audience', { claims: { aud: undefined } }],
      ['[ADDON-T28]', 'an empty list of audiences', { claims: { aud: [] } }],
      ['[ADDON-T28]', 'another Service', { claims: { aud: ['kube-system/dash'] } }],
      ['[ADDON-T28]', 'a longer name', { claims: { aud: ['kube-system/dashboard-evil'] } }],
      ['[ADDON-T28]', 'other capitals', { claims: { aud: ['Kube-System/dashboard'] } }],
      ['[ADDON-T28]', 'another namespace', { claims: { aud: ['default/dashboard'] } }],
      [
        '[ADDON-T28]',
        'ours and a hundred others',
        { claims: { aud: ['kube-system/dashboard', ...many()] } },
      ],
      [
        '[ADDON-T29]',
        'a service account token',
        { header: { typ: undefined }, claims: { iss: 'https://k' } },
      ],
      ['[ADDON-T29]', 'an ID token', { header: { typ: 'JWT' }, claims: { iss: 'https://idp' } }],
      ['[ADDON-T29]', 'our type of another issuer', { claims: { iss: 'https://pomerium' } }],
    ),
  )('%s %s', async (_number, _what, forgery) => {
    expect(await outcome(get(bearer), lab.token(forgery))).toBe(403)
  })

  function many(): string[] {
    return Array.from({ length: 100 }, (_, index) => `a/b${index}`)
  }

  function claimsText(more: string): string {
    const times = `"exp":${now + 60},"iat":${now}`
    return `{"iss":"sallyport.dev/addon",${times},"aud":["kube-system/dashboard"],${more}}`
  }

  const parts = (): readonly string[] => lab.token().split('.')
  test.each<readonly [string, string, () => string]>([
    ['[ADDON-T16]', 'no signature', () => `${parts()[0]}.${parts()[1]}.`],
    ['[ADDON-T17]', 'HMAC with the PEM of the public key', () => hmac('pem')],
    ['[ADDON-T17]', 'HMAC with the DER of the public key', () => hmac('der')],
    ['[ADDON-T18]', 'a signature of zeros', () => withSignature(Buffer.alloc(64))],
    ['[ADDON-T18]', 'a DER signature', () => withSignature(derSignature())],
    ['[ADDON-T18]', '63 bytes', () => withSignature(Buffer.alloc(63, 7))],
    ['[ADDON-T18]', '65 bytes', () => withSignature(Buffer.alloc(65, 7))],
    [
      '[ADDON-T22]',
      'the key of an attacker',
      () => signedToken(decoded(0), decoded(1), attacker.privateKey),
    ],
    ['[ADDON-T24]', 'five parts', () => `${lab.token()}.a.b`],
    ['[ADDON-T24]', 'JSON', () => JSON.stringify({ payload: parts()[1], signature: parts()[2] })],
    ['[ADDON-T26]', 'padding', () => `${parts()[0]}.${parts()[1]}=.${parts()[2]}`],
    ['[ADDON-T26]', 'another alphabet', () => `${parts()[0]}.${parts()[1]}+.${parts()[2]}`],
    ['[ADDON-T26]', 'a space', () => `${parts()[0]} .${parts()[1]}.${parts()[2]}`],
    ['[ADDON-T32]', '20 KiB', () => `${parts()[0]}.${'A'.repeat(20_480)}.${parts()[2]}`],
  ])('%s %s', async (_number, _what, make) => {
    expect(await outcome(get(bearer), make())).toBe(403)
  })

  const decoded = (index: number): string =>
    Buffer.from(parts()[index] ?? '', 'base64url').toString()
  const input = (): string => `${parts()[0]}.${parts()[1]}`
  const withSignature = (bytes: Buffer): string => `${input()}.${segmentOf(bytes)}`
  const derSignature = (): Buffer => sign('sha256', Buffer.from(input()), lab.signer.current.key)

  function hmac(form: 'pem' | 'der'): string {
    const key = createPublicKey(lab.signer.current.key)
    const secret =
      form === 'pem'
        ? key.export({ type: 'spki', format: 'pem' })
        : key.export({ type: 'spki', format: 'der' })
    const [header = '', payload = ''] = lab.token({ header: { alg: 'HS256' } }).split('.')
    const mac = createHmac('sha256', secret).update(`${header}.${payload}`).digest()
    return `${header}.${payload}.${segmentOf(mac)}`
  }
})

test('an RSA key of the API server signs by RS256, and by PS256 it does not [ADDON-T19]', async () => {
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const signer = labSigner(await labLeaf(lab.ca, { key }))
  expect(await outcome(get(bearer), forgedToken(signer))).toBe('bob')
  const unsigned = forgedToken(signer, { header: { alg: 'PS256' } })
  const input = unsigned.slice(0, unsigned.lastIndexOf('.'))
  const padding = constants.RSA_PKCS1_PSS_PADDING
  const signature = sign('sha256', Buffer.from(input), { key, padding, saltLength: 32 })
  expect(await outcome(get(bearer), `${input}.${segmentOf(signature)}`)).toBe(403)
})

describe('signers under the same CA: 403, and no connection is made [ADDON-T23, ADDON-R27]', () => {
  test.each<readonly [string, () => Promise<string>]>([
    ['itself', async () => forgedToken(labSigner(await labCa()))],
    [
      "a kubelet's client certificate",
      async () =>
        forgedToken(
          labSigner(
            await labLeaf(lab.ca, { subject: named('system:node:a'), usages: [usage.clientAuth] }),
          ),
        ),
    ],
    [
      "a kubelet's serving certificate",
      async () => forgedToken(labSigner(await labLeaf(lab.ca, { extensions: [sans('node-a')] }))),
    ],
    [
      "a user's client certificate",
      async () =>
        forgedToken(
          labSigner(
            await labLeaf(lab.ca, {
              subject: named('kubernetes.default.svc'),
              usages: [usage.clientAuth],
              extensions: [],
            }),
          ),
        ),
    ],
    [
      'an expired certificate of the server',
      async () => forgedToken(labSigner(await labLeaf(lab.ca, { notAfter: labNow - 1000 }))),
    ],
    [
      'a certificate with a name of evil',
      async () =>
        forgedToken(
          labSigner(await labLeaf(lab.ca, { extensions: [sans('kubernetes.default.svc.evil')] })),
        ),
    ],
    ['a chain that is reversed', async () => forgedToken(labSigner(lab.ca, await labLeaf(lab.ca)))],
    [
      'fifty certificates',
      async () => forgedToken(labSigner(...Array.from({ length: 50 }, () => lab.ca))),
    ],
    [
      'a user who shows the certificate of the server',
      async () => {
        const user = await labLeaf(lab.ca, { usages: [usage.clientAuth] })
        const { x5c, kid } = lab.signer.current
        return forgedToken(labSigner(user), { header: { x5c, kid } })
      },
    ],
  ])('%s', async (_name, make) => {
    expect(await outcome(get(bearer), await make())).toBe(403)
  })

  test('and the API server itself passes', async () => {
    expect(await outcome(get(bearer))).toBe('bob')
  })
})

test('after all of this no token is in the log, not even in part [ADDON-T64]', () => {
  const told = lab.logged.join('')
  expect(told.split('\n').length).toBeGreaterThan(100)
  expect(told).not.toMatch(/eyJ|[Bb]earer |Basic |access_token|token=/)
})
