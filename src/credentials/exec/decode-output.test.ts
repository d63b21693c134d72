import { inspect } from 'node:util'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type LabCertificate, labCertificate, named } from '../../pki/certificate-lab.suite.ts'
import { generateEcKey, privateKeyPem } from '../../pki/index.ts'
import type { Credential } from '../credential.ts'
import { CredentialError } from '../errors.ts'
import { certificateNotAfter, decodeOutput, parseRfc3339 } from './decode-output.ts'
import { failureOf, version } from './plugin-lab.suite.ts'

const plugin = { command: 'the-plugin', resolvedPath: '/bin/the-plugin' }
const decode = (output: string | Uint8Array, apiVersion = version('v1')): Promise<Credential> =>
  decodeOutput(typeof output === 'string' ? Buffer.from(output) : output, apiVersion, plugin)
const answer = (status: unknown, more: object = {}): string =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion: version('v1'), ...more, status })
const token = { token: 'canary-token' }

async function outcome(output: string | Uint8Array, apiVersion?: string): Promise<unknown> {
  return decode(output, apiVersion).then(
    (credential) => ({ ...credential, token: credential.token?.reveal() }),
    (error: { code: string }) => error.code,
  )
}

describe('what kubectl accepts or refuses, row by row', () => {
  const good = { token: 'canary-token' }
  test.each<[string, string, unknown]>([
    ['a plain answer', answer(token), good],
    ['indented', JSON.stringify(JSON.parse(answer(token)), null, 4), good],
    ['no kind', answer(token, { kind: undefined }), good],
    ['another kind', answer(token, { kind: 'Pod' }), 'DECODE'],
    ['the seed’s kind in v1', answer(token, { kind: 'ExecCredentials' }), 'DECODE'],
    ['no apiVersion', answer(token, { apiVersion: undefined }), 'VERSION_MISMATCH'],
    ['nothing at all', '', 'VERSION_MISMATCH'],
    ['only white space', ' \n\t', 'VERSION_MISMATCH'],
    ['an older version', answer(token, { apiVersion: version('v1beta1') }), 'VERSION_MISMATCH'],
    ['another group', answer(token, { apiVersion: 'v1' }), 'VERSION_MISMATCH'],
    [
      'YAML',
      `apiVersion: ${version('v1')}\nstatus:\n  token: canary-token\n  expirationTimestamp: 2026-01-01T00:00:00Z\n`,
      { ...good, expiresAt: Date.UTC(2026, 0, 1) },
    ],
    ['YAML with a document start', `---\n${answer(token)}`, good],
    ['a byte order mark', `\uFEFF${answer(token)}`, good],
    ['text before it', `Opening your browser ...\n${answer(token)}`, 'DECODE'],
    ['text after it', `${answer(token)}\nDone.`, 'DECODE'],
    ['a second answer', `${answer(token)}\n${answer(token)}`, 'DECODE'],
    ['two YAML documents', `---\n${answer(token)}\n---\n${answer(token)}`, 'DECODE'],
    ['fields that nobody knows', answer({ ...token, more: 1 }, { metadata: {}, spec: {} }), good],
    ['Status in capitals', answer(undefined, { Status: token }), 'NO_STATUS'],
    ['Token in capitals', answer({ Token: 'canary-token' }), 'NO_CREDENTIAL'],
    ['no status', answer(undefined), 'NO_STATUS'],
    ['a null status', answer(null), 'NO_STATUS'],
    ['a status that is text', answer('canary-token'), 'DECODE'],
    ['a status that is a list', answer([token]), 'DECODE'],
    ['an empty status', answer({}), 'NO_CREDENTIAL'],
    ['an empty token', answer({ token: '' }), 'NO_CREDENTIAL'],
    ['a token that is a number', answer({ token: 7 }), 'DECODE'],
    ['a null token', answer({ token: null }), 'NO_CREDENTIAL'],
    ['a certificate alone', answer({ clientCertificateData: 'x' }), 'NO_CREDENTIAL'],
    ['a key alone', answer({ ...token, clientKeyData: 'x' }), 'NO_CREDENTIAL'],
    [
      'PEM that is none',
      answer({ clientCertificateData: 'x', clientKeyData: 'y' }),
      'CERTIFICATE_INVALID',
    ],
    ['a null expiry', answer({ ...token, expirationTimestamp: null }), good],
    ['an expiry in words', answer({ ...token, expirationTimestamp: 'soon' }), 'DECODE'],
    ['an empty expiry', answer({ ...token, expirationTimestamp: '' }), 'DECODE'],
    ['an expiry in numbers', answer({ ...token, expirationTimestamp: 1_900_000_000 }), 'DECODE'],
    ['Go’s zero time', answer({ ...token, expirationTimestamp: '0001-01-01T00:00:00Z' }), good],
    [
      'an expiry in the past',
      answer({ ...token, expirationTimestamp: '2001-01-01T00:00:00Z' }),
      { ...good, expiresAt: Date.UTC(2001, 0, 1) },
    ],
    ['a list', '[]', 'DECODE'],
    ['a word', 'canary-token', 'DECODE'],
    ['a number', '42', 'DECODE'],
    ['half an answer', answer(token).slice(0, -3), 'DECODE'],
    ['aliases', 'a: &a [canary-token]\nb: *a\n', 'DECODE'],
  ])('%s [CRED-E10, CRED-R12, CRED-R13]', async (_name, output, expected) => {
    expect(await outcome(output)).toEqual(expected)
  })

  test('a mismatch names both versions and the plugin [CRED-R12]', async () => {
    const error = await failureOf(decode(answer(token), version('v1beta1')))
    expect(error.message).toContain('"the-plugin"')
    expect(error.message).toContain(version('v1beta1'))
    expect(error.message).toContain(`answered in ${version('v1')}`)
  })

  test.each(['v1alpha1', 'v1beta1', 'v1'] as const)('%s is spoken [CRED-E1]', async (name) => {
    const output = answer(token, { apiVersion: version(name) })
    expect(await outcome(output, version(name))).toEqual({ token: 'canary-token' })
  })
})

