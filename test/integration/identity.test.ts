import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addRevocation, type Revocation } from '../../src/authn/index.ts'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'
import {
  type Answer,
  type Call,
  type Credential,
  type HttpsCaller,
  requestOn,
} from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const hourMs = 3_600_000
const goodToken = 'a-good-token-of-tom'
const masters = 'system:masters'

let directory: string
let tokenFile: string
let server: InProcessServer
let outside: CertificateAuthority
let proxies: CertificateAuthority

async function authority(commonName: string): Promise<CertificateAuthority> {
  const key = await generateEcKey()
  const order = { commonName, key, now: Date.now(), lifetimeMs: hourMs }
  const { certificate, certPem } = await issueAuthorityCertificate(order)
  return { name: commonName, certificate, bundlePem: certPem, key }
}

/** A certificate under any CA, from any time. */
async function certificateOf(
  ca: CertificateAuthority,
  commonName: string,
  order: { readonly organizations?: readonly string[]; readonly now?: number } = {},
): Promise<Credential> {
  const made = await issueKeyAndCertificate({
    ca,
    subject: { commonName, organizations: order.organizations ?? [] },
    usages: ['client auth'],
    now: order.now ?? Date.now(),
    lifetimeMs: hourMs / 2,
  })
  return { cert: made.certPem, key: privateKeyPem(made.key).reveal() }
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-identity-'))
  tokenFile = join(directory, 'tokens.csv')
  await writeFile(tokenFile, `${goodToken},tom,u-1,"readers,writers"\n`)
  outside = await authority('outside')
  proxies = await authority('proxies')
  await writeFile(join(directory, 'proxies.crt'), proxies.bundlePem)
  server = await startInProcess({
    http2: true,
    flags: [
      ['--token-auth-file', tokenFile],
      ['--requestheader-client-ca-file', join(directory, 'proxies.crt')],
      ['--requestheader-allowed-names', 'front'],
    ].flat(),
  })
  const admin = await server.admin()
  const made = await admin.post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: 'readers' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
  })
  if (made.status !== 201) throw new Error(made.text)
})
afterAll(async () => {
  await server.close()
  await rm(directory, { recursive: true, force: true })
})

const reviewPath = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }

/** Whom the server takes somebody for: a user, or the code by which it refuses to say. */
async function whoIs(credential: Credential, headers: Call['headers'] = {}): Promise<unknown> {
  return userIn(await server.as(credential).post(reviewPath, review, headers))
}

function userIn(answer: Answer): unknown {
  if (answer.status !== 201) return answer.status
  const status = answer.object['status'] as { readonly userInfo: Record<string, unknown> }
  const { extra: _extra, ...user } = status.userInfo
  return user
}

const tom = { username: 'tom', uid: 'u-1', groups: ['readers', 'writers', 'system:authenticated'] }

describe('a credential that is present and wrong is 401 and never anonymous [GND-R70, GND-R72]', () => {
  const basic = `Basic ${Buffer.from('admin:admin').toString('base64')}`
  const stolenName = { organizations: [masters] }
  const wrong: [string, () => Promise<Credential>, Record<string, string>][] = [
    ['a token that nobody knows', async () => ({ token: 'unknown' }), {}],
    ['a good token with a letter more', async () => ({ token: `${goodToken}x` }), {}],
    ['a bearer token that is not there', async () => ({}), { authorization: 'Bearer' }],
    ['an empty Authorization header', async () => ({}), { authorization: '' }],
    ['a user and password', async () => ({}), { authorization: basic }],
    ['a certificate of another CA', () => certificateOf(outside, 'jane'), {}],
    ["one with the administrator's name", () => certificateOf(outside, 'admin', stolenName), {}],
    [
      'an expired certificate',
      () => certificateOf(server.serving.pki.clusterCa, 'jane', { now: Date.now() - 2 * hourMs }),
      {},
    ],
    [
      'a certificate of tomorrow',
      () => certificateOf(server.serving.pki.clusterCa, 'jane', { now: Date.now() + 24 * hourMs }),
      {},
    ],
    [
      'a foreign certificate and a token that nobody knows',
      async () => ({ ...(await certificateOf(outside, 'jane')), token: 'unknown' }),
      {},
    ],
    [
      'a foreign certificate beside a good token',
      async () => ({ ...(await certificateOf(outside, 'jane')), token: goodToken }),
      {},
    ],
  ]

  test.each(wrong)('%s', async (_name, credential, headers) => {
    const caller = server.as(await credential())
    const answer = await caller.get('/version', headers)
    expect(answer.status).toBe(401)
    expect(answer.object).toMatchObject({ kind: 'Status', reason: 'Unauthorized', code: 401 })
    const session = await caller.http2()
    const overTwo = await requestOn(session, { ...caller.headers, ...headers, ':path': '/version' })
    expect(overTwo.status).toBe(401)
  })

  test('and a stranger without any may read the version, so this can fail', async () => {
    expect((await server.as({}).get('/version')).status).toBe(200)
  })

  test('two Authorization headers are refused whichever comes first', async () => {
    for (const tokens of [
      [goodToken, 'unknown'],
      ['unknown', goodToken],
    ] as const) {
      const socket = await server.as({}).socket()
      const lines = tokens.map((token) => `Authorization: Bearer ${token}\r\n`).join('')
      socket.end(`GET /version HTTP/1.1\r\nHost: a\r\n${lines}Connection: close\r\n\r\n`)
      expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
    }
  })

  test('a session that is offered again carries no identity along [GND-R72]', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const tls = { minVersion: version, maxVersion: version }
      const jane = await server.as(await server.issue('jane', [masters])).socket(tls)
      const session = jane.getSession()
      const stranger = await server.as({}).socket({ ...tls, session: session ?? Buffer.alloc(0) })
      expect(stranger.isSessionReused()).toBe(false)
      stranger.end('GET /api HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      expect(await text(stranger)).toMatch(/^HTTP\/1\.1 401 /)
    }
  })
})

