import { describe, expect, test } from 'vitest'
import { privateKeyFor } from './jose.suite.ts'
import { parseJwk, publicJwk, refusePrivateMembers, renderJwks } from './jwk.ts'
import { signingKey, verificationKey } from './keys.ts'

const algorithms = ['RS256', 'ES256', 'ES384', 'ES512'] as const

test.each([
  ['RS256', ['use', 'kty', 'kid', 'alg', 'n', 'e']],
  ['ES256', ['use', 'kty', 'kid', 'crv', 'alg', 'x', 'y']],
] as const)('a JWK of %s has the members of Kubernetes in its order', (alg, members) => {
  expect(Object.keys(publicJwk(verificationKey(privateKeyFor(alg))))).toEqual(members)
})

test.each(algorithms)('a private key of %s publishes its public half only', (alg) => {
  const privateKey = privateKeyFor(alg)
  const { d = '' } = privateKey.export({ format: 'jwk' })
  const text = renderJwks([verificationKey(privateKey)]).toString()
  expect(text).not.toContain(d)
  expect(text).not.toMatch(/"(d|p|q|dp|dq|qi|oth|k)":/)
})

test('a private key where a public one belongs is not published', () => {
  const signer = signingKey(privateKeyFor('ES256'))
  expect(() => renderJwks([signer])).toThrow(/only a public key/)
})

test.each([
  ['a private member', '{"keys":[{"kty":"EC","d":"x"}]}'],
  ['one deep inside', '{"keys":[],"more":[{"deep":{"qi":1}}]}'],
  ['a symmetric key', '{"keys":[{"kty":"oct","k":"x"}]}'],
  ['a PEM block', '{"note":"-----BEGIN PRIVATE KEY-----"}'],
])('a document with %s is never published', (_name, text) => {
  expect(() => refusePrivateMembers(Buffer.from(text))).toThrow(/refusing to publish/)
})

describe('a JWK of others', () => {
  test.each(algorithms)('of %s is read', (alg) => {
    const key = verificationKey(privateKeyFor(alg))
    expect(parseJwk(publicJwk(key))?.kid).toBe(key.kid)
  })

  const jwk = publicJwk(verificationKey(privateKeyFor('ES256')))
  test.each([
    ['not an object', 'x'],
    ['for encryption', { ...jwk, use: 'enc' }],
    ['of another algorithm', { ...jwk, alg: 'RS256' }],
    ['with a kid that is no string', { ...jwk, kid: 7 }],
    ['with a private member', { ...jwk, d: 'AAAA' }],
    ['symmetric', { kty: 'oct', k: 'AAAA', alg: 'HS256' }],
    ['off the curve', { ...jwk, x: jwk.y }],
    ['of an unknown curve', { ...jwk, crv: 'P-1' }],
  ])('%s is passed over', (_name, value) => {
    expect(parseJwk(value)).toBeUndefined()
  })

  test('keeps its own key id', () => {
    expect(parseJwk({ ...jwk, kid: 'mine' })?.kid).toBe('mine')
  })
})
