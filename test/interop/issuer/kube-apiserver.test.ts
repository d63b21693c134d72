import { type ChildProcess, spawn } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../bench/free-port.ts'
import { type SigningKey, signCompactJws, signingKey } from '../../../src/jose/index.ts'
import { parseKubeconfig } from '../../../src/kubeconfig/index.ts'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../../support/sallyport-process.ts'
import type { Answer, Ask } from '../same-answers/ask.ts'
import { LiveServer } from '../same-answers/live-server.ts'

const program = fileURLToPath(new URL('../../../interop/peers/run-kube-apiserver', import.meta.url))
const here = [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
  (peer) => pathOrReason(peer) !== undefined,
)
const issuer = 'https://kubernetes.default.svc.cluster.local'
const jwksUri = 'https://issuer.example/openid/v1/jwks'
const discovery = '/.well-known/openid-configuration'
const jwks = '/openid/v1/jwks'
const tokens = '/api/v1/namespaces/default/serviceaccounts/shared/token'

type Claims = Readonly<Record<string, unknown>>

const stranger = signingKey(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)

const signed = (claims: Claims, key: SigningKey): string =>
  signCompactJws({ alg: key.alg, kid: key.kid }, JSON.stringify(claims), key)

/** Times of a token that lives between two hours from now. */
function between(from: number, until: number): Claims {
  const hours = (count: number) => Math.floor(Date.now() / 1000) + count * 3_600
  return { iat: hours(from), nbf: hours(from), exp: hours(until) }
}

/** Claims about another account, or bound to something. */
function about(claims: Claims, account: Claims, bound: Claims = {}): Claims {
  const own = claims['kubernetes.io'] as { serviceaccount: { name: string; uid: string } }
  const serviceaccount = { ...own.serviceaccount, ...account }
  const sub = `system:serviceaccount:default:${serviceaccount.name}`
  return { ...claims, sub, 'kubernetes.io': { ...own, serviceaccount, ...bound } }
}

async function connectTo(path: string, admin: string): Promise<LiveServer> {
  const { clusters } = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [cluster] = clusters.values()
  const ca = cluster?.certificateAuthorityData ?? ''
  return new LiveServer({ address: cluster?.server ?? '', ca, tokens: { admin } })
}

/** Writes an object behind the back of the API, so that it has a uid of our choice. */
async function putInto(etcdPort: number, path: string, object: object): Promise<void> {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  const body = { key: encode(path), value: encode(JSON.stringify(object)) }
  const response = await fetch(`http://127.0.0.1:${etcdPort}/v3/kv/put`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`etcd said ${response.status}`)
}

