import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import { startTestIssuer, type TestIssuer } from '../../src/testing/index.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let scratch = ''
let provider: TestIssuer
let ca = ''
let emptyFile = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'oidc-users-'))
  provider = await startTestIssuer()
  ca = join(scratch, 'ca.crt')
  await writeFile(ca, provider.caPem ?? '')
  emptyFile = join(scratch, 'empty')
  await writeFile(emptyFile, '')
})
afterAll(async () => {
  await provider.stop()
  await rm(scratch, { recursive: true, force: true })
})

const flagsFor = (...more: string[]): string[] => [
  '--oidc-issuer-url',
  provider.issuer,
  '--oidc-client-id',
  'cluster',
  '--oidc-ca-file',
  ca,
  ...more,
]
const tokenOf = (claims: object = {}): string => {
  const now = Math.floor(Date.now() / 1000)
  return provider.sign({
    iss: provider.issuer,
    aud: 'cluster',
    sub: 'jane',
    exp: now + 60,
    ...claims,
  })
}

describe('a server that believes an OIDC provider [ISS-P8]', () => {
  let server: InProcessServer
  beforeAll(async () => {
    const more = [
      '--oidc-username-prefix',
      'corp:',
      '--oidc-groups-claim',
      'groups',
      '--oidc-groups-prefix',
      'corp:',
    ]
    server = await startInProcess({ features: allFeatures, flags: flagsFor(...more) })
  })
  afterAll(() => server.close())
  const whoAmI = async (token: string) => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const { status, text } = await server.as({ token }).post(path, body)
    return { status, user: JSON.parse(text).status?.userInfo }
  }

  test('knows its users and their groups', async () => {
    expect(await whoAmI(tokenOf({ groups: ['devs'] }))).toMatchObject({
      status: 201,
      user: { username: 'corp:jane', groups: ['corp:devs', 'system:authenticated'] },
    })
  })

  test('gives them the rights that RBAC gives them, and no others', async () => {
    const { status } = await server.as({ token: tokenOf() }).get('/api/v1/namespaces')
    expect(status).toBe(403)
    const admin = await server.admin()
    await admin.post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'devs' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'corp:devs' }],
    })
    const dev = server.as({ token: tokenOf({ groups: ['devs'] }) })
    expect((await dev.get('/api/v1/namespaces/default/configmaps')).status).toBe(200)
  })

  test.each<[string, object]>([
    ['for another client', { aud: 'other' }],
    ['that has ended', { exp: 1 }],
    ['of a key of nobody', { iss: 'https://other.example' }],
  ])('a token %s is a 401 that says nothing', async (_name, claims) => {
    const { status, text } = await server.as({ token: tokenOf(claims) }).get('/api')
    expect([status, JSON.parse(text).message]).toEqual([401, 'Unauthorized'])
  })

  test('its tokens are for the API server alone, whatever a review asks', async () => {
    const admin = await server.admin()
    const reviewed = async (audiences?: string[]) => {
      const spec = { token: tokenOf(), ...(audiences && { audiences }) }
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec }
      const answer = await admin.post('/apis/authentication.k8s.io/v1/tokenreviews', body)
      return JSON.parse(answer.text).status
    }
    expect(await reviewed()).toMatchObject({ authenticated: true, audiences: [expect.any(String)] })
    expect((await reviewed(['vault'])).authenticated).not.toBe(true)
    expect((await reviewed(['cluster'])).authenticated).not.toBe(true)
  })

  test.each(['jane ', 'jane\u00a0', 'jane\n', 'ja\nne', 'ja\0ne', 'ja\u2028ne', 'jane\ud800'])(
    'a review vouches for %j no more than a request is accepted [SEC-R2006]',
    async (sub) => {
      const token = tokenOf({ sub })
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
      const admin = await server.admin()
      const answer = await admin.post('/apis/authentication.k8s.io/v1/tokenreviews', body)
      const { authenticated, user, error } = JSON.parse(answer.text).status
      expect([authenticated, user, error]).toEqual([
        undefined,
        {},
        expect.stringContaining('the user name'),
      ])
      expect((await whoAmI(token)).status).toBe(401)
    },
  )

  test('a token of the provider is in no log', async () => {
    const token = tokenOf({ aud: 'other' })
    await server.as({ token }).get('/api')
    expect(server.log).not.toContain(token)
    expect(server.log).not.toContain(token.split('.')[2])
  })
})

test('the provider may be down when the server starts [ISS-P8]', async () => {
  provider.failWith(503)
  const server = await startInProcess({ features: allFeatures, flags: flagsFor() })
  try {
    const logged = server.logged('cannot load keys')
    expect((await server.as({ token: tokenOf() }).get('/api')).status).toBe(401)
    expect(await logged).toContain('503')
    expect((await (await server.admin()).get('/readyz')).status).toBe(200)
  } finally {
    provider.recover()
    await server.close()
  }
})

describe('flags that cannot work are refused at the start [ISS-P8]', () => {
  test.each<[string, () => string[]]>([
    ['must be given together', () => ['--oidc-issuer-url', 'https://provider.example']],
    ['must be given together', () => ['--oidc-client-id', 'cluster']],
    ['must be given together', () => ['--oidc-groups-claim', 'groups']],
    [
      'must be an https URL',
      () => ['--oidc-issuer-url', 'http://provider.example', '--oidc-client-id', 'x'],
    ],
    [
      'no user, query or fragment',
      () => ['--oidc-issuer-url', 'https://p.example?x', '--oidc-client-id', 'x'],
    ],
    ['must be of the form claim=value', () => flagsFor('--oidc-required-claim', 'x')],
    [
      'names a claim twice',
      () => flagsFor('--oidc-required-claim', 'x=1', '--oidc-required-claim', 'x=2'),
    ],
    [
      'must be one of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512',
      () => flagsFor('--oidc-signing-algs', 'HS256'),
    ],
    [
      'must not be an issuer of service accounts',
      () => flagsFor('--service-account-issuer', provider.issuer),
    ],
    ['cannot read', () => flagsFor('--oidc-ca-file', join(scratch, 'none'))],
    [
      '(--oidc-ca-file) is invalid: there is no certificate in it',
      () => flagsFor('--oidc-ca-file', emptyFile),
    ],
  ])('%s', async (words, flags) => {
    await expect(startInProcess({ features: allFeatures, flags: flags() })).rejects.toThrow(words)
  })
})

test('names without a prefix are worth a warning [ISS-P8]', async () => {
  const flags = flagsFor('--oidc-username-prefix', '-', '--oidc-groups-claim', 'groups')
  const server = await startInProcess({ features: allFeatures, flags })
  expect(server.log).toContain('it can issue names of system users')
  expect(server.log).toContain('it can issue names of system groups')
  await server.close()
})