describe('the seed’s flat answer', () => {
  const flat = (fields: object): string =>
    JSON.stringify({ kind: 'ExecCredentials', apiVersion: version('v1alpha1'), ...fields })
  test.each<[string, string, unknown]>([
    ['a token', flat(token), { token: 'canary-token' }],
    [
      'an expiry in seconds',
      flat({ ...token, expiry: 2e9 }),
      { token: 'canary-token', expiresAt: 2e12 },
    ],
    ['one of 0', flat({ ...token, expiry: 0 }), { token: 'canary-token' }],
    ['one in the past', flat({ ...token, expiry: 1 }), { token: 'canary-token', expiresAt: 1_000 }],
    ['one that is text', flat({ ...token, expiry: '2000000000' }), 'DECODE'],
    ['one with a fraction', flat({ ...token, expiry: 2e9 + 0.5 }), 'DECODE'],
    ['nothing in it', flat({}), 'NO_CREDENTIAL'],
    ['a key alone', flat({ ...token, clientKeyData: 'x' }), 'NO_CREDENTIAL'],
    ['no kind', flat({ ...token, kind: undefined }), 'NO_STATUS'],
    ['the shipped kind with flat fields', flat({ ...token, kind: 'ExecCredential' }), 'NO_STATUS'],
    ['a status, which it does not have', flat({ status: token }), 'NO_CREDENTIAL'],
  ])('%s [CRED-R8, CRED-R14, CRED-R13, CRED-E1]', async (_name, output, expected) => {
    expect(await outcome(output, version('v1alpha1'))).toEqual(expected)
  })
})

describe('certificates', () => {
  let certificate: LabCertificate
  let certPem: string
  let keyPem: string
  beforeAll(async () => {
    certificate = await labCertificate({ subject: named('jane') })
    certPem = certificate.certificate.toString()
    keyPem = privateKeyPem(certificate.key).reveal()
  })

  test('come with their key, with or without a token [CRED-R20]', async () => {
    const pair = { clientCertificateData: certPem, clientKeyData: keyPem }
    const alone = await decode(answer(pair))
    expect(alone.token).toBeUndefined()
    expect(alone.clientCertificate?.certPem).toBe(certPem)
    expect(alone.clientCertificate?.keyPem.reveal()).toBe(keyPem)
    const both = await decode(answer({ ...pair, ...token }))
    expect(both.token?.reveal()).toBe('canary-token')
    expect(both.clientCertificate?.certPem).toBe(certPem)
  })

  test('other blocks may stand around them, as kubectl allows', async () => {
    const status = {
      clientCertificateData: `subject=jane\n${certPem}${certPem}`,
      clientKeyData: `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${keyPem}`,
    }
    expect((await decode(answer(status))).clientCertificate).toBeDefined()
  })

  test('the key of another certificate is refused [CRED-R20, CRED-E10]', async () => {
    const other = privateKeyPem(await generateEcKey()).reveal()
    const error = await failureOf(
      decode(answer({ ...token, clientCertificateData: certPem, clientKeyData: other })),
    )
    expect(error.code).toBe('CERT_KEY_MISMATCH')
    expect(inspect(error)).not.toContain(other.split('\n')[1])
  })

  test('a broken block is refused [CRED-E10]', async () => {
    const broken = certPem.replace(/\n.{20}/, '\n')
    for (const [cert, key] of [
      [broken, keyPem],
      [certPem, keyPem.replace(/\n.{20}/, '\n')],
    ]) {
      const output = answer({ clientCertificateData: cert, clientKeyData: key })
      expect(await outcome(output)).toBe('CERTIFICATE_INVALID')
    }
  })

  test('their end can be told', () => {
    expect(certificateNotAfter(certPem)).toBe(Date.parse(certificate.certificate.validTo))
    expect(certificateNotAfter('nothing')).toBeUndefined()
  })
})

