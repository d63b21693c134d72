import { describe, expect, test } from 'vitest'
import {
  type Authorizer,
  isRecord,
  machineIdentity,
  type UserInfo,
  workloadMark,
} from '../../core/index.ts'
import { parseCompactJws } from '../../jose/index.ts'
import { createTokenIssuer, type TokenIssuerDeps } from './token-issuer.ts'
import { type Claims, labKeys, labObjects, TokenLab } from './token-lab.suite.ts'

const { signal } = new AbortController()
const person: UserInfo = { username: 'jane', groups: [] }
const nodeUser = (name: string): UserInfo => ({
  username: `system:node:${name}`,
  groups: ['system:nodes'],
})
const pod = { kind: 'Pod', apiVersion: 'v1', name: 'web' }

interface Wish {
  readonly spec?: Claims
  readonly metadata?: Claims
  readonly asker?: UserInfo
  readonly parts?: Partial<TokenIssuerDeps>
}

/** Grants nodes the audience `bank` for the account of the lab, and nothing else. */
const authorizer: Authorizer = {
  authorize: ({ verb, resource }) => ({
    allowed:
      verb === 'request-serviceaccounts-token-audience' &&
      resource?.resource === 'bank' &&
      resource.namespace === 'shop' &&
      resource.name === 'bot',
    reason: '',
  }),
  rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
}

async function ask(lab: TokenLab, { spec = {}, metadata = {}, asker = person, parts }: Wish = {}) {
  const { view, keys, names, clock } = lab
  const fixed = { view, keys, names, clock, authorizer }
  const issue = createTokenIssuer({ ...fixed, extendsExpiration: true, ...parts })
  const object = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: 'bot', namespace: 'shop', ...metadata },
    spec,
  }
  const issued = await issue({ object, asker, dryRun: false }, signal)
  const { status } = issued.object
  const token = isRecord(status) && typeof status['token'] === 'string' ? status['token'] : ''
  const jws = parseCompactJws(token)
  const claims: Record<string, unknown> = JSON.parse(jws.payload.toString())
  return { ...issued, status, claims, jws, text: jws.payload.toString() }
}

test("a token has Kubernetes' claims in Kubernetes' order, signed by the key that its kid names [ISS-K2, ISS-R3, ISS-R8, ISS-R25]", async () => {
  const lab = new TokenLab()
  const { text, claims, jws, credentialId } = await ask(lab, { spec: { boundObjectRef: pod } })
  const jti = String(claims['jti'])
  expect(text).toBe(
    `{"aud":["https://issuer.example"],"exp":${lab.now + 3600},"iat":${lab.now},"iss":"https://issuer.example","jti":"${jti}",` +
      '"kubernetes.io":{"namespace":"shop","node":{"name":"worker","uid":"node-1"},"pod":{"name":"web","uid":"pod-1"},"serviceaccount":{"name":"bot","uid":"sa-1"}},' +
      `"nbf":${lab.now},"sub":"system:serviceaccount:shop:bot"}`,
  )
  expect(jws.header.members).toEqual({ alg: 'RS256', kid: labKeys.rsa.kid })
  expect(lab.keys.current.published.verify(jws).kid).toBe(labKeys.rsa.kid)
  expect([jti, credentialId]).toEqual([expect.stringMatching(/^[\da-f-]{36}$/), `JTI=${jti}`])
})

