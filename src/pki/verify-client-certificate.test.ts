import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  attribute,
  der,
  distinguishedName,
  extension,
  type LabCertificate,
  type LabOrder,
  labCertificate,
  labNow,
  named,
  oid,
  usage,
} from './certificate-lab.suite.ts'
import { verifyClientCertificate } from './verify-certificate.ts'

const { clientAuth, serverAuth } = usage
const dayMs = 24 * 60 * 60_000

let ca: LabCertificate
let intermediate: LabCertificate
beforeAll(async () => {
  ca = await labCertificate({ subject: named('ca'), ca: true })
  intermediate = await labCertificate({ issuer: ca, subject: named('intermediate'), ca: true })
})

const verify = (certificates: readonly LabCertificate[], trusted = [ca], now = labNow) =>
  verifyClientCertificate(
    certificates.map(({ certificate }) => certificate),
    trusted.map(({ certificate }) => certificate),
    now,
  )
const client = (order: Partial<LabOrder> = {}) =>
  labCertificate({ issuer: ca, subject: named('jane'), usages: [clientAuth], ...order })

describe('a certificate under a trusted CA', () => {
  test('names its user, groups, serial and end [GND-R72]', async () => {
    const subject = distinguishedName(
      [attribute('O', 'dev')],
      [attribute('O', 'ops')],
      [attribute('CN', 'jane')],
    )
    const jane = await client({ subject })
    expect(verify([jane])).toEqual({
      commonName: 'jane',
      organizations: ['dev', 'ops'],
      serial: '0A0B0C',
      fingerprint256: jane.certificate.fingerprint256,
      notAfter: labNow + dayMs,
    })
  })

  test('may state no usage at all, as those that openssl makes', async () => {
    const jane = await labCertificate({ issuer: ca, subject: named('jane') })
    expect(jane.certificate.keyUsage).toBeUndefined()
    expect(verify([jane]).commonName).toBe('jane')
  })

  test('may stand below an intermediate that the client sends, in any order', async () => {
    const jane = await client({ issuer: intermediate })
    const stray = await labCertificate({ subject: named('stray'), ca: true })
    expect(verify([jane, stray, intermediate]).commonName).toBe('jane')
  })

  test('may stand below an intermediate that is trusted itself', async () => {
    const jane = await client({ issuer: intermediate })
    expect(verify([jane], [intermediate]).commonName).toBe('jane')
  })

  test('is believed when one of two CAs with the same key has expired', async () => {
    const old = await labCertificate({
      subject: named('ca'),
      ca: true,
      key: ca.key,
      notAfter: labNow - 1000,
    })
    expect(verify([await client()], [old, ca]).commonName).toBe('jane')
  })
})

