import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KeyRefused } from './errors.ts'
import { privateKeyFor } from './jose.suite.ts'
import { publicKeysFromPem, signingKeyFromPem, verificationKey } from './keys.ts'

const pem = (key: KeyObject, type: 'pkcs1' | 'pkcs8' | 'sec1' | 'spki'): string =>
  key.export({ type, format: 'pem' } as never).toString()

/** The modulus of the RSA key in Kubernetes' own tests. */
const modulus = [
  '249XwEo9k4tM8fMxV7zxOhcrP-WvXn917koM5Qr2ZXs4vo26e4ytdlrV0bQ9SlcLpQVSYjIxNfhTZdDt',
  '-ecIzshKuv1gKIxbbLQMOuK1eA_4HALyEkFgmS_tleLJrhc65tKPMGD-pKQ_xhmzRuCG51RoiMgbQxaC',
  'yYxGfNLpLAZK9L0Tctv9a0mJmGIYnIOQM4kC1A1I1n3EsXMWmeJUj7OTh_AjjCnMnkgvKT2tpKxYQ59P',
  'gDgU8Ssc7RDSmSkLxnrv-OrN80j6xrw0OjEiB4Ycr0PqfzZcvy8efTtFQ_Jnc4Bp1zUtFXt7-QeevePt',
  'Q2EcyELXE0i63T1CujRMWw',
].join('')

test.each([
  ['RSA', { kty: 'RSA', e: 'AQAB', n: modulus }, 'JHJehTTTZlsspKHT-GaJxK7Kd1NQgZJu3fyK6K_QDYU'],
  [
    'P-256',
    {
      kty: 'EC',
      crv: 'P-256',
      x: 'H6cuzP8XuD5wal6wf9M6xDljTOPLX2i8uIp_C_ASqiI',
      y: 'BlHnikLV9PyEd6gl8k4T_3Wwoh6xd79XLoQTh2PAi1Y',
    },
    'SoABiieYuNx4UdqYvZRVeuC6SihxgLrhLy9peHMHpTc',
  ],
])('the id of a key is the one that Kubernetes computes: %s [ISS-I1]', (_kind, key, kid) => {
  expect(verificationKey(createPublicKey({ format: 'jwk', key })).kid).toBe(kid)
})

test('a compressed curve point has the id of the point', () => {
  const key = createPublicKey(privateKeyFor('ES256'))
  const point = key.export({ format: 'jwk' })
  const x = Buffer.from(point.x ?? '', 'base64url')
  const isOdd = (Buffer.from(point.y ?? '', 'base64url').at(-1) ?? 0) % 2 === 1
  const prefix = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex')
  const der = Buffer.concat([prefix, Buffer.from([isOdd ? 3 : 2]), x])
  const compressed = createPublicKey({ key: der, format: 'der', type: 'spki' })
  expect(verificationKey(compressed).kid).toBe(verificationKey(key).kid)
})

describe('a key has one algorithm', () => {
  test.each(['RS256', 'ES256', 'ES384', 'ES512'] as const)('%s', (alg) => {
    const key = verificationKey(privateKeyFor(alg))
    expect([key.alg, key.key.type]).toEqual([alg, 'public'])
  })
})

describe('is refused', () => {
  test.each([
    ['RSA of 1024 bits', generateKeyPairSync('rsa', { modulusLength: 1024 }), /too short/],
    ['RSA-PSS', generateKeyPairSync('rsa-pss', { modulusLength: 2048 }), /rsa-pss/],
    ['secp256k1', generateKeyPairSync('ec', { namedCurve: 'secp256k1' }), /secp256k1/],
    ['Ed25519', generateKeyPairSync('ed25519'), /ed25519/],
  ])('%s', (_name, { privateKey }, message) => {
    expect(() => verificationKey(privateKey)).toThrow(message)
    expect(() => verificationKey(privateKey)).toThrow(KeyRefused)
  })
})

describe('PEM files', () => {
  const rsa = privateKeyFor('RS256')
  const ec = privateKeyFor('ES256')
  const idOf = (key: KeyObject): string => verificationKey(key).kid

  test.each([
    ['PKCS#1', pem(rsa, 'pkcs1'), idOf(rsa)],
    ['PKCS#8 of RSA', pem(rsa, 'pkcs8'), idOf(rsa)],
    ['PKCS#8 of EC', pem(ec, 'pkcs8'), idOf(ec)],
    ['SEC1', pem(ec, 'sec1'), idOf(ec)],
  ])('a private key in %s signs, and its public half verifies', (_name, text, kid) => {
    expect(signingKeyFromPem(text, 'the file').kid).toBe(kid)
    const [key] = publicKeysFromPem(text, 'the file')
    expect([key?.kid, key?.key.type]).toEqual([kid, 'public'])
  })

  test.each([
    ['SPKI', pem(createPublicKey(rsa), 'spki'), idOf(rsa)],
    ['PKCS#1', pem(createPublicKey(rsa), 'pkcs1'), idOf(rsa)],
  ])('a public key in %s verifies', (_name, text, kid) => {
    expect(publicKeysFromPem(text, 'the file').map((key) => key.kid)).toEqual([kid])
  })

  test('a file has many keys, and blocks of other kinds are passed over', () => {
    const parameters =
      '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
    const text = `words\n${parameters}${pem(ec, 'sec1')}${pem(rsa, 'pkcs1')}`
    expect(publicKeysFromPem(text, 'the file').map((key) => key.kid)).toEqual([idOf(ec), idOf(rsa)])
  })

  const encrypted = (type: 'pkcs8' | 'pkcs1'): string =>
    createPrivateKey(pem(rsa, 'pkcs8'))
      .export({ type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
      .toString()

  test.each([
    ['no block', 'nothing here', /keys\.pem contains no key/],
    [
      'a broken block',
      '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----',
      /invalid block PUBLIC KEY/,
    ],
    ['a passphrase', encrypted('pkcs8'), /passphrase/],
    ['a passphrase in the old form', encrypted('pkcs1'), /passphrase/],
    ['a passphrase beside a good key', `${pem(ec, 'sec1')}${encrypted('pkcs1')}`, /passphrase/],
  ])('a file with %s is refused by name', (_name, text, message) => {
    expect(() => publicKeysFromPem(text, 'keys.pem')).toThrow(message)
  })

  test('a key that cannot be used is refused with the name of its file', () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
    const text = pem(short, 'pkcs8')
    expect(() => signingKeyFromPem(text, 'sa.key')).toThrow('sa.key: the RSA key of 1024 bits')
    expect(() => publicKeysFromPem(text, 'sa.pub')).toThrow('sa.pub: the RSA key of 1024 bits')
  })

  test('a file with public keys only cannot sign', () => {
    expect(() => signingKeyFromPem(pem(createPublicKey(rsa), 'spki'), 'keys.pem')).toThrow(
      /keys\.pem contains no private key/,
    )
  })
})