describe('how long a token lives', () => {
  const life = async (lab: TokenLab, wish: Wish) => {
    const { claims, status, object, warnings } = await ask(lab, wish)
    const { expirationTimestamp } = isRecord(status) ? status : {}
    const { expirationSeconds } = isRecord(object['spec']) ? object['spec'] : {}
    const own = claims['kubernetes.io']
    return {
      exp: Number(claims['exp']) - lab.now,
      said: Date.parse(String(expirationTimestamp)) / 1000 - lab.now,
      expirationSeconds,
      warnings,
      warnAfter: isRecord(own) && 'warnafter' in own ? Number(own['warnafter']) - lab.now : 0,
    }
  }
  const plain = (seconds: number, warnings: readonly string[] = []) => ({
    exp: seconds,
    said: seconds,
    expirationSeconds: seconds,
    warnings,
    warnAfter: 0,
  })
  const year = 31_536_000
  const extended = { exp: year, said: 3607, expirationSeconds: 3607, warnings: [], warnAfter: 3607 }

  test.each<[string, Wish, object]>([
    ['an hour unless asked otherwise', {}, plain(3600)],
    ['ten minutes at least', { spec: { expirationSeconds: 600 } }, plain(600)],
    ['2^32 seconds at most', { spec: { expirationSeconds: 2 ** 32 } }, plain(2 ** 32)],
    [
      'no longer than the maximum, with a warning [ISS-K3]',
      { spec: { expirationSeconds: 7200 }, parts: { maxLifetimeSeconds: 3600 } },
      plain(3600, ['requested expiration of 7200 seconds shortened to 3600 seconds']),
    ],
    [
      'a year for the default token of a Pod, whatever the maximum [ISS-K5]',
      {
        spec: { expirationSeconds: 3607, boundObjectRef: pod },
        parts: { maxLifetimeSeconds: 3600 },
      },
      extended,
    ],
    [
      'not for one that is for others',
      { spec: { expirationSeconds: 3607, boundObjectRef: pod, audiences: ['vault'] } },
      plain(3607),
    ],
    ['not without a Pod', { spec: { expirationSeconds: 3607 } }, plain(3607)],
    [
      'not where it is switched off [ISS-R14]',
      {
        spec: { expirationSeconds: 3607, boundObjectRef: pod },
        parts: { extendsExpiration: false },
      },
      plain(3607),
    ],
  ])('%s', async (_name, wish, expected) => {
    expect(await life(new TokenLab(), wish)).toEqual(expected)
  })

  test.each([599, 0, -5, 2 ** 32 + 1])('%d seconds are refused', async (expirationSeconds) => {
    await expect(ask(new TokenLab(), { spec: { expirationSeconds } })).rejects.toMatchObject({
      reason: 'Invalid',
    })
  })
})