describe('a good credential is who it says, in system:authenticated [GND-R75]', () => {
  test('a token', async () => expect(await whoIs({ token: goodToken })).toEqual(tom))

  test('a certificate', async () => {
    expect(await whoIs(await server.issue('jane', ['a', 'b']))).toEqual({
      username: 'jane',
      groups: ['a', 'b', 'system:authenticated'],
    })
  })

  test('of a certificate and a token the certificate, which comes first in the list', async () => {
    const both = { ...(await server.issue('jane')), token: goodToken }
    expect(await whoIs(both)).toMatchObject({ username: 'jane' })
  })
})

describe('identity headers count only from a front proxy [GND-R71]', () => {
  const claim = { 'X-Remote-User': 'root', 'X-Remote-Group': masters }

  test('with a certificate of its CA and an allowed name', async () => {
    const front = server.as(await certificateOf(proxies, 'front'))
    const answer = await front.post(reviewPath, review, {
      'X-Remote-User': 'ann',
      'X-Remote-Uid': 'u-7',
      'X-Remote-Group': ['a', 'b'],
      'X-Remote-Extra-Scopes': ['one', 'two'],
    })
    expect(answer.object['status']).toEqual({
      userInfo: {
        username: 'ann',
        uid: 'u-7',
        groups: ['a', 'b', 'system:authenticated'],
        extra: { scopes: ['one', 'two'] },
      },
    })
  })

  test.each([
    ['nobody at all', async () => ({}), 401],
    ['a token', async () => ({ token: goodToken }), tom],
    ['another name under that CA', () => certificateOf(proxies, 'other'), 401],
    ['a proxy of another CA', () => certificateOf(outside, 'front'), 401],
    [
      'a user of the cluster, whatever their name',
      () => server.issue('front'),
      { username: 'front', groups: ['system:authenticated'] },
    ],
    [
      'an expired certificate of the proxy',
      () => certificateOf(proxies, 'front', { now: Date.now() - 2 * hourMs }),
      401,
    ],
  ] as [string, () => Promise<Credential>, unknown][])('not from %s', async (_name, make, who) => {
    expect(await whoIs(await make(), claim)).toEqual(who)
  })

  test.each([
    ['a proxy that names nobody', {}],
    ['a proxy that names an empty user', { 'X-Remote-User': '' }],
    ['a user named twice', { 'X-Remote-User': ['ann', 'root'] }],
    ['only a group', { 'X-Remote-Group': masters }],
  ])('%s is 401', async (_name, headers) => {
    expect(await whoIs(await certificateOf(proxies, 'front'), headers)).toBe(401)
  })

  test.each([
    ['a name', { X_Remote_User: 'root' }],
    ['a name, with dots,', { 'X-Remote.User': 'root' }],
    ['a group', { 'X-Remote-User': 'ann', X_Remote_Group: masters }],
  ])('%s in another spelling is rejected', async (_what, headers) => {
    expect(await whoIs(await certificateOf(proxies, 'front'), headers)).toBe(400)
  })
})

