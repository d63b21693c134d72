import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseKubeconfig } from '../../../src/kubeconfig/index.ts'
import { startTestIssuer, type TestIssuer } from '../../../src/testing/index.ts'
import { eventually } from '../../support/eventually.ts'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../../support/sallyport-process.ts'
import { LiveServer } from '../same-answers/live-server.ts'

const program = fileURLToPath(new URL('../../../interop/peers/run-kube-apiserver', import.meta.url))
const here = [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
  (peer) => pathOrReason(peer) !== undefined,
)
const audience = 'https://kubernetes.default.svc.cluster.local'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}

async function connectTo(path: string, admin: string): Promise<LiveServer> {
  const { clusters } = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [cluster] = clusters.values()
  const ca = cluster?.certificateAuthorityData ?? ''
  return new LiveServer({ address: cluster?.server ?? '', ca, tokens: { admin } })
}

/** A kube-apiserver and ours, both told to believe the same provider. */
class BothServers {
  readonly #directory: string
  readonly #child: ChildProcess
  readonly #own: SallyportProcess
  readonly ours: LiveServer
  readonly theirs: LiveServer

  private constructor(parts: {
    directory: string
    child: ChildProcess
    own: SallyportProcess
    ours: LiveServer
    theirs: LiveServer
  }) {
    this.#directory = parts.directory
    this.#child = parts.child
    this.#own = parts.own
    this.ours = parts.ours
    this.theirs = parts.theirs
  }

  static async start(issuer: TestIssuer, flags: readonly string[]): Promise<BothServers> {
    const directory = await mkdtemp(join(tmpdir(), 'oidc-users-'))
    const ca = join(directory, 'provider.crt')
    await writeFile(ca, issuer.caPem ?? '')
    const oidc = [
      `--oidc-issuer-url=${issuer.issuer}`,
      '--oidc-client-id=cluster',
      `--oidc-ca-file=${ca}`,
      ...flags,
    ]
    const places = ['--port', String(await freePort()), '--etcd-port', String(await freePort())]
    const child = spawn(program, ['--dir', directory, ...places, '--', ...oidc], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(createInterface({ input: child.stdout }), 'line')
    const tokens = join(directory, 'tokens.csv')
    const names = ['--token-auth-file', tokens, `--service-account-issuer=${audience}`]
    const own = await startSallyport({ args: [...names, ...oidc] })
    const [admin = ''] = (await readFile(tokens, 'utf8')).split(',')
    const ours = await connectTo(own.kubeconfig, admin)
    const theirs = await connectTo(join(directory, 'admin.kubeconfig'), admin)
    return new BothServers({ directory, child, own, ours, theirs })
  }

  async stop(): Promise<void> {
    this.ours.close()
    this.theirs.close()
    await this.#own.stop()
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await exited
    await rm(this.#directory, { recursive: true, force: true })
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

describe.skipIf(!here)('users of a provider, beside a kube-apiserver', () => {
  let issuer: TestIssuer
  beforeAll(async () => {
    issuer = await startTestIssuer()
  })
  afterAll(() => issuer.stop())

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
    'a number for a name': { sub: 5 },
    'a name of the system': { sub: 'system:admin' },
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
      both = await BothServers.start(issuer, flags)
      const [first = {}] = Object.values(tokens)
      // It asks the provider in its own time.
      await eventually(
        'the provider is known',
        async () => (await review(both.theirs, tokenOf(first))).authenticated === true,
      )
    }, 120_000)
    afterAll(() => both?.stop())

    test.each(Object.entries(tokens))('%s [ISS-P8]', async (_what, claims) => {
      const token = tokenOf(claims)
      const [mine, real] = await Promise.all([review(both.ours, token), review(both.theirs, token)])
      expect(mine).toEqual(real)
    })

    test('a name of nothing is nobody here, and somebody there [ISS-P8]', async () => {
      const [first = {}] = Object.values(tokens)
      const token = tokenOf({ ...first, sub: '', ...('email' in first && { email: '' }) })
      expect(await review(both.ours, token)).toEqual({})
      expect(await review(both.theirs, token)).toMatchObject({ authenticated: true })
    })

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
