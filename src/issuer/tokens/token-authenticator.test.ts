import { expect, test } from 'vitest'
import type { IssuerKeys } from '../keys/key-ring.ts'
import { serviceAccountTokens, type TokenUse } from './token-authenticator.ts'
import { boundTo, labKeyState, TokenLab } from './token-lab.suite.ts'

const { signal } = new AbortController()

/** Counts how often keys are asked for, which each verification does once. */
function counted(lab: TokenLab) {
  let verifications = 0
  const uses: TokenUse[] = []
  let changed = () => {}
  const keys: IssuerKeys = {
    get current() {
      verifications += 1
      return labKeyState
    },
    requireFresh: () => {},
    onChange: (listener) => {
      changed = listener
      return () => {}
    },
  }
  const { view, names, clock } = lab
  const parts = { view, names, clock, keys, onUse: (use: TokenUse) => uses.push(use) }
  return {
    tokens: serviceAccountTokens(parts),
    verifications: () => verifications,
    changeKeys: () => changed(),
    uses,
  }
}

test('many who show one token cost one verification, and junk in between changes nothing [ISS-K10]', async () => {
  const lab = new TokenLab()
  const { tokens, verifications } = counted(lab)
  const token = lab.token()
  await Promise.all(Array.from({ length: 50 }, async () => tokens.authenticateToken(token, signal)))
  expect(verifications()).toBe(1)
  for (let index = 0; index < 500; index++) {
    const junk = `${token.slice(0, -6)}${String(index).padStart(6, 'A')}`
    await expect(tokens.authenticateToken(junk, signal)).rejects.toThrow('Unauthorized')
  }
  const before = verifications()
  await tokens.authenticateToken(token, signal)
  expect(verifications()).toBe(before)
})

test('a change of keys forgets what was verified', async () => {
  const lab = new TokenLab()
  const { tokens, verifications, changeKeys } = counted(lab)
  const token = lab.token()
  await tokens.authenticateToken(token, signal)
  changeKeys()
  await tokens.authenticateToken(token, signal)
  expect(verifications()).toBe(2)
})

test('a token is an identity with its credential, its audiences and an end [ISS-K9, ISS-K11]', async () => {
  const lab = new TokenLab()
  const { tokens } = counted(lab)
  const found = await tokens.authenticateToken(lab.token({ own: boundTo.pod }), signal)
  expect(found).toEqual({
    method: 'service-account',
    user: {
      username: 'system:serviceaccount:shop:bot',
      uid: 'sa-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop'],
      extra: {
        'authentication.kubernetes.io/credential-id': ['JTI=7f1b0a2e-0000-4000-8000-000000000001'],
        'authentication.kubernetes.io/node-name': ['worker'],
        'authentication.kubernetes.io/node-uid': ['node-1'],
        'authentication.kubernetes.io/pod-name': ['web'],
        'authentication.kubernetes.io/pod-uid': ['pod-1'],
      },
    },
    audiences: ['https://issuer.example'],
    expiresAt: (lab.now + 3_660) * 1000,
    credential: { type: 'token', id: '7f1b0a2e-0000-4000-8000-000000000001' },
  })
})

test('a token that should have been renewed is noted for the audit log [ISS-K5]', async () => {
  const lab = new TokenLab()
  const { tokens, uses } = counted(lab)
  const token = lab.token({ own: { ...boundTo.pod, warnafter: lab.now + 1 } })
  const inTime = await tokens.authenticateToken(token, signal)
  lab.now += 9
  const late = await tokens.authenticateToken(token, signal)
  expect([inTime?.auditNotes, late?.auditNotes, uses]).toEqual([
    undefined,
    {
      'authentication.k8s.io/stale-token':
        'subject: system:serviceaccount:shop:bot, seconds after warning threshold: 8',
    },
    ['valid', 'stale'],
  ])
})

test('a token is judged by the cluster of the moment, cached or not [ISS-K8]', async () => {
  const lab = new TokenLab()
  const { tokens } = counted(lab)
  const token = lab.token()
  await tokens.authenticateToken(token, signal)
  const failure = new Error('the store is gone')
  lab.view.fail(failure)
  await expect(tokens.authenticateToken(token, signal)).rejects.toBe(failure)
})
