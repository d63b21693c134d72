import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { spkiPin } from './certificate.ts'
import { type LabCertificate, labCertificate, named } from './certificate-lab.suite.ts'
import { PemInvalid, parseCertificates, parsePem } from './pem.ts'

let one: LabCertificate
let two: LabCertificate
beforeAll(async () => {
  one = await labCertificate({ subject: named('one'), ca: true })
  two = await labCertificate({ subject: named('two'), ca: true })
})
const pem = (made: LabCertificate) => made.certificate.toString()

describe('certificates in PEM form', () => {
  test('are all read, in order, with comments between them and any line ends', () => {
    const text = `# one\r\n${pem(one).replaceAll('\n', '\r\n')}\n\nsubject: two\n${pem(two)}`
    expect(parseCertificates(text).map(({ subject }) => subject)).toEqual(['CN=one', 'CN=two'])
  })

  test.each([
    ['nothing', () => '', 'there is no certificate in it'],
    ['garbage', () => 'garbage', 'there is no certificate in it'],
    [
      'a block without an end',
      () => pem(one).slice(0, 100),
      'line 1: the CERTIFICATE block has no END',
    ],
    [
      'a block inside a block',
      () => `x\n${pem(one).slice(0, 100)}\n${pem(two)}`,
      /^line 5: a block begins inside the one of line 2$/,
    ],
    ['an end without a begin', () => '-----END CERTIFICATE-----', 'line 1: this END has no BEGIN'],
    [
      'an end of another block',
      () => '-----BEGIN A-----\nAAAA\n-----END B-----',
      'line 3: this END has no BEGIN',
    ],
    [
      'a key',
      () => `${pem(one)}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`,
      /^line \d+: a PRIVATE KEY block where only certificates belong$/,
    ],
    [
      'a block that is not base64',
      () => '-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----',
      'line 1: the block is not base64',
    ],
    [
      'an empty block',
      () => '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----',
      'line 1: the block is not base64',
    ],
    [
      'base64 of something else',
      () => `${pem(one)}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`,
      /^line \d+: the block is not a certificate$/,
    ],
  ])('%s is refused with its place', (_name, make, message) => {
    expect(() => parseCertificates(make())).toThrow(PemInvalid)
    expect(() => parseCertificates(make())).toThrow(message)
  })
})

describe('a block that OpenSSL sees and this parser could overlook [SEC-R2301]', () => {
  /** Every character that can stand where a boundary must be alone, and places where a boundary can hide. */
  const characters = Array.from({ length: 0x180 }, (_, code) => String.fromCharCode(code))
  const hidings: readonly (readonly [string, (text: string) => string])[] = [
    ...characters.flatMap((character): [string, (text: string) => string][] => [
      [
        `${JSON.stringify(character)} behind it`,
        (text) => text.replaceAll(/-----$/gm, (dashes) => dashes + character),
      ],
      [
        `${JSON.stringify(character)} before it`,
        (text) => text.replaceAll(/^-----/gm, (dashes) => character + dashes),
      ],
    ]),
    ['254 characters before it', (text) => `${'x'.repeat(254)}${text}`],
    ['lower case', (text) => text.replaceAll(/-----.*/g, (line) => line.toLowerCase())],
    ['the label of X.509', (text) => text.replaceAll('CERTIFICATE', 'X509 CERTIFICATE')],
    ['the label of trusted ones', (text) => text.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE')],
  ]

  test.each(['before', 'after'])('is read or refused %s the one that is seen', (place) => {
    for (const [name, hide] of hidings) {
      const hidden = hide(pem(two))
      const text = place === 'before' ? `${hidden}\n${pem(one)}` : `${pem(one)}${hidden}`
      expect([name, countOrRefusal(text)]).toEqual([name, expect.stringMatching(/^(2|refused)$/)])
    }
  })

  function countOrRefusal(text: string): string {
    try {
      return String(parseCertificates(text).length)
    } catch (error) {
      if (error instanceof PemInvalid) return 'refused'
      throw error
    }
  }
})

test('a block knows its label and its line', () => {
  expect(parsePem('\n\n-----BEGIN A B-----\nAAEC\n-----END A B-----\n')).toEqual([
    { label: 'A B', line: 3, der: Buffer.from([0, 1, 2]) },
  ])
})

test('a pin is the SHA-256 of the public key as it stands in the certificate', async () => {
  const spki = one.certificate.publicKey.export({ type: 'spki', format: 'der' })
  expect(spkiPin(one.certificate)).toBe(`sha256:${createHash('sha256').update(spki).digest('hex')}`)
  const renewed = await labCertificate({ subject: named('renewed'), ca: true, key: one.key })
  expect(spkiPin(renewed.certificate)).toBe(spkiPin(one.certificate))
  expect(spkiPin(two.certificate)).not.toBe(spkiPin(one.certificate))
})
