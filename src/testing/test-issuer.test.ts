import { once } from 'node:events'
import { request } from 'node:https'
import { afterEach, describe, expect, test } from 'vitest'
import { createServiceAccountVerifier } from '../issuer/relying-party/index.ts'
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from './index.ts'

let started: TestIssuer | undefined
const start = async (options: TestIssuerOptions = {}): Promise<TestIssuer> => {
  started = await startTestIssuer(options)
  return started
}
afterEach(async () => {
  await started?.stop()
})

const verdict = async (issuer: TestIssuer, token: string): Promise<string> =>
  createServiceAccountVerifier({ ...issuer.verifierOptions, audience: 'shop' })
    .verify(token)
    .then(
      ({ subject }) => subject,
      (error: { code?: string }) => error.code ?? 'thrown',
    )

describe('an issuer for tests of relying parties [ISS-P6]', () => {
  test.each<[string, TestIssuerOptions]>([
    ['over https, RS256', {}],
    ['over http', { protocol: 'http', algorithm: 'ES256' }],
    ['below a path', { path: '/clusters/a', algorithm: 'ES256' }],
    ['with P-384', { protocol: 'http', algorithm: 'ES384' }],
    ['with P-521', { protocol: 'http', algorithm: 'ES512' }],
  ])('%s: its tokens verify', async (_name, options) => {
    const issuer = await start(options)
    const token = issuer.serviceAccountToken({ namespace: 'a', name: 'b', audience: ['x', 'shop'] })
    expect(await verdict(issuer, token)).toBe('system:serviceaccount:a:b')
    expect(await verdict(issuer, issuer.serviceAccountToken({ audience: 'bank' }))).toBe(
      'wrong-audience',
    )
  })

  test('it makes tokens that are wrong on purpose', async () => {
    const issuer = await start({ protocol: 'http', algorithm: 'ES256' })
    const claims = (more: object) =>
      issuer.serviceAccountToken({ audience: 'shop', claims: { ...more } })
    expect(await verdict(issuer, claims({ exp: 1 }))).toBe('expired')
    expect(await verdict(issuer, claims({ exp: undefined }))).toBe('bad-claims')
    expect(await verdict(issuer, claims({ iss: 'https://other.example' }))).toBe('wrong-issuer')
    expect(await verdict(issuer, issuer.sign({ iss: issuer.issuer, sub: 'x' }))).toBe(
      'wrong-audience',
    )
  })

  test('it rotates, drops and fails when told to', async () => {
    const issuer = await start({ protocol: 'http', algorithm: 'ES256' })
    const old = issuer.serviceAccountToken({ audience: 'shop' })
    const first = issuer.kid
    expect(await issuer.rotate()).not.toBe(first)
    expect(await verdict(issuer, old)).toBe('system:serviceaccount:default:default')
    issuer.dropOldKeys()
    expect(await verdict(issuer, old)).toBe('unknown-key')
    issuer.failWith(503)
    const token = issuer.serviceAccountToken({ audience: 'shop' })
    expect(await verdict(issuer, token)).toBe('bad-status')
    issuer.recover()
    expect(await verdict(issuer, token)).toBe('system:serviceaccount:default:default')
    expect(issuer.requests.length).toBeGreaterThan(4)
  })

  test('its documents are as a cluster serves them', async () => {
    const issuer = await start({ algorithm: 'ES256', maxAgeSeconds: 60 })
    const asked = request(`${issuer.issuer}/openid/v1/jwks`, { ca: issuer.caPem, agent: false })
    const [response] = await once(asked.end(), 'response')
    response.resume()
    expect(response.headers).toMatchObject({
      'content-type': 'application/jwk-set+json',
      'cache-control': 'public, max-age=60',
    })
  })
})