describe('a token that no header can carry is refused', () => {
  test.each(['a\nb', 'a\r\nX-Injected: 1', 'a\0b', 'tökén', '\u{1f600}', 'a\x7fb', 'a\tb', 'a b'])(
    '%j [CRED-S13]',
    async (value) => {
      expect(await outcome(answer({ token: value }))).toBe('TOKEN_INVALID')
    },
  )

  test('nothing is trimmed [CRED-S13]', async () => {
    expect(await outcome(answer({ token: ' a ' }))).toBe('TOKEN_INVALID')
  })
})

describe('times', () => {
  test.each([
    ['2026-11-16T06:08:50Z', Date.UTC(2026, 10, 16, 6, 8, 50)],
    ['2026-11-16T06:08:50.123456789Z', Date.UTC(2026, 10, 16, 6, 8, 50, 123)],
    ['2026-11-16T06:08:50,5Z', Date.UTC(2026, 10, 16, 6, 8, 50, 500)],
    ['2026-11-16T06:08:50+05:30', Date.UTC(2026, 10, 16, 0, 38, 50)],
    ['2026-11-16T06:08:50-08:00', Date.UTC(2026, 10, 16, 14, 8, 50)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
  ])('%s is read [CRED-E11]', (text, time) => {
    expect(parseRfc3339(text)).toBe(time)
  })

  test.each([
    '2026-11-16',
    '2026-11-16T06:08:50',
    '2026-11-16 06:08:50Z',
    '2026-11-16t06:08:50z',
    '2025-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-11-16T24:00:00Z',
    '2026-11-16T06:60:00Z',
    '2026-11-16T06:08:60Z',
    '2026-11-16T06:08:50+24:00',
    '2026-11-16T06:08:50+0530',
    '2026-11-16T06:08:50.Z',
    'Mon, 16 Nov 2026 06:08:50 GMT',
    '2026-11-16T06:08:50Z\n',
  ])('%j is not a time [CRED-E11]', (text) => {
    expect(parseRfc3339(text)).toBeUndefined()
  })
})

describe('hostile output', () => {
  test.each([
    ['lists in lists', '['.repeat(900_000)],
    ['maps in maps', '{"a":'.repeat(180_000)],
    ['whole maps in maps', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    ['YAML lists in lists', '- '.repeat(400_000)],
    ['YAML maps in maps', Array.from({ length: 1_000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n')],
    ['a long YAML list', '- a\n'.repeat(200_000)],
    ['bytes that are no text', new Uint8Array([0x7b, 0xff, 0xfe, 0x7d])],
  ])('%s is an error and nothing else [CRED-I10, CRED-R13]', async (_name, output) => {
    expect(['DECODE', 'VERSION_MISMATCH']).toContain(await outcome(output))
  })

  test('YAML is given up before its depth or length costs anything [CRED-I10]', async () => {
    const deep = await failureOf(decode('- '.repeat(40)))
    expect(deep.message).toContain('nested too deeply')
    const long = await failureOf(decode('- a\n'.repeat(20_000)))
    expect(long.message).toContain('too long')
  })

  test('no error shows any of it [CRED-S4]', async () => {
    const canary = 'canary-7f3a'
    const outputs = [
      canary,
      `${canary}: [`,
      `{"token":"${canary}"`,
      `{"kind":"${canary}","apiVersion":"${canary}","status":{"token":"${canary}"}}`,
      answer({ token }, { apiVersion: canary }),
      answer({ token: canary, expirationTimestamp: canary }),
      answer({ token: `${canary}\n` }),
      answer({ token: canary, clientKeyData: canary }),
      answer({ clientCertificateData: canary, clientKeyData: canary }),
      answer({ [canary]: canary }),
      answer(canary),
    ]
    for (const output of outputs) {
      const error = await failureOf(decode(output))
      const shown = [error.message, inspect(error, { depth: 9, showHidden: true }), String(error)]
      expect([...shown, JSON.stringify(error), error.stack].join()).not.toContain(canary)
      expect(error.cause).toBeUndefined()
    }
  })

  test('whatever is printed gives a credential or a CredentialError [CRED-I10]', async () => {
    const status = fc.record(
      {
        token: fc.oneof(fc.string(), fc.jsonValue()),
        expirationTimestamp: fc.oneof(fc.string(), fc.jsonValue()),
        clientCertificateData: fc.oneof(fc.string(), fc.jsonValue()),
        clientKeyData: fc.oneof(fc.string(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    )
    const output = fc.oneof(
      fc.string().map((text) => Buffer.from(text)),
      fc.uint8Array(),
      fc.json().map((text) => Buffer.from(text)),
      status.map((fields) => Buffer.from(answer(fields))),
    )
    const isOrderly = (bytes: Uint8Array): Promise<boolean> =>
      decode(bytes).then(
        () => true,
        (error: unknown) => error instanceof CredentialError,
      )
    const report = await fc.check(fc.asyncProperty(output, isOrderly), { numRuns: 300 })
    expect(report.counterexample).toBeNull()
  })
})
