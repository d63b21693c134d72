import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseKubeconfig } from '../../../src/kubeconfig/index.ts'
import { startTestIssuer, type TestIssuer } from '../../../src/testing/index.ts'
import { eventually } from '../../support/eventually.ts'
import { hasKubeApiserver, startKubeApiserver } from '../../support/kube-apiserver-process.ts'
import { startSallyport } from '../../support/sallyport-process.ts'
import { LiveServer } from '../same-answers/live-server.ts'

/** Four processes start in it, on a machine that may be busy. */
const startMs = 300_000
const audience = 'https://kubernetes.default.svc.cluster.local'

async function connectTo(path: string, admin: string): Promise<LiveServer> {
  const { clusters } = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [cluster] = clusters.values()
  const ca = cluster?.certificateAuthorityData ?? ''
  return new LiveServer({ address: cluster?.server ?? '', ca, tokens: { admin } })
}

/** A kube-apiserver and ours, both told to believe the same provider. */
interface BothServers {
  readonly ours: LiveServer
  readonly theirs: LiveServer
  stop(): Promise<void>
}

async function startBoth(
  issuer: TestIssuer,
  caFile: string,
  flags: readonly string[],
): Promise<BothServers> {
  const oidc = [
    `--oidc-issuer-url=${issuer.issuer}`,
    '--oidc-client-id=cluster',
    `--oidc-ca-file=${caFile}`,
    ...flags,
  ]
  const peer = await startKubeApiserver(oidc)
  const names = ['--token-auth-file', peer.tokensFile, `--service-account-issuer=${audience}`]
  const own = await startSallyport({ args: [...names, ...oidc] }).catch(async (error: unknown) => {
    await peer.stop()
    throw error
  })
  const ours = await connectTo(own.kubeconfig, peer.adminToken)
  const theirs = await connectTo(peer.kubeconfig, peer.adminToken)
  return {
    ours,
    theirs,
    stop: async () => {
      ours.close()
      theirs.close()
      await own.stop()
      await peer.stop()
    },
  }
}

interface ReviewStatus {
  readonly authenticated?: boolean
  readonly user?: object
  readonly audiences?: readonly string[]
}

async function review(
  server: LiveServer,
  token: string,
  audiences?: readonly string[],
): Promise<ReviewStatus> {
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, ...(audiences && { audiences }) },
  }
  const path = '/apis/authentication.k8s.io/v1/tokenreviews'
  const { json } = await server.answer({ method: 'POST', path, body }, '')
  const { authenticated, user, audiences: found } = (json as { status: ReviewStatus }).status
  return { ...(authenticated && { authenticated, user, audiences: found }) } as ReviewStatus
}

type Claims = Readonly<Record<string, unknown>>

