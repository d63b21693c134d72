import { describe, expect, test } from 'vitest'
import { KeySet } from '../../jose/index.ts'
import { labKeys } from '../tokens/token-lab.suite.ts'
import { renderIssuerDocuments } from './documents.ts'
import { problemOfDiscovery, problemOfIssuer } from './issuer-name.ts'

const facts = { issuer: 'https://issuer.example', jwksUri: 'https://keys.example/jwks' }
const { rsa, p256, p384, p521 } = labKeys
const setOf = (...keys: (typeof rsa)[]) => new KeySet(keys.map(({ publicKey }) => publicKey))
const text = (body: Buffer): string => body.toString()

test("discovery has exactly Kubernetes' five members in its order [ISS-R2, ISS-R29]", () => {
  const { discovery } = renderIssuerDocuments(facts, setOf(rsa, p521, p256, rsa, p384))
  expect(text(discovery.body)).toBe(
    '{"issuer":"https://issuer.example","jwks_uri":"https://keys.example/jwks",' +
      '"response_types_supported":["id_token"],"subject_types_supported":["public"],' +
      '"id_token_signing_alg_values_supported":["ES256","ES384","ES512","RS256"]}',
  )
})

test('placeholders come on demand only, and parse as URLs [ISS-R5]', () => {
  const members = (hasPlaceholders: boolean) =>
    Object.entries(
      JSON.parse(
        text(renderIssuerDocuments({ ...facts, hasPlaceholders }, setOf(rsa)).discovery.body),
      ) as Record<string, string>,
    ).filter(([name]) => name.endsWith('_endpoint'))
  expect(members(false)).toEqual([])
  expect(members(true).map(([name, value]) => [name, URL.canParse(value)])).toEqual([
    ['authorization_endpoint', true],
    ['token_endpoint', true],
  ])
})

describe('a key is shown by its public members, in this order [ISS-R6, ISS-R29]', () => {
  test.each([
    [rsa, ['use', 'kty', 'kid', 'alg', 'n', 'e'], 'RSA', 'RS256'],
    [p256, ['use', 'kty', 'kid', 'crv', 'alg', 'x', 'y'], 'EC', 'ES256'],
    [p384, ['use', 'kty', 'kid', 'crv', 'alg', 'x', 'y'], 'EC', 'ES384'],
    [p521, ['use', 'kty', 'kid', 'crv', 'alg', 'x', 'y'], 'EC', 'ES512'],
  ] as const)('%$', (key, members, kty, alg) => {
    const { jwks } = renderIssuerDocuments(facts, setOf(key))
    const { keys } = JSON.parse(text(jwks.body)) as { keys: Record<string, string>[] }
    expect(keys.map((each) => Object.keys(each))).toEqual([members])
    expect(keys[0]).toMatchObject({ use: 'sig', kty, alg, kid: key.kid })
  })
})

test('the same keys give the same bytes and the same ETag, others do not [ISS-R9]', () => {
  const first = renderIssuerDocuments(facts, setOf(rsa, p256))
  const again = renderIssuerDocuments(facts, setOf(rsa, p256))
  const other = renderIssuerDocuments(facts, setOf(rsa))
  expect(again).toEqual(first)
  expect(other.jwks.etag).not.toBe(first.jwks.etag)
  expect(other.discovery.etag).not.toBe(first.discovery.etag)
})

test('a private key cannot be published, by whatever mistake [ISS-R26]', () => {
  const mistaken = { ...rsa.publicKey, key: rsa.key }
  expect(() => renderIssuerDocuments(facts, new KeySet([mistaken]))).toThrow(
    'only a public key can be published',
  )
})

test.each([
  ['https://issuer.example', undefined, undefined],
  ['https://issuer.example/path', undefined, undefined],
  ['http://issuer.example', undefined, 'it is not an https URL'],
  ['api', undefined, 'it is not an https URL'],
  ['https://issuer.example?x', undefined, 'it has a query or a fragment'],
  ['https://issuer.example#x', undefined, 'it has a query or a fragment'],
  ['', 'must not be empty', 'it is not an https URL'],
  ['https://', 'must be a URL if it has a colon', 'it is not an https URL'],
])('issuer %j', (issuer, problem, discovery) => {
  expect([problemOfIssuer(issuer), problemOfDiscovery(issuer)]).toEqual([problem, discovery])
})
