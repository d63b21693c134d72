import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type JsonObject,
  type SigningKey,
  signCompactJws,
  signingKey,
} from '../../../src/jose/index.ts'
import { eventually } from '../../support/eventually.ts'
import {
  OutsideVerifier,
  type VerifierName,
  verifierNames,
  verifiersAreHere,
} from './outside-verifier.ts'
import { RotatingIssuer } from './rotating-issuer.ts'
import { audience, type Scene, subject, tokensPerStage, VerifyingLoop } from './verifying-loop.ts'

/** openid-client, the slowest of them, asks for an unknown key only if it has not asked for a minute. */
const longestCooldownMs = 62_000

const seconds = (ago = 0): number => Math.floor(Date.now() / 1000) - ago
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const stranger = signingKey(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)

function goodClaims(issuer: RotatingIssuer): JsonObject {
  const times = { iat: seconds(), nbf: seconds(), exp: seconds(-600) }
  return { aud: [audience], iss: issuer.issuer, sub: subject, ...times }
}

const signed = (claims: JsonObject, key: SigningKey): string =>
  signCompactJws({ alg: key.alg, kid: key.kid }, JSON.stringify(claims), key)

async function follow(issuer: RotatingIssuer, names: readonly VerifierName[]): Promise<Scene> {
  const trust = { issuer: issuer.issuer, audience, caFile: issuer.caFile }
  const verifiers = await Promise.all(names.map((name) => OutsideVerifier.start(name, trust)))
  return { issuer, verifiers }
}

/** What is wrong, what the reason must speak of, and a token of that kind. */
type Refusal = [
  string,
  RegExp,
  (issuer: RotatingIssuer, key: SigningKey) => string | Promise<string>,
]
const refusals: Refusal[] = [
  ['for another audience', /aud/i, (issuer) => issuer.newToken('bank')],
  [
    'that has ended',
    /exp/i,
    (issuer, key) => {
      const ended = { iat: seconds(1_200), nbf: seconds(1_200), exp: seconds(600) }
      return signed({ ...goodClaims(issuer), ...ended }, key)
    },
  ],
  [
    'of another issuer with the same key',
    /iss/i,
    (issuer, key) => signed({ ...goodClaims(issuer), iss: 'https://other.example' }, key),
  ],
  [
    'whose subject was changed',
    /signature|verif/i,
    async (issuer) => {
      const [header, , signature] = (await issuer.newToken(audience)).split('.')
      const changed = { ...goodClaims(issuer), sub: 'system:serviceaccount:kube-system:root' }
      return [header, encoded(changed), signature].join('.')
    },
  ],
  [
    'that another key has signed under the same kid',
    /signature|verif/i,
    (issuer, { kid }) => signed(goodClaims(issuer), { ...stranger, kid }),
  ],
  [
    'that nobody has signed',
    /alg|sign|none|unsecured/i,
    (issuer, { kid }) => `${encoded({ alg: 'none', kid })}.${encoded(goodClaims(issuer))}.`,
  ],
  [
    'of a key that was never published',
    /key|kid|sign/i,
    (issuer) => signed(goodClaims(issuer), stranger),
  ],
]

describe.skipIf(!verifiersAreHere)('unmodified libraries, by TLS with a private root', () => {
  /** With documents as Kubernetes has them, and with the members that openidconnect insists on. */
  let plain: RotatingIssuer
  let padded: RotatingIssuer
  let scenes: readonly Scene[] = []

  beforeAll(async () => {
    plain = await RotatingIssuer.start()
    padded = await RotatingIssuer.start('--service-account-issuer-placeholders')
    const others = verifierNames.filter((name) => name !== 'openidconnect')
    scenes = [await follow(plain, others), await follow(padded, ['openidconnect'])]
  })
  afterAll(async () => {
    for (const { verifiers } of scenes) for (const each of verifiers) await each.stop()
    await plain?.stop()
    await padded?.stop()
  })

  test('believe a token with the claims that the refusals below spoil', async () => {
    for (const { issuer, verifiers } of scenes) {
      const token = signed(goodClaims(issuer), await issuer.signingKey())
      for (const { name, verdict } of await verdictsOn(token, verifiers))
        expect([name, verdict]).toEqual([name, { ok: true, sub: subject }])
    }
  })

  test.each(refusals)('refuse one %s, for that reason [ISS-R21]', async (_what, why, make) => {
    for (const { issuer, verifiers } of scenes) {
      const token = await make(issuer, await issuer.signingKey())
      for (const { name, verdict } of await verdictsOn(token, verifiers))
        expect([name, verdict]).toEqual([name, { ok: false, why: expect.stringMatching(why) }])
    }
  })

  test('believe every token before, during and after a rotation [ISS-R21, ISS-I2]', async () => {
    const began = performance.now()
    const loops = scenes.map((scene) => new VerifyingLoop(scene))
    await Promise.all(
      loops.map(async (loop) => {
        const { issuer } = loop.scene
        await loop.run('before')
        await issuer.rotate()
        await eventually('two keys', async () => (await issuer.publishedKids()).length === 2)
        await loop.run('published', () => performance.now() - began > longestCooldownMs)
        expect(loop.kids.size).toBe(1)
        await issuer.endPublication()
        await loop.run('taking over', () => loop.kids.size === 2)
        await loop.run('retired')
        await issuer.endRetirement()
        await eventually('one key', async () => (await issuer.publishedKids()).length === 1)
        loop.forget()
        await loop.run('dropped')
      }),
    )
    for (const { failures, verified, scene } of loops) {
      expect(failures).toEqual([])
      for (const { name } of scene.verifiers)
        expect([name, verified.get(name)! >= 5 * 2 * tokensPerStage]).toEqual([name, true])
    }
  }, 300_000)

  test('openidconnect names the member that it misses in the documents of Kubernetes', async () => {
    await expect(follow(plain, ['openidconnect'])).rejects.toThrow('authorization_endpoint')
  })
})

function verdictsOn(token: string, verifiers: Scene['verifiers']) {
  return Promise.all(
    verifiers.map(async (verifier) => ({
      name: verifier.name,
      verdict: await verifier.judge(token),
    })),
  )
}
