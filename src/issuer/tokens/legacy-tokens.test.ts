import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { legacyServiceAccountTokens } from './legacy-tokens.ts'
import { type Claims, labKeys, labObjects, type TokenChange, TokenLab } from './token-lab.suite.ts'

const { signal } = new AbortController()
const legacy = 'kubernetes.io/serviceaccount'
const onlyBound = ['aud', 'exp', 'iat', 'nbf', 'jti', 'kubernetes.io']

const claims = {
  ...Object.fromEntries(onlyBound.map((name) => [name, undefined])),
  iss: legacy.replace('kubernetes.io', 'kubernetes'),
  [`${legacy}/namespace`]: 'shop',
  [`${legacy}/secret.name`]: 'old',
  [`${legacy}/service-account.name`]: 'bot',
  [`${legacy}/service-account.uid`]: 'sa-1',
}
const tokenOf = (lab: TokenLab, change: Claims = {}, more: TokenChange = {}): string =>
  lab.token({ ...more, claims: { ...claims, ...change } })

const keeping = (token: string, more: Claims = {}, labels = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'old', namespace: 'shop', labels },
  type: 'kubernetes.io/service-account-token',
  data: { token: Buffer.from(token).toString('base64') },
  ...more,
})

const show = (lab: TokenLab, token: string, audiences?: readonly string[]) =>
  legacyServiceAccountTokens(lab).authenticateToken(token, signal, audiences)

test('a token that its Secret holds is accepted, for the API server only [ISS-K6]', async () => {
  const lab = new TokenLab()
  const token = tokenOf(lab)
  lab.view.put(keeping(token))
  expect(await show(lab, token)).toEqual({
    method: 'legacy-service-account',
    user: {
      username: 'system:serviceaccount:shop:bot',
      uid: 'sa-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop'],
    },
    audiences: ['https://issuer.example'],
    auditNotes: { 'authentication.k8s.io/legacy-token': 'system:serviceaccount:shop:bot' },
  })
  await expect(show(lab, token, ['vault'])).rejects.toMatchObject({
    detail: expect.stringContaining('is invalid for the target audiences ["vault"]'),
  })
})

describe('a legacy token is refused [ISS-K6]', () => {
  type Arrange = (lab: TokenLab, token: string) => void | Promise<void>
  test.each<[string, Claims, Arrange, string]>([
    ['without its Secret', {}, () => {}, 'token has been invalidated'],
    [
      'that the Secret does not hold',
      {},
      (lab) => void lab.view.put(keeping('another')),
      "token does not match server's copy",
    ],
    [
      'in a Secret of another type',
      {},
      (lab, token) => void lab.view.put(keeping(token, { type: 'Opaque' })),
      "token does not match server's copy",
    ],
    [
      'that is marked invalid',
      {},
      (lab, token) =>
        void lab.view.put(
          keeping(token, {}, { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' }),
        ),
      'has been marked invalid',
    ],
    [
      'of an account that was made again',
      {},
      async (lab, token) => {
        lab.view.put(keeping(token))
        await lab.makeAgain(labObjects.account)
      },
      'ServiceAccount UID (another) does not match claim (sa-1)',
    ],
    [
      'of an account that is gone',
      {},
      async (lab, token) => {
        lab.view.put(keeping(token))
        await lab.remove(labObjects.account)
      },
      'serviceaccounts "bot" not found',
    ],
    [
      'with another subject',
      { sub: 'system:serviceaccount:shop:admin' },
      (lab, token) => void lab.view.put(keeping(token)),
      'sub claim is invalid',
    ],
    [
      'without the name of its Secret',
      { [`${legacy}/secret.name`]: undefined },
      (lab, token) => void lab.view.put(keeping(token)),
      'secretName claim is missing',
    ],
  ])('%s', async (_name, change, arrange, why) => {
    const lab = new TokenLab()
    const token = tokenOf(lab, change)
    await arrange(lab, token)
    await expect(show(lab, token)).rejects.toMatchObject({ detail: expect.stringContaining(why) })
  })

  test('signed by another key', async () => {
    const lab = new TokenLab()
    const token = tokenOf(lab, {}, { key: labKeys.attacker })
    lab.view.put(keeping(token))
    await expect(show(lab, token)).rejects.toMatchObject({
      detail: 'invalid signature, no keys found',
    })
  })
})

test('what is no legacy token is left to others', async () => {
  const lab = new TokenLab()
  expect(await show(lab, lab.token())).toBeUndefined()
})