describe('refused [GND-R72]', () => {
  const refusals: [name: string, make: () => Promise<LabCertificate[]>, why: string][] = [
    [
      'a certificate of an unknown CA with the same name',
      async () => {
        const impostor = await labCertificate({ subject: named('ca'), ca: true })
        return [await client({ issuer: impostor }), impostor]
      },
      'UNKNOWN_AUTHORITY',
    ],
    [
      'a certificate that signed itself',
      async () => [await labCertificate({ subject: named('jane'), usages: [clientAuth] })],
      'UNKNOWN_AUTHORITY',
    ],
    [
      'a certificate below one that is not a CA',
      async () => {
        const jane = await client()
        return [await client({ issuer: jane, subject: named('root') }), jane]
      },
      'UNKNOWN_AUTHORITY',
    ],
    ['no certificate', async () => [], 'MALFORMED'],
    ['an expired one', () => one({ notAfter: labNow - 1000 }), 'EXPIRED'],
    ['one from the future', () => one({ notBefore: labNow + 1000 }), 'NOT_YET_VALID'],
    ['a serving certificate', () => one({ usages: [serverAuth] }), 'WRONG_USAGE'],
    [
      'one below an intermediate that is for servers only',
      async () => {
        const servers = await labCertificate({
          issuer: ca,
          subject: named('servers'),
          ca: true,
          usages: [serverAuth],
        })
        return [await client({ issuer: servers }), servers]
      },
      'WRONG_USAGE',
    ],
    ['one signed with SHA-1', () => one({ hash: 'sha1' }), 'WEAK_SIGNATURE'],
    [
      'one too far below its CA',
      async () => {
        const low = await labCertificate({
          issuer: ca,
          subject: named('low'),
          ca: true,
          pathLength: 0,
        })
        const lower = await labCertificate({ issuer: low, subject: named('lower'), ca: true })
        return [await client({ issuer: lower }), lower, low]
      },
      'PATH_TOO_LONG',
    ],
    [
      'one with a critical extension that nobody knows',
      () => one({ extensions: [extension(oid('2a0304'), true, der(0x05))] }),
      'UNSUPPORTED_EXTENSION',
    ],
    [
      'one below a CA with name constraints',
      async () => {
        const limited = await labCertificate({
          issuer: ca,
          subject: named('limited'),
          ca: true,
          extensions: [extension(oid('551d1e'), false, der(0x30))],
        })
        return [await client({ issuer: limited }), limited]
      },
      'UNSUPPORTED_EXTENSION',
    ],
    [
      'one without a common name',
      () => one({ subject: distinguishedName([attribute('O', 'system:masters')]) }),
      'NO_COMMON_NAME',
    ],
    [
      'one whose name has letters that its string type does not have',
      () => one({ subject: distinguishedName([attribute('CN', Buffer.from([0xfc]), 0x13)]) }),
      'MALFORMED',
    ],
  ]
  const one = async (order: Partial<LabOrder>) => [await client(order)]

  test.each(refusals)('%s', async (_name, make, why) => {
    const chain = await make()
    expect(() => verify(chain)).toThrow(expect.objectContaining({ why }))
  })

  test('a certificate whose CA has expired', async () => {
    const old = await labCertificate({ subject: named('old'), ca: true, notAfter: labNow - 1000 })
    const jane = await client({ issuer: old })
    expect(() => verify([jane], [old])).toThrow(expect.objectContaining({ why: 'EXPIRED' }))
  })

  test('a certificate of the front proxy CA where the client CA is asked for', async () => {
    const frontProxy = await labCertificate({ subject: named('front-proxy-ca'), ca: true })
    const proxy = await client({ issuer: frontProxy })
    expect(verify([proxy], [frontProxy]).commonName).toBe('jane')
    expect(() => verify([proxy])).toThrow(expect.objectContaining({ why: 'UNKNOWN_AUTHORITY' }))
  })

  test('a maze of intermediates, without searching it all', async () => {
    const maze: LabCertificate[] = []
    const name = named('maze')
    const key = ca.key
    for (let i = 0; i < 9; i++) maze.push(await labCertificate({ subject: name, ca: true, key }))
    const jane = await client({ issuer: maze[0]! })
    let verified = 0
    const counted = maze.map(({ certificate }) => {
      const copy = new X509Certificate(certificate.raw)
      const verifyOnce = copy.verify.bind(copy)
      copy.verify = (publicKey) => {
        verified++
        return verifyOnce(publicKey)
      }
      return copy
    })
    const stranger = await labCertificate({ subject: named('stranger'), ca: true })
    expect(() =>
      verifyClientCertificate([jane.certificate, ...counted], [stranger.certificate], labNow),
    ).toThrow(expect.objectContaining({ why: 'UNKNOWN_AUTHORITY' }))
    expect(verified).toBeGreaterThan(5)
    expect(verified).toBeLessThanOrEqual(30)
  })
})

describe('names are read from their bytes', () => {
  const utf16 = (text: string) => Buffer.from(text, 'utf16le').swap16()
  test.each([
    [
      'a line break',
      [[attribute('O', 'a\nO=system:masters')], [attribute('CN', 'jane')]],
      'jane',
      ['a\nO=system:masters'],
    ],
    [
      'a slash and an equals sign',
      [[attribute('CN', 'x/O=system:masters')]],
      'x/O=system:masters',
      [],
    ],
    ['a comma and a plus sign', [[attribute('CN', 'a, O=b + O=c')]], 'a, O=b + O=c', []],
    [
      'letters of any kind',
      [[attribute('O', '開発')], [attribute('CN', 'Jürgen 🚪')]],
      'Jürgen 🚪',
      ['開発'],
    ],
    [
      'several values in one part',
      [[attribute('CN', 'jane'), attribute('O', 'dev'), attribute('O', 'ops')]],
      'jane',
      ['dev', 'ops'],
    ],
    ['PrintableString', [[attribute('CN', 'jane', 0x13)]], 'jane', []],
    ['IA5String', [[attribute('CN', 'jane@example.org', 0x16)]], 'jane@example.org', []],
    ['TeletexString', [[attribute('CN', Buffer.from([0x4a, 0xfc]), 0x14)]], 'Jü', []],
    ['BMPString', [[attribute('CN', utf16('Jürgen'), 0x1e)]], 'Jürgen', []],
    ['other attributes', [[attribute('OU', 'x')], [attribute('CN', 'jane')]], 'jane', []],
    [
      'several common names: the last counts',
      [[attribute('CN', 'Users')], [attribute('CN', 'jane')]],
      'jane',
      [],
    ],
  ])('%s', async (_name, sets, commonName, organizations) => {
    const jane = await client({ subject: distinguishedName(...sets) })
    expect(verify([jane])).toMatchObject({ commonName, organizations })
  })
})