describe.skipIf(!hasKubeApiserver())('users of a provider, beside a kube-apiserver', () => {
  let issuer: TestIssuer
  let scratch = ''
  let caFile = ''
  beforeAll(async () => {
    issuer = await startTestIssuer()
    scratch = await mkdtemp(join(tmpdir(), 'oidc-users-'))
    caFile = join(scratch, 'provider.crt')
    await writeFile(caFile, issuer.caPem ?? '')
  })
  afterAll(async () => {
    await issuer.stop()
    await rm(scratch, { recursive: true, force: true })
  })

  const tokenOf = (claims: Claims): string => {
    const now = Math.floor(Date.now() / 1000)
    return issuer.sign({
      iss: issuer.issuer,
      aud: 'cluster',
      sub: 'jane',
      exp: now + 600,
      iat: now,
      ...claims,
    })
  }

  const common: Record<string, Claims> = {
    'a plain one': {},
    'a list of audiences': { aud: ['other', 'cluster'] },
    'another audience': { aud: 'other' },
    'no audience': { aud: undefined },
    expired: { exp: 1_000 },
    'expired ten seconds ago': { exp: Math.floor(Date.now() / 1000) - 10 },
    'no end': { exp: undefined },
    'not before tomorrow': { nbf: Math.floor(Date.now() / 1000) + 86_400 },
    'no iat': { iat: undefined },
    'an id': { jti: 'abc' },
    'an empty id': { jti: '' },
    'a number for an id': { jti: 5 },
    'an id of null': { jti: null },
    'a number for a name': { sub: 5 },
    'a name of the system': { sub: 'system:admin' },
  }
  /** What is refused here and accepted there, each for a reason that the page gives. */
  const stricter: Record<string, (now: number) => Claims> = {
    'an end with a fraction': (now) => ({ exp: now + 600.5 }),
    'an end in words': (now) => ({ exp: String(now + 600) }),
    'issued tomorrow': (now) => ({ iat: now + 86_400 }),
    'a claim that looks like another': () => ({ SUB: 'x' }),
    'a claim that changes prototypes': () => JSON.parse('{"__proto__":{"a":1}}') as Claims,
    'an empty audience beside ours': () => ({ aud: ['cluster', ''] }),
    'forty levels of nesting': () => ({
      x: JSON.parse('['.repeat(40) + ']'.repeat(40)) as unknown,
    }),
    'more than 16 KiB': () => ({ x: 'x'.repeat(20_000) }),
    'no name at all': () => ({ sub: '' }),
  }
  const sets: [string, string[], Record<string, Claims>][] = [
    ['with the defaults', [], common],
    [
      'by email, with groups and required claims',
      [
        '--oidc-username-claim=email',
        '--oidc-groups-claim=groups',
        '--oidc-required-claim=hd=example.com',
      ],
      {
        good: { email: 'jane@example.com', email_verified: true, hd: 'example.com' },
        'not said to be verified': { email: 'jane@example.com', hd: 'example.com' },
        'not verified': { email: 'jane@example.com', email_verified: false, hd: 'example.com' },
        'verified in words': {
          email: 'jane@example.com',
          email_verified: 'true',
          hd: 'example.com',
        },
        'verified by null': { email: 'jane@example.com', email_verified: null, hd: 'example.com' },
        'no email': { hd: 'example.com' },
        'not the required claim': { email: 'jane@example.com', hd: 'example.org' },
        'no required claim': { email: 'jane@example.com' },
        'a required claim that is a list': { email: 'jane@example.com', hd: ['example.com'] },
        groups: { email: 'jane@example.com', hd: 'example.com', groups: ['a', 'b'] },
        'one group': { email: 'jane@example.com', hd: 'example.com', groups: 'a' },
        'the same group twice': {
          email: 'jane@example.com',
          hd: 'example.com',
          groups: ['a', 'a'],
        },
        'no groups': { email: 'jane@example.com', hd: 'example.com', groups: [] },
        'groups of null': { email: 'jane@example.com', hd: 'example.com', groups: null },
        'an empty group': { email: 'jane@example.com', hd: 'example.com', groups: [''] },
        'groups of numbers': { email: 'jane@example.com', hd: 'example.com', groups: [1] },
        'an object of groups': { email: 'jane@example.com', hd: 'example.com', groups: { a: 1 } },
        'a group of the system': {
          email: 'jane@example.com',
          hd: 'example.com',
          groups: ['system:masters'],
        },
        'a name of the system': { email: 'system:admin', hd: 'example.com' },
      },
    ],
    [
      'with prefixes',
      [
        '--oidc-username-prefix=corp:',
        '--oidc-groups-claim=roles',
        '--oidc-groups-prefix=corp:',
        '--oidc-required-claim=a=1',
        '--oidc-required-claim=b=x=y',
      ],
      {
        good: { a: '1', b: 'x=y', roles: ['admins'] },
        'a number where text is required': { a: 1, b: 'x=y' },
        'no groups': { a: '1', b: 'x=y' },
      },
    ],
    [
      'without a prefix',
      ['--oidc-username-prefix=-'],
      { good: {}, 'a name of the system': { sub: 'system:admin' } },
    ],
  ]

  describe.each(sets)('%s', (_name, flags, tokens) => {
    let both: BothServers
    beforeAll(async () => {
      both = await startBoth(issuer, caFile, flags)
      const [first = {}] = Object.values(tokens)
      // It asks the provider in its own time.
      const isKnown = async () => (await review(both.theirs, tokenOf(first))).authenticated === true
      await eventually('the provider is known', isKnown, 60_000)
    }, startMs)
    afterAll(() => both?.stop())

    test.each(Object.entries(tokens))('%s [ISS-P8]', async (_what, claims) => {
      const token = tokenOf(claims)
      const [mine, real] = await Promise.all([review(both.ours, token), review(both.theirs, token)])
      expect(mine).toEqual(real)
    })

    test.each(Object.entries(stricter))(
      '%s is refused here and accepted there [ISS-P8]',
      async (_what, change) => {
        const [first = {}] = Object.values(tokens)
        const claims = change(Math.floor(Date.now() / 1000))
        const name = 'email' in first && 'sub' in claims ? { email: claims['sub'] } : {}
        const token = tokenOf({ ...first, ...claims, ...name })
        expect(await review(both.ours, token)).toEqual({})
        expect(await review(both.theirs, token)).toMatchObject({ authenticated: true })
      },
    )

    test('for each audience of a review [ISS-P8]', async () => {
      const [first = {}] = Object.values(tokens)
      const token = tokenOf(first)
      for (const audiences of [undefined, [audience], ['cluster'], ['other', audience]]) {
        const [mine, real] = await Promise.all([
          review(both.ours, token, audiences),
          review(both.theirs, token, audiences),
        ])
        expect(mine).toEqual(real)
      }
    })
  })
})