describe('a token file that changes [GND-R73]', () => {
  test('is read again, and a broken one leaves what was known', async () => {
    expect(await whoIs({ token: 'second' })).toBe(401)
    let from = server.logLength
    await writeFile(tokenFile, `second,sue,2\n${goodToken},tom,u-1,"readers,writers"\n`)
    await server.logged('token file reloaded', from)
    expect(await whoIs({ token: 'second' })).toMatchObject({ username: 'sue' })

    from = server.logLength
    await writeFile(tokenFile, `only-two-columns,sue\n`)
    const said = await server.logged('keeping the tokens known before', from)
    expect(said).toContain('line 1')
    expect(said).not.toContain('only-two-columns')
    expect(await whoIs({ token: 'second' })).toMatchObject({ username: 'sue' })

    from = server.logLength
    await writeFile(tokenFile, `${goodToken},tom,u-1,"readers,writers"\n`)
    await server.logged('token file reloaded', from)
    expect(await whoIs({ token: 'second' })).toBe(401)
    expect(await whoIs({ token: goodToken })).toEqual(tom)
  })
})

describe('a CA file of clients that changes [GND-R72]', () => {
  test('decides anew about certificates, open connections too; a broken one changes nothing', async () => {
    const file = join(directory, 'clients.crt')
    await writeFile(file, outside.bundlePem)
    const own = await startInProcess({ flags: ['--client-ca-file', file] })
    const answers = async (...callers: HttpsCaller[]): Promise<number[]> =>
      Promise.all(callers.map(async (each) => (await each.post(reviewPath, review)).status))
    const former = own.as(await certificateOf(outside, 'former'))
    const latter = own.as(await certificateOf(proxies, 'latter'))
    expect(await answers(former, latter)).toEqual([201, 401])

    await writeFile(file, 'garbage')
    await own.logged('keeping the previous one')
    expect(await answers(former, latter)).toEqual([201, 401])

    await writeFile(file, proxies.bundlePem)
    await own.logged('CA file reloaded')
    expect(await answers(former, latter)).toEqual([401, 201])
    await own.close()
  })
})

describe('anonymous [GND-R74]', () => {
  test.each([
    ['/livez', 200],
    ['/readyz?verbose', 200],
    ['/version', 200],
    ['/api/v1/namespaces/kube-public/configmaps/cluster-info', 200],
    ['/api', 401],
    ['/metrics', 401],
    ['/openapi/v2', 401],
    ['/openapi/v3', 401],
    ['/api/v1/namespaces', 401],
    ['/api/v1/namespaces/kube-public/configmaps', 401],
    ['/livez/../api', 401],
    ['/livez%2f..%2fapi', 401],
    ['//livez', 401],
    ['/version/../api/v1/secrets', 401],
  ])('of %s gets %i', async (path, code) => {
    const answer = await server.as({}).get(path)
    // What could be read in two ways is refused before anybody is asked who they are.
    expect(code === 401 ? [400, 401] : [code]).toContain(answer.status)
  })

  test('can be off wholly', async () => {
    const closed = await startInProcess({ flags: ['--anonymous-auth=false'] })
    for (const path of ['/livez', '/version', '/api'])
      expect((await closed.as({}).get(path)).status).toBe(401)
    expect((await (await closed.admin()).get('/version')).status).toBe(200)
    await closed.close()
  })
})

