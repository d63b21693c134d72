import { describe, expect, test } from 'vitest'
import { redact } from './redact.ts'

test.each([
  ['/a?watch=1&continue=eyJ2IjoibWV0YSJ9', '/a?watch=1&continue=eyJ2IjoibWV0YSJ9'],
  ['/a?token=x', '/a?token=REDACTED'],
  ['/a?x=1&access_token=x&y=2', '/a?x=1&access_token=REDACTED&y=2'],
  ['/a?API-Key=x', '/a?API-Key=REDACTED'],
  ['/a?client%5Fsecret=x', '/a?client%5Fsecret=REDACTED'],
  ['/a?code=x&state=y', '/a?code=REDACTED&state=y'],
  ['/a?%zz=x', '/a?%zz=x'],
  ['/a?add-auth=true', '/a?add-auth=true'],
  ['/a?flag', '/a?flag'],
  ['/a', '/a'],
  ['/a?x=eyJhbGciOi.e30.c2ln', '/a?x=REDACTED'],
  ['/a?x=eyJhbGciOi.e30.c2ln.more', '/a?x=REDACTED.more'],
  ['/a?x=eyJhbGciOi.e30', '/a?x=REDACTED'],
  ['/a/preyJhbGciOi.e30./b', '/a/prREDACTED/b'],
  ['/a?x=eyJhbGciOi.', '/a?x=eyJhbGciOi.'],
  ['/a?x=eyJabcd.e30', '/a?x=eyJabcd.e30'],
  ['/a?x=b.eyJhbGciOi.e30.c,eyJhbGciOi.e30', '/a?x=b.REDACTED,REDACTED'],
])('[SEC-R1502] %s is written %s', (uri, written) => {
  expect(redact(uri)).toBe(written)
})

const jwt = 'eyJhbGciOiJFUzI1NiJ9.c2VjcmV0LXBheWxvYWQ.c2lnbmF0dXJl'
const token = 'abcdef.0123456789abcdef'
const entities = (entity: (code: number) => string): string =>
  Array.from(Buffer.from(token), entity).join('')
const pem = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\nhunter\n-----END EC PRIVATE KEY-----'

describe('a credential', () => {
  test.each([
    ['a JWT', `x ${jwt} y`, 'x REDACTED y'],
    ['a detached JWS', 'eyJhbGciOi..c2lnbmF0dXJl', 'REDACTED'],
    ['a JWT in base64', Buffer.from(jwt).toString('base64url'), 'REDACTED'],
    [
      'an opaque bearer token',
      'Authorization: Bearer s3cr3t-opaque',
      'Authorization: Bearer REDACTED',
    ],
    ['basic', 'basic dXNlcjpwYXNz', 'basic REDACTED'],
    ['basic in a URL', 'https://user:pass@host/path', 'https://REDACTED@host/path'],
    [
      'a private key',
      `a ${pem} b`,
      'a -----BEGIN EC PRIVATE KEY-----REDACTED-----END EC PRIVATE KEY----- b',
    ],
    ['a private key that is cut off', pem.slice(0, 50), '-----BEGIN EC PRIVATE KEY-----REDACTED'],
    ['a bootstrap token of letters', 'abcdef.abcdefghijklmnop!', 'abcdef.REDACTED!'],
    ['one that ends a sentence', 'token abcdef.abcdefghijklmnop.', 'token abcdef.REDACTED.'],
    ['one with a dash behind it', 'abcdef.abcdefghijklmnop- x', 'abcdef.REDACTED- x'],
    ['one escaped as in C', 'abcdef\\x2e0123456789abcdef', 'abcdef.REDACTED'],
    ['one in capitals', 'ABCDEF.0123456789ABCDEF', 'ABCDEF.REDACTED'],
    ['one in hexadecimal', `x/${Buffer.from(token).toString('hex')}/y`, 'x/REDACTED/y'],
    ['one in hexadecimal capitals', Buffer.from(token).toString('hex').toUpperCase(), 'REDACTED'],
    ['one in HTML entities', entities((code) => `&#${code};`), 'abcdef.REDACTED'],
    [
      'one in hexadecimal entities',
      entities((code) => `&#x${code.toString(16)};`),
      'abcdef.REDACTED',
    ],
    [
      'one in entities in a URL',
      encodeURIComponent(entities((code) => `&#${code};`)),
      'abcdef.REDACTED',
    ],
    ['one escaped whole', '\\x61bcdef\\x2e0123456789\\x61bcdef', 'abcdef.REDACTED'],
    [
      'two bootstrap tokens',
      'abcdef.0123456789abcdef,ghijkl.0123456789abcdef',
      'abcdef.REDACTED,ghijkl.REDACTED',
    ],
    ['a parameter with an escaped name', '?to%6ben=hunter3', '?to%6ben=REDACTED'],
  ])('[SEC-R1502] %s is removed', (_name, text, clean) => {
    expect(redact(text)).toBe(clean)
    expect(redact(redact(text))).toBe(clean)
  })

  test('[SEC-R1502] leaves JSON valid wherever it stands', () => {
    for (const text of [
      jwt,
      pem,
      pem.slice(0, 50),
      'abcdef%2E0123456789abcdef"x',
      '\\u0061bcdef.0123456789abcdef',
      'a\\\\x61bcdef\\x2e0123456789abcdef\\n',
    ])
      expect(JSON.parse(redact(JSON.stringify({ [text]: [text, 'after'] })))).toMatchObject({})
  })
})

test.each([
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'storageversionmigrations.storagemigration.k8s.io',
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'bootstrap-token-abcdef',
  'X509SHA256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
  '7f1b0a2e-0000-4000-8000-000000000001',
  'kubectl/v1.36.0 (linux/amd64) kubernetes/1234567',
  'nginx-7d8b49557c-x7k2p.17f2b3c4d5e6f7a8',
  'the Authorization header is not a bearer token',
  'Basic Constraints',
  '/api/v1/namespaces/a/pods?labelSelector=app%3Dweb&limit=500',
  'validatingadmissionpolicybindings',
  'at Immediate.processImmediate (node:internal)',
  'a &#39;quoted&#39; word &amp; more',
])('[SEC-R1503] %s stays as it is', (text) => {
  expect(redact(text)).toBe(text)
})

test.each([
  'a',
  'abcdef.',
  'abcdef.0123456789abcdef',
  '%61',
  '%2',
  'eyJ',
  'eyJaaaaaa',
  '?a',
  '&a=',
  'YWJjZGVm',
  '://',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN PRIVATE KEY-----"',
  'bearer ',
  'bearer+++++++',
  '\\',
  '\\u00',
  '"',
])('[SEC-R1503] a text of 1 MB of %s is read to its end', (part) => {
  expect(redact(part.repeat(2 ** 20 / part.length)).length).toBeGreaterThan(0)
})
