import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KeySet } from '../../jose/index.ts'
import { renderIssuerDocuments } from '../documents/documents.ts'
import { labKeys } from '../tokens/token-lab.suite.ts'
import { publicDocuments } from './public-documents.ts'
import { writeDocuments } from './write-documents.ts'

const { rsa, p256 } = labKeys
const issuer = 'https://issuer.example'
const rendered = (...keys: (typeof rsa)[]) =>
  renderIssuerDocuments(
    { issuer, jwksUri: `${issuer}/openid/v1/jwks` },
    new KeySet(keys.map(({ publicKey }) => publicKey)),
  )
const received = (value: unknown) => ({
  body: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
})
const good = rendered(rsa)

describe('nothing is published that outsiders must not see or cannot use', () => {
  const { n, e } = rsa.publicKey.key.export({ format: 'jwk' })
  const usable = { kty: 'RSA', kid: 'a', use: 'sig', alg: 'RS256', n, e }
  test.each<[string, unknown, string]>([
    [
      'a private key [ISS-R26]',
      { keys: [{ ...rsa.key.export({ format: 'jwk' }), kid: 'a' }] },
      'private member',
    ],
    [
      'a shared secret [ISS-R26]',
      { keys: [usable, { kty: 'oct', k: 'c2VjcmV0' }] },
      'private member k',
    ],
    ['a PEM block [ISS-R26]', { keys: [usable], note: '-----BEGIN PRIVATE KEY-----' }, 'PEM block'],
    ['no keys', { keys: [] }, 'the key set has no keys'],
    ['a page', '<html>', 'the key set has no keys'],
    ['a key without an id', { keys: [{ ...usable, kid: undefined }] }, 'cannot verify tokens'],
    [
      'a key for encryption',
      { keys: [{ ...usable, use: 'enc' }] },
      '1 of 1 keys cannot verify tokens',
    ],
  ])('%s', (_name, keys, why) => {
    expect(() => publicDocuments(good.discovery, received(keys))).toThrow(why)
  })

  test.each<[string, unknown]>([
    ['no issuer', { jwks_uri: 'https://x' }],
    ['no address of keys', { issuer }],
    ['a page', '<html>'],
    ['an issuer twice', '{"issuer":"a","issuer":"b","jwks_uri":"c"}'],
  ])('a discovery document with %s', (_name, document) => {
    expect(() => publicDocuments(received(document), good.jwks)).toThrow('no issuer or no jwks_uri')
  })
})

test('the bytes stay as they are, and caching is as their server says', () => {
  const documents = publicDocuments(
    { ...good.discovery, cacheControl: 'public, max-age=60' },
    { ...good.jwks, cacheControl: 'no-cache, private' },
  )
  expect(documents.discovery.body).toEqual(good.discovery.body)
  expect(documents.jwks.body).toEqual(good.jwks.body)
  expect([documents.discovery.cacheControl, documents.jwks.cacheControl]).toEqual([
    'public, max-age=60',
    'public, max-age=3600',
  ])
})

describe('files for a static host [ISS-G7]', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'issuer-publish-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  test('are written when they change, the key set before it is spoken of', async () => {
    await writeDocuments(folder, publicDocuments(good.discovery, good.jwks))
    const next = rendered(rsa, p256)
    const documents = publicDocuments(next.discovery, next.jwks)
    expect(await writeDocuments(folder, documents)).toEqual([
      'openid/v1/jwks',
      '.well-known/openid-configuration',
      'sallyport-publish.json',
    ])
    expect(await writeDocuments(folder, documents)).toEqual([])
  })

  test('a key set that cannot be written leaves the document alone', async () => {
    await writeDocuments(folder, publicDocuments(good.discovery, good.jwks))
    const before = await readFile(join(folder, '.well-known/openid-configuration'), 'utf8')
    await rm(join(folder, 'openid'), { recursive: true })
    await writeFile(join(folder, 'openid'), 'in the way')
    const next = rendered(rsa, p256)
    const documents = publicDocuments(next.discovery, next.jwks)
    await expect(writeDocuments(folder, documents)).rejects.toThrow('ENOTDIR')
    expect(await readFile(join(folder, '.well-known/openid-configuration'), 'utf8')).toBe(before)
  })

  test.each([
    [`${issuer}/keys.json`, 'keys.json'],
    [`${issuer}/a/b.json`, 'a/b.json'],
    [`${issuer}/../escape`, 'openid/v1/jwks'],
    [`${issuer}/a?b`, 'openid/v1/jwks'],
    ['https://elsewhere.example/keys', 'openid/v1/jwks'],
  ])('a key set of %s is the file %s', async (jwksUri, file) => {
    const documents = publicDocuments(good.discovery, good.jwks, { jwksUri })
    expect(await writeDocuments(folder, documents)).toContain(file)
  })
})
