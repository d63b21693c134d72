import { describe, expect, test } from 'vitest'
import { type Authentication, type Authenticator, unauthorized } from '../core/index.ts'
import { anonymous, defaultAnonymousPaths } from './anonymous.ts'
import { requestWith } from './authentication-request.suite.ts'
import { bearerTokens } from './bearer-token.ts'
import { firstOf, scopeDecision } from './chain.ts'
import { clientCertificate } from './client-certificate.ts'
import { requestHeader } from './request-header.ts'

const signal = new AbortController().signal
const somebody = (username: string, ...groups: string[]): Authentication => ({
  user: { username, groups },
  method: 'test',
})
const finds = (found: Authentication | undefined): Authenticator => ({
  name: 'finds',
  authenticate: () => found,
})
const findsLater = (found: Authentication | undefined): Authenticator => ({
  name: 'finds-later',
  authenticate: async () => found,
})
const refuses: Authenticator = {
  name: 'refuses',
  authenticate: () => {
    throw unauthorized('bad')
  },
}
const refusesLater: Authenticator = {
  name: 'refuses-later',
  authenticate: async () => {
    throw unauthorized('bad')
  },
}
const ask = async (...authenticators: Authenticator[]) =>
  firstOf(authenticators).authenticate(requestWith([]), signal)

describe('the list of authenticators', () => {
  test.each([
    ['at once', finds],
    ['later', findsLater],
  ])('takes the first that finds somebody %s [GND-R70]', async (_when, find) => {
    const found = await ask(find(undefined), find(somebody('a')), find(somebody('b')))
    expect(found?.user.username).toBe('a')
    expect(await ask(find(undefined))).toBeUndefined()
    expect(await ask()).toBeUndefined()
  })

  test.each([
    ['at once', refuses],
    ['later', refusesLater],
  ])(
    'stops at a wrong credential, found out %s, and is not anonymous [GND-R70]',
    async (_when, refuse) => {
      await expect(ask(refuse, finds(somebody('a')), anonymous())).rejects.toMatchObject({
        reason: 'Unauthorized',
      })
    },
  )

  test.each([
    ['anybody', somebody('a', 'g'), ['g', 'system:authenticated']],
    ['one who is in it already', somebody('a', 'system:authenticated'), ['system:authenticated']],
    [
      'one without a proven identity',
      somebody('a', 'system:unauthenticated'),
      ['system:unauthenticated'],
    ],
    ['nobody', somebody('system:anonymous'), []],
  ])('adds system:authenticated for %s [GND-R75]', async (_who, found, groups) => {
    expect((await ask(finds(found)))?.user.groups).toEqual(groups)
    expect((await ask(findsLater(found)))?.user.groups).toEqual(groups)
  })

  test('gives the same object for the same credential', async () => {
    const chain = firstOf([finds(somebody('a'))])
    const first = await chain.authenticate(requestWith([]), signal)
    expect(await chain.authenticate(requestWith([]), signal)).toBe(first)
  })
})

describe('anonymous', () => {
  const at = (url: string, paths?: readonly string[]) =>
    anonymous(paths ? { paths } : {}).authenticate(requestWith([], { url }), signal)

  test.each([
    ['/healthz', true],
    ['/healthz?verbose', true],
    ['/version', true],
    ['/api/v1/namespaces/kube-public/configmaps/cluster-info', true],
    ['/healthz/', false],
    ['/healthz/etcd', false],
    ['/%68ealthz', false],
    ['//healthz', false],
    ['/healthz/../api', false],
    ['/api', false],
    ['/api?x=/healthz', false],
    ['http://host/healthz', false],
    ['', false],
  ])('on the default paths, %s lets in: %s [GND-R74]', (url, letsIn) => {
    expect(at(url, defaultAnonymousPaths) !== undefined).toBe(letsIn)
  })

  test('is system:anonymous in system:unauthenticated, everywhere unless limited [GND-R74]', async () => {
    expect(at('/anything')).toEqual({
      user: { username: 'system:anonymous', groups: ['system:unauthenticated'] },
      method: 'anonymous',
    })
    const found = await ask(anonymous())
    expect(found?.user.groups).toEqual(['system:unauthenticated'])
  })

  test('is off when left out: no credential, no identity [GND-R74]', async () => {
    const chain = firstOf([clientCertificate(() => undefined), bearerTokens([])])
    expect(await chain.authenticate(requestWith([]), signal)).toBeUndefined()
  })
})

describe('with every authenticator in its place', () => {
  const none = () => undefined
  const bad = () => {
    throw new Error('signed by nobody we know')
  }
  const chainWith = (verifyClient: () => undefined, verifyProxy: () => undefined) =>
    firstOf([
      requestHeader({ verify: verifyProxy, allowedNames: [] }),
      clientCertificate(verifyClient),
      bearerTokens([]),
      anonymous(),
    ])

  test('a request without a credential is anonymous, also with forged headers [GND-R71]', async () => {
    const request = requestWith([
      ['X-Remote-User', 'root'],
      ['X-Remote-Group', 'system:masters'],
    ])
    const found = await chainWith(none, none).authenticate(request, signal)
    expect(found?.user.username).toBe('system:anonymous')
  })

  test.each([
    ['a certificate under neither CA', chainWith(bad, bad), []],
    ['one with forged headers', chainWith(bad, bad), [['X-Remote-User', 'root']]],
    ['a token that nobody knows', chainWith(none, none), [['Authorization', 'Bearer x']]],
    ['an empty token', chainWith(none, none), [['Authorization', 'Bearer ']]],
    ['another scheme', chainWith(none, none), [['Authorization', 'Basic cm9vdDpyb290']]],
  ] as const)('%s is 401, never anonymous [GND-R70]', async (_what, chain, headers) => {
    await expect(async () =>
      chain.authenticate(requestWith(headers), signal),
    ).rejects.toMatchObject({ reason: 'Unauthorized', message: 'Unauthorized' })
  })
})

test('a scope forbids what it does not permit, whatever the rights [GND-R75]', () => {
  const user = { username: 'x', groups: ['system:masters'] }
  const scope = { name: 'cluster-info', permits: ({ path }: { path?: string }) => path === '/info' }
  expect(scopeDecision({ scope }, { user, verb: 'get', path: '/info' })).toBeUndefined()
  expect(scopeDecision({}, { user, verb: 'get', path: '/other' })).toBeUndefined()
  expect(scopeDecision({ scope }, { user, verb: 'get', path: '/other' })).toEqual({
    allowed: false,
    denied: true,
    reason: 'the credential may only be used for cluster-info',
  })
})