describe('impersonation [GND-R76]', () => {
  const bindings = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles'

  beforeAll(async () => {
    const admin = await server.admin()
    const rules = [
      { apiGroups: [''], resources: ['users'], verbs: ['impersonate'], resourceNames: ['ann'] },
      {
        apiGroups: [''],
        resources: ['groups'],
        verbs: ['impersonate'],
        resourceNames: ['readers'],
      },
    ]
    await admin.post(roles, { metadata: { name: 'as-ann' }, rules })
    await admin.post(bindings, {
      metadata: { name: 'as-ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'as-ann' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'actor' }],
    })
  })

  test('by user, uid, groups and extras changes who acts', async () => {
    const answer = await (await server.admin()).post(reviewPath, review, {
      'Impersonate-User': 'ann',
      'Impersonate-Uid': 'u-9',
      'Impersonate-Group': ['a', 'b'],
      'Impersonate-Extra-Scopes': 'one',
    })
    expect(answer.object['status']).toEqual({
      userInfo: {
        username: 'ann',
        uid: 'u-9',
        groups: ['a', 'b', 'system:authenticated'],
        extra: { scopes: ['one'] },
      },
    })
  })

  test('takes the rights of the impersonator away', async () => {
    const admin = await server.admin()
    const answer = await admin.get('/api/v1/secrets', { 'Impersonate-User': 'ann' })
    expect(answer.status).toBe(403)
    expect(answer.object['message']).toContain('User "ann" cannot list resource "secrets"')
  })

  test.each([
    ['user', { 'Impersonate-User': 'ann' }, 201],
    ['user and group', { 'Impersonate-User': 'ann', 'Impersonate-Group': 'readers' }, 201],
    ['another user', { 'Impersonate-User': 'bob' }, 403],
    ['another group', { 'Impersonate-User': 'ann', 'Impersonate-Group': masters }, 403],
    [
      'a group in the second place',
      { 'Impersonate-User': 'ann', 'Impersonate-Group': ['readers', masters] },
      403,
    ],
    ['a uid', { 'Impersonate-User': 'ann', 'Impersonate-Uid': '0' }, 403],
    ['an extra', { 'Impersonate-User': 'ann', 'Impersonate-Extra-scopes': 'all' }, 403],
    ['a group without a user', { 'Impersonate-Group': 'readers' }, 400],
  ])('needs the right to each item: %s', async (_name, headers, code) => {
    const actor = server.as(await server.issue('actor'))
    expect((await actor.post(reviewPath, review, headers)).status).toBe(code)
  })
})

describe('revocation [GND-R78]', () => {
  let count = 0
  let name: string
  beforeEach(() => {
    count += 1
    name = `user-${count}`
  })
  const path = '/api/v1/namespaces/default/configmaps'
  const watchPath = `${path}?watch=true&resourceVersion=0`
  const signal = AbortSignal.timeout(60_000)
  const revoke = (revocation: Revocation) => addRevocation(server.serving.view, revocation, signal)

  test('of a user cuts an open watch and refuses the next request, on the same connection too', async () => {
    const jane = server.as(await server.issue(name, ['readers']))
    expect((await jane.get(path)).status).toBe(200)
    const watch = await jane.watch(watchPath)
    await watch.next()
    await revoke({ type: 'user', value: name })
    expect(await watch.ended).toBe(false)
    expect((await jane.get(path)).status).toBe(401)
    expect((await server.as(await server.issue(name, ['readers'])).get(path)).status).toBe(401)
  })

  test('cuts a watch over HTTP/2 with an error, and other users keep theirs', async () => {
    const jane = server.as(await server.issue(name, ['readers']))
    const other = await server.as(await server.issue('other', ['readers'])).watch(watchPath)
    await other.next()
    const session = await jane.http2()
    const stream = session.request({ ':path': watchPath })
    await once(stream, 'data')
    const failed = once(stream, 'error')
    await revoke({ type: 'user', value: name })
    expect(String(await failed)).toContain('NGHTTP2_INTERNAL_ERROR')
    expect((await requestOn(session, { ':path': path })).status).toBe(401)
    const made = await (await server.admin()).post(path, { metadata: { name } })
    expect(made.status).toBe(201)
    expect(
      (await other.until((event) => event.object.metadata.name === name)).length,
    ).toBeGreaterThan(0)
    other.close()
  })

  test('of a serial refuses that certificate only', async () => {
    const lost = await server.issue(name, ['readers'])
    const kept = server.as(await server.issue(name, ['readers']))
    const thief = server.as(lost)
    const cut = await thief.watch(watchPath)
    const open = await kept.watch(watchPath)
    await Promise.all([cut.next(), open.next()])
    await revoke({ type: 'certificate', value: lost.serial })
    expect(await cut.ended).toBe(false)
    expect((await thief.get(path)).status).toBe(401)
    expect((await kept.get(path)).status).toBe(200)
    expect(open.response.destroyed).toBe(false)
    open.close()
  })

  test('of an impersonator cuts what they opened as somebody else', async () => {
    const actor = server.as(await server.issue(name, [masters]))
    const headers = { 'Impersonate-User': 'ann', 'Impersonate-Group': 'readers' }
    const watch = await actor.watch(watchPath, headers)
    await watch.next()
    await revoke({ type: 'user', value: name })
    expect(await watch.ended).toBe(false)
    expect((await actor.get(path, headers)).status).toBe(401)
  })

  test('of whoever is impersonated refuses that as well', async () => {
    const admin = await server.admin()
    const headers = { 'Impersonate-User': name, 'Impersonate-Group': 'readers' }
    const watch = await admin.watch(watchPath, headers)
    await watch.next()
    await revoke({ type: 'user', value: name })
    expect(await watch.ended).toBe(false)
    expect((await admin.get(path)).status).toBe(200)
  })

  test('of a user refuses their token', async () => {
    const sam = 'token-of-sam'
    const from = server.logLength
    await writeFile(tokenFile, `${goodToken},tom,u-1,"readers,writers"\n${sam},${name},3,readers\n`)
    await server.logged('token file reloaded', from)
    const caller = server.as({ token: sam })
    const watch = await caller.watch(watchPath)
    await watch.next()
    await revoke({ type: 'user', value: name })
    expect(await watch.ended).toBe(false)
    expect((await caller.get(path)).status).toBe(401)
  })
})