describe('what a token is bound to [ISS-K4]', () => {
  test.each<[string, Claims, Claims]>([
    [
      'a Pod, with its node',
      pod,
      { pod: { name: 'web', uid: 'pod-1' }, node: { name: 'worker', uid: 'node-1' } },
    ],
    [
      'a Secret',
      { kind: 'Secret', apiVersion: 'v1', name: 'held', uid: 'secret-1' },
      { secret: { name: 'held', uid: 'secret-1' } },
    ],
    [
      'a Node',
      { kind: 'Node', apiVersion: 'v1', name: 'worker' },
      { node: { name: 'worker', uid: 'node-1' } },
    ],
  ])('%s', async (_name, boundObjectRef, expected) => {
    const { claims } = await ask(new TokenLab(), { spec: { boundObjectRef } })
    expect(claims['kubernetes.io']).toEqual({
      namespace: 'shop',
      serviceaccount: { name: 'bot', uid: 'sa-1' },
      ...expected,
    })
  })

  test('a Pod whose Node is gone names it without its uid', async () => {
    const lab = new TokenLab()
    await lab.remove(labObjects.node)
    const { claims } = await ask(lab, { spec: { boundObjectRef: pod } })
    expect(claims['kubernetes.io']).toMatchObject({ node: { name: 'worker' } })
    expect(claims['kubernetes.io']).not.toMatchObject({ node: { uid: expect.anything() } })
  })

  test.each<[string, Wish, string]>([
    ['another kind', { spec: { boundObjectRef: { ...pod, kind: 'Job' } } }, 'BadRequest'],
    ['no such Pod', { spec: { boundObjectRef: { ...pod, name: 'none' } } }, 'NotFound'],
    ['another uid', { spec: { boundObjectRef: { ...pod, uid: 'x' } } }, 'Conflict'],
    ['another uid of the account', { metadata: { uid: 'x' } }, 'Conflict'],
    ['no such account', { metadata: { name: 'none' } }, 'NotFound'],
  ])('%s is refused', async (_name, wish, reason) => {
    await expect(ask(new TokenLab(), wish)).rejects.toMatchObject({ reason })
  })

  test('a Pod of another account is refused', async () => {
    const lab = new TokenLab()
    lab.view.put({ ...labObjects.pod, spec: { serviceAccountName: 'other' } })
    await expect(ask(lab, { spec: { boundObjectRef: pod } })).rejects.toMatchObject({
      message:
        'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    })
  })
})

describe('a node gets tokens of Pods that it runs, and no others [ISS-K7]', () => {
  const own = { boundObjectRef: { ...pod, uid: 'pod-1' } }

  test.each([
    ['the API server, as a volume of it has it', []],
    ['an audience of another volume', ['vault']],
    ['an audience that was granted to nodes', ['bank']],
  ])('its own Pod, for %s', async (_name, audiences) => {
    const spec = { ...own, audiences }
    const { claims } = await ask(new TokenLab(), { asker: nodeUser('worker'), spec })
    expect(claims['sub']).toBe('system:serviceaccount:shop:bot')
  })

  test('not for the API server if no volume of the Pod has such a token', async () => {
    const lab = new TokenLab()
    lab.view.put({ ...labObjects.pod, spec: { serviceAccountName: 'bot', nodeName: 'worker' } })
    await expect(ask(lab, { asker: nodeUser('worker'), spec: own })).rejects.toMatchObject({
      reason: 'Forbidden',
      message: expect.stringContaining('audience "" not found in pod spec volume'),
    })
  })

  test.each<[string, UserInfo, Claims, string]>([
    ['no Pod', nodeUser('worker'), {}, 'node requested token not bound to a pod'],
    [
      'a Secret',
      nodeUser('worker'),
      { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'held', uid: 'secret-1' } },
      'node requested token not bound to a pod',
    ],
    ['a Pod without its uid', nodeUser('worker'), { boundObjectRef: pod }, 'without a uid'],
    [
      'a Pod that was made again',
      nodeUser('worker'),
      { boundObjectRef: { ...pod, uid: 'older' } },
      'the UID in the bound object reference (older) does not match',
    ],
    ['a Pod of another node', nodeUser('other'), own, 'scheduled on a different node'],
    [
      'an audience that no volume has',
      nodeUser('worker'),
      { ...own, audiences: ['mail'] },
      'audience "mail" not found in pod spec volume, system:node:worker is not authorized to request tokens for this audience',
    ],
    [
      'two audiences',
      nodeUser('worker'),
      { ...own, audiences: ['vault', 'bank'] },
      'node may only request 0 or 1 audiences',
    ],
  ])('%s', async (_name, asker, spec, why) => {
    await expect(ask(new TokenLab(), { asker, spec })).rejects.toMatchObject({
      reason: 'Forbidden',
      message: expect.stringContaining(why),
    })
  })
})

describe('a machine gets tokens of Pods that it registered, and no others [ISS-W6]', () => {
  const asker = {
    username: `${machineIdentity.userPrefix}worker`,
    groups: [machineIdentity.group],
  }
  const own = { boundObjectRef: { ...pod, uid: 'pod-1' } }

  test('its own Pod', async () => {
    const lab = new TokenLab()
    const { metadata } = labObjects.pod
    lab.view.put({
      ...labObjects.pod,
      metadata: { ...metadata, labels: { [workloadMark]: 'worker' } },
    })
    const { claims } = await ask(lab, { asker, spec: own })
    expect(claims['sub']).toBe('system:serviceaccount:shop:bot')
  })

  test.each<[string, Claims, string]>([
    ['no Pod', {}, 'machine requested token not bound to a pod'],
    ['a Pod of somebody else on its node', own, 'bound to a pod that it did not register'],
  ])('%s', async (_name, spec, why) => {
    await expect(ask(new TokenLab(), { asker, spec })).rejects.toMatchObject({
      reason: 'Forbidden',
      message: expect.stringContaining(why),
    })
  })
})

test('a key is promised to be kept before its token is handed out', async () => {
  const lab = new TokenLab()
  const noted: unknown[] = []
  const noteToken = async (...words: unknown[]) => void noted.push(...words)
  await ask(lab, { parts: { noteToken } })
  expect(noted).toEqual([labKeys.rsa.kid, (lab.now + 3600) * 1000])
  const broken = () => Promise.reject(new Error('no store'))
  await expect(ask(lab, { parts: { noteToken: broken } })).rejects.toThrow('no store')
})