describe.skipIf(!here)('a kube-apiserver with the same keys and issuer', () => {
  let directory = ''
  let child: ChildProcess
  let own: SallyportProcess
  let ours: LiveServer
  let theirs: LiveServer
  const ask = async (server: LiveServer, asked: Ask): Promise<Answer> => server.answer(asked, '')
  const post = (path: string, body: object): Ask => ({ method: 'POST', path, body })
  const issued = async (server: LiveServer): Promise<string> => {
    const { json } = await ask(server, post(tokens, {}))
    return (json as { status: { token: string } }).status.token
  }
  const reviewed = async (server: LiveServer, token: string): Promise<object> => {
    const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview' }
    const { json } = await ask(
      server,
      post('/apis/authentication.k8s.io/v1/tokenreviews', { ...kind, spec: { token } }),
    )
    return (json as { status: object }).status
  }

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'same-issuer-'))
    const extra = join(directory, 'extra.pem')
    // A second key, of the other kind, that only verifies.
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    await writeFile(extra, privateKey.export({ type: 'pkcs1', format: 'pem' }))
    const port = await freePort(3) // etcd takes two
    const etcdPort = port + 1
    child = spawn(
      program,
      [
        '--dir',
        directory,
        '--port',
        String(port),
        '--etcd-port',
        String(etcdPort),
        '--',
        `--service-account-jwks-uri=${jwksUri}`,
        `--service-account-key-file=${extra}`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    await once(createInterface({ input: child.stdout! }), 'line')
    own = await startSallyport({
      args: [
        '--token-auth-file',
        join(directory, 'tokens.csv'),
        `--service-account-issuer=${issuer}`,
        `--service-account-jwks-uri=${jwksUri}`,
        `--service-account-signing-key-file=${join(directory, 'pki', 'sa.key')}`,
        `--service-account-key-file=${join(directory, 'pki', 'sa.pub')}`,
        `--service-account-key-file=${extra}`,
      ],
    })
    const [admin = ''] = (await readFile(join(directory, 'tokens.csv'), 'utf8')).split(',')
    ours = await connectTo(own.kubeconfig, admin)
    theirs = await connectTo(join(directory, 'admin.kubeconfig'), admin)
    const made = await ask(
      ours,
      post('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'shared' } }),
    )
    const { metadata } = made.json as { metadata: { uid: string } }
    await putInto(etcdPort, '/registry/serviceaccounts/default/shared', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: {
        name: 'shared',
        namespace: 'default',
        uid: metadata.uid,
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
    })
  })
  afterAll(async () => {
    ours?.close()
    theirs?.close()
    await own?.stop()
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
    await rm(directory, { recursive: true, force: true })
  })

  test.each([discovery, jwks, `${discovery}/`, `${jwks}/`])(
    'serves the same bytes at %s, key ids included [ISS-R34, ISS-I1]',
    async (path) => {
      const [mine, real] = await Promise.all(
        [ours, theirs].map((server) => ask(server, { method: 'GET', path })),
      )
      expect(mine!.text).toBe(real!.text)
      expect(mine!.text.length).toBeGreaterThan(100)
      for (const header of ['content-type', 'cache-control'])
        expect(mine!.headers.get(header)).toEqual(real!.headers.get(header))
    },
  )

  test('accepts our tokens of the same account, and we accept its own [ISS-R35]', async () => {
    const [mine, real] = [await issued(ours), await issued(theirs)]
    for (const token of [mine, real]) {
      const here = await reviewed(ours, token)
      expect(here).toMatchObject({ authenticated: true, audiences: [issuer] })
      expect(await reviewed(theirs, token)).toEqual(here)
    }
    const headers = (token: string) => ({ authorization: `Bearer ${token}` })
    for (const [server, token] of [
      [ours, real],
      [theirs, mine],
    ] as const) {
      const asked = { method: 'GET', path: jwks, as: 'nobody' as const, headers: headers(token) }
      expect((await ask(server, asked)).code).toBe(200)
    }
  })

  test.each<[string, (claims: Claims, key: SigningKey) => string]>([
    ['no token at all', () => 'junk'],
    ['three parts of nothing', () => 'a.b.c'],
    ['an object', () => '{}'],
    ['another issuer', (claims, key) => signed({ ...claims, iss: 'https://other.example' }, key)],
    ['another audience', (claims, key) => signed({ ...claims, aud: ['vault', 'bank'] }, key)],
    ['a token that has ended', (claims, key) => signed({ ...claims, ...between(-2, -1) }, key)],
    ['one that has not begun', (claims, key) => signed({ ...claims, ...between(1, 2) }, key)],
    ['a key that nobody knows', (claims) => signed(claims, stranger)],
    ['an account that is gone', (claims, key) => signed(about(claims, { name: 'gone' }), key)],
    ['an account made again', (claims, key) => signed(about(claims, { uid: 'older' }), key)],
    ...['pod', 'secret', 'node'].map(
      (kind): [string, (claims: Claims, key: SigningKey) => string] => [
        `a ${kind} that is gone`,
        (claims, key) => signed(about(claims, {}, { [kind]: { name: 'gone', uid: 'gone' } }), key),
      ],
    ),
  ])('reviews %s in the same words [ISS-K9]', async (_what, make) => {
    const [, payload = ''] = (await issued(ours)).split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims
    const pem = await readFile(join(directory, 'pki', 'sa.key'), 'utf8')
    const token = make(claims, signingKey(createPrivateKey(pem)))
    const [mine, real] = [await reviewed(ours, token), await reviewed(theirs, token)]
    expect(mine).toEqual(real)
    expect(real).toMatchObject({ error: expect.any(String) })
  })

  test.each([discovery, jwks])('describes %s in OpenAPI as it does [ISS-K12]', async (path) => {
    const read = async (server: LiveServer) => {
      const { json } = await ask(server, { method: 'GET', path: `/openapi/v3${path}` })
      const { paths } = json as { paths: Record<string, { get: { description: string } }> }
      const index = await ask(server, { method: 'GET', path: '/openapi/v3' })
      const listed = (index.json as { paths: object }).paths
      expect(listed).toHaveProperty([path.slice(1), 'serverRelativeURL'])
      // Said in words of our own.
      return JSON.parse(JSON.stringify(paths), (key, value: unknown) =>
        key === 'description' ? '' : value,
      ) as object
    }
    const [mine, real] = [await read(ours), await read(theirs)]
    expect(mine).toEqual(real)
    expect(mine).toHaveProperty([`${path}/`, 'get', 'operationId'])
  })

  test('says the same of a static token for each audience [ISS-K9]', async () => {
    const [token = ''] = (await readFile(join(directory, 'tokens.csv'), 'utf8')).split(',')
    for (const audiences of [undefined, [issuer], ['other'], ['other', issuer]]) {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, ...(audiences && { audiences }) },
      }
      const asked = post('/apis/authentication.k8s.io/v1/tokenreviews', body)
      const [mine, real] = await Promise.all([ask(ours, asked), ask(theirs, asked)])
      expect((mine.json as { status: object }).status).toEqual(
        (real.json as { status: object }).status,
      )
    }
  })
})
