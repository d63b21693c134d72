import { createPublicKey, verify } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import type { Feature } from '../../src/apiserver/index.ts'
import { eventually } from '../support/eventually.ts'
import { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const discovery = '/.well-known/openid-configuration'
const jwks = '/openid/v1/jwks'
const accounts = '/api/v1/namespaces/default/serviceaccounts'
const tokenOf = (text: string): string => JSON.parse(text).status.token
const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

async function newToken(admin: HttpsCaller, spec: object = {}, name = 'bot'): Promise<string> {
  await admin.post(accounts, { metadata: { name } })
  const answer = await admin.post(`${accounts}/${name}/token`, { spec })
  expect(answer.status).toBe(201)
  return tokenOf(answer.text)
}

/** The issuer that a client is told of when it knows the server by this name. */
const issuerAt = async (caller: HttpsCaller, host: string): Promise<unknown> =>
  JSON.parse((await caller.get(discovery, { host })).text).issuer

/** As a stranger would: with the key of the set that the token names, and no code of ours. */
function isVerifiedBy(token: string, keySet: string): boolean {
  const [header = '', payload, signature = ''] = token.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
  const { keys } = JSON.parse(keySet) as { keys: { kid: string }[] }
  const found = keys.find((key) => key.kid === kid)
  if (!found) return false
  const key = createPublicKey({ key: found, format: 'jwk' })
  return verify(
    'sha256',
    Buffer.from(`${header}.${payload}`),
    key,
    Buffer.from(signature, 'base64url'),
  )
}

describe('the documents of an issuer', () => {
  let server: InProcessServer
  let admin: HttpsCaller
  let workload: HttpsCaller
  let token = ''
  beforeAll(async () => {
    server = await startInProcess()
    admin = await server.admin()
    token = await newToken(admin)
    workload = server.as({ token })
  })
  afterAll(() => server.close())

  test('verify a real token, found by discovery over HTTPS [ISS-R1, ISS-R4, ISS-R20, ISS-R30]', async () => {
    const document = (await workload.get(discovery)).object as never as Record<string, string>
    expect(document['issuer']).toBe(claimsOf(token).iss)
    const path = document['jwks_uri']?.slice(`https://127.0.0.1:${server.port}`.length) ?? ''
    expect(path).toBe(jwks)
    expect(isVerifiedBy(token, (await workload.get(path)).text)).toBe(true)
    expect(isVerifiedBy(token.replace('.', '.x'), (await workload.get(path)).text)).toBe(false)
  })

  test.each([
    [discovery, 'application/json'],
    [jwks, 'application/jwk-set+json'],
  ])('%s can be cached and mirrored [ISS-R27, ISS-R30, ISS-K12]', async (path, contentType) => {
    const answer = await workload.get(path)
    const etag = answer.headers.etag ?? ''
    const headers = {
      'content-type': contentType,
      'cache-control': 'public, max-age=3600',
      etag: expect.stringMatching(/^"[\w-]{27}"$/),
      'content-length': String(answer.text.length),
    }
    expect(answer.headers).toMatchObject(headers)
    const slash = await workload.get(`${path}/`)
    expect([slash.text, slash.headers.etag]).toEqual([answer.text, etag])
    const head = await workload.request(path, { method: 'HEAD' })
    expect([head.status, head.text, head.headers.etag]).toEqual([200, '', etag])
    const known = await workload.get(path, { 'if-none-match': `W/"other", ${etag}` })
    expect([known.status, known.text]).toEqual([304, ''])
    expect((await workload.get(path, { 'if-none-match': '"other"' })).status).toBe(200)
    expect((await workload.get(`${path}?a=b`)).text).toBe(answer.text)
  })

  test('are for service accounts only, and for reading only [ISS-R15, ISS-R18]', async () => {
    const status = async (who: HttpsCaller, method = 'GET') =>
      Promise.all(
        [discovery, jwks, `${jwks}/`].map(
          async (path) => (await who.request(path, { method })).status,
        ),
      )
    const jane = server.as(await server.issue('jane', ['people']))
    const elsewhere = server.as({ token: await newToken(admin, { audiences: ['vault'] }) })
    expect({
      stranger: await status(server.as({})),
      wrong: await status(server.as({ token: `${token}x` })),
      elsewhere: await status(elsewhere),
      jane: await status(jane),
      workload: await status(workload),
      writing: await status(workload, 'DELETE'),
      admin: await status(admin, 'DELETE'),
    }).toEqual({
      stranger: [401, 401, 401],
      wrong: [401, 401, 401],
      elsewhere: [401, 401, 401],
      jane: [403, 403, 403],
      workload: [200, 200, 200],
      writing: [403, 403, 403],
      admin: [405, 405, 405],
    })
  })

  test("have Kubernetes' role and binding [ISS-R16, ISS-R17]", async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const name = 'system:service-account-issuer-discovery'
    const role = (await admin.get(`${rbac}/clusterroles/${name}`)).object
    const paths = [discovery, `${discovery}/`, jwks, `${jwks}/`]
    expect(role['rules']).toEqual([
      { verbs: ['get'], nonResourceURLs: expect.arrayContaining(paths) },
    ])
    const binding = (await admin.get(`${rbac}/clusterrolebindings/${name}`)).object
    expect(binding['subjects']).toMatchObject([{ kind: 'Group', name: 'system:serviceaccounts' }])
  })

  test('API discovery shows where tokens are asked for', async () => {
    expect((await admin.get('/api/v1')).text).toContain('"serviceaccounts/token"')
  })

  test('uses of tokens are counted', async () => {
    await workload.get('/version')
    const { text } = await admin.get('/metrics')
    expect(text).toMatch(/^serviceaccount_valid_tokens_total [1-9]/m)
    expect(text).toMatch(/^serviceaccount_stale_tokens_total 0/m)
  })

  test('a token dies with its account at once [ISS-K8]', async () => {
    const mortal = server.as({ token: await newToken(admin, {}, 'mortal') })
    expect((await mortal.get(jwks)).status).toBe(200)
    await admin.delete(`${accounts}/mortal`)
    expect((await mortal.get(jwks)).status).toBe(401)
  })
})

describe('a node and the tokens of its Pods [ISS-K7]', () => {
  let server: InProcessServer
  beforeAll(async () => {
    server = await startInProcess()
  })
  afterAll(() => server.close())

  test('gets those of Pods that it runs, and no others', async () => {
    const admin = await server.admin()
    await admin.post(accounts, { metadata: { name: 'bot' } })
    await admin.post(accounts, { metadata: { name: 'idle' } })
    const pod = await admin.post('/api/v1/namespaces/default/pods', {
      metadata: { name: 'web' },
      spec: {
        serviceAccountName: 'bot',
        nodeName: 'mine',
        containers: [{ name: 'main', image: 'x' }],
        volumes: [
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
        ],
      },
    })
    const { uid } = pod.object.metadata
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'web', uid }
    const ask = async (node: string, account: string, spec: object) => {
      const caller = server.as(await server.issue(`system:node:${node}`, ['system:nodes']))
      return (await caller.post(`${accounts}/${account}/token`, { spec })).status
    }
    expect({
      own: await ask('mine', 'bot', { boundObjectRef }),
      unbound: await ask('mine', 'bot', {}),
      idle: await ask('mine', 'idle', { boundObjectRef }),
      other: await ask('other', 'bot', { boundObjectRef }),
      vault: await ask('mine', 'bot', { boundObjectRef, audiences: ['vault'] }),
    }).toEqual({ own: 201, unbound: 403, idle: 403, other: 403, vault: 403 })

    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const verbs = ['request-serviceaccounts-token-audience']
    const rules = [{ verbs, apiGroups: [''], resources: ['vault'], resourceNames: ['bot'] }]
    await admin.post(`${rbac}/clusterroles`, { metadata: { name: 'vault-tokens' }, rules })
    await admin.post(`${rbac}/clusterrolebindings`, {
      metadata: { name: 'vault-tokens' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'vault-tokens' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
    })
    await eventually('the grant is seen', async () => {
      const status = await ask('mine', 'bot', { boundObjectRef, audiences: ['vault'] })
      return status === 201
    })
    expect(await ask('mine', 'bot', { boundObjectRef, audiences: ['bank'] })).toBe(403)
  })
})

describe('a server that starts again', () => {
  let directory = ''
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sallyport-issuer-'))
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  async function during<T>(
    flags: readonly string[],
    work: (server: InProcessServer) => Promise<T>,
  ) {
    const server = await startInProcess({ dataDirectory: directory, flags })
    try {
      return await work(server)
    } finally {
      await server.halt()
    }
  }
  let token = ''
  let issuer = ''

  test('keeps the issuer of its first start, whatever its port [ISS-R12]', async () => {
    token = await during([], async (server) => newToken(await server.admin()))
    issuer = claimsOf(token).iss
    const later = await during([], async (server) => ({
      issuer: claimsOf(await newToken(await server.admin())).iss,
      status: (await server.as({ token }).get(jwks)).status,
    }))
    expect(later).toEqual({ issuer, status: 200 })
  })

  test('believes its tokens from its first answer on, and has no false word on its documents [ISS-R12]', async () => {
    const early: { documents?: number; api?: number } = {}
    // Asks as soon as the port is open, before the issuer is told so.
    const hasty: Feature = {
      name: 'hasty',
      open: async ({ pki }) => ({
        start: async ({ location }) => {
          const target = { port: location.port, ca: pki.clusterCa.bundlePem }
          const caller = new HttpsCaller(target, { token })
          early.api = (await caller.get('/api')).status
          early.documents = (await caller.get(jwks)).status
          caller.close()
        },
      }),
    }
    const server = await startInProcess({
      dataDirectory: directory,
      features: [hasty, ...allFeatures],
    })
    await server.halt()
    expect(early).toEqual({ api: 200, documents: 503 })
  })

  test('signs by the first issuer that it is given, accepts all, and describes each to those who ask its host [ISS-R10, ISS-K12]', async () => {
    const given = ['https://tokens.example', issuer]
    const flags = given.flatMap((each) => ['--service-account-issuer', each])
    const found = await during(flags, async (server) => {
      const admin = await server.admin()
      const fresh = await newToken(admin)
      return {
        issuer: claimsOf(fresh).iss,
        audiences: claimsOf(fresh).aud,
        document: JSON.parse((await admin.get(discovery)).text).issuer,
        old: (await server.as({ token }).get(jwks)).status,
        underItsOwnHost: await issuerAt(admin, new URL(issuer).host),
        underAnyHost: await issuerAt(admin, 'localhost'),
      }
    })
    expect(found).toEqual({
      underItsOwnHost: issuer,
      underAnyHost: 'https://tokens.example',
      issuer: 'https://tokens.example',
      audiences: given,
      document: 'https://tokens.example',
      old: 200,
    })
    const alone = ['--service-account-issuer', 'https://tokens.example']
    expect(
      await during(alone, async (server) => (await server.as({ token }).get(jwks)).status),
    ).toBe(401)
  })

  test('says so when its issuer has changed, and how to go on with the old one [ISS-R10]', async () => {
    const told = (...given: string[]) =>
      during(
        given.flatMap((each) => ['--service-account-issuer', each]),
        async ({ log }) =>
          /tokens of the previous one.*?--service-account-issuer [^\s"]+ --service-account-issuer ([^\s"]+)"/.exec(
            log,
          )?.[1],
      )
    expect(await told('https://one.example')).toBe('https://tokens.example')
    expect(await told('https://one.example')).toBeUndefined()
    expect(await told('https://two.example', 'https://one.example')).toBeUndefined()
    expect(await told()).toBe('https://two.example')
  })

  test('says so when the key set of an issuer elsewhere is at this server [ISS-R11]', async () => {
    const told = (...flags: string[]) =>
      during(flags, async ({ log }) => log.includes('set --service-account-jwks-uri'))
    const issuer = ['--service-account-issuer', 'https://tokens.example']
    const uri = ['--service-account-jwks-uri', 'https://tokens.example/openid/v1/jwks']
    expect([await told(), await told(...issuer), await told(...issuer, ...uri)]).toEqual([
      false,
      true,
      false,
    ])
  })

  test('issues tokens of an issuer that nobody can discover, without documents [ISS-K13]', async () => {
    const found = await during(['--service-account-issuer', 'api'], async (server) => {
      const admin = await server.admin()
      const fresh = await newToken(admin)
      const workload = server.as({ token: fresh })
      return {
        issuer: claimsOf(fresh).iss,
        api: (await workload.get('/api')).status,
        documents: [(await admin.get(discovery)).status, (await admin.get(jwks)).status],
      }
    })
    expect(found).toEqual({ issuer: 'api', api: 200, documents: [404, 404] })
  })

  test('names another place of the key set if told to [ISS-R11]', async () => {
    const flags = ['--service-account-jwks-uri', 'https://cdn.example/keys']
    const document = await during(
      flags,
      async (server) => (await (await server.admin()).get(discovery)).text,
    )
    expect(JSON.parse(document).jwks_uri).toBe('https://cdn.example/keys')
  })

  test('opens its documents to everybody by one switch, and closes them again [ISS-R18]', async () => {
    const asked = async (server: InProcessServer) => {
      const stranger = server.as({})
      const jane = server.as(await server.issue('jane'))
      const asks = ['GET', 'HEAD'].flatMap((method) =>
        [discovery, `${jwks}/`].map((path) => ({ method, path })),
      )
      return Promise.all(
        [stranger, jane].map((who) =>
          Promise.all(
            asks.map(async ({ method, path }) => (await who.request(path, { method })).status),
          ),
        ),
      )
    }
    const all = (status: number) => [status, status, status, status]
    const open = await during(['--service-account-issuer-public'], asked)
    expect(open).toEqual([all(200), all(200)])
    expect(await during([], asked)).toEqual([all(401), all(403)])
  })

  test.each([
    [['--service-account-issuer='], 'must not be empty'],
    [['--service-account-issuer=https://'], 'must be a URL'],
    [['--service-account-issuer=a', '--service-account-issuer=a'], 'the same issuer twice'],
    [['--service-account-jwks-uri=http://a'], 'must be an https URL'],
    [['--service-account-key-file=/k'], 'needs --service-account-signing-key-file'],
    [['--service-account-signing-key-file=/none'], 'cannot read /none: ENOENT'],
    [['--service-account-issuer-public', '--no-anonymous-auth'], 'needs --anonymous-auth'],
    [['--service-account-max-token-expiration=59m'], 'from an hour'],
    [['--service-account-key-rotation-period=1h'], 'must be a day or more'],
    [
      ['--service-account-key-rotation-period=48h', '--service-account-signing-key-file=/k'],
      'needs keys that are kept in the cluster',
    ],
  ])('%j is refused [ISS-R11, ISS-R14]', async (flags, why) => {
    await expect(during(flags, async () => {})).rejects.toThrow(why)
  })

  test('writes down which credential was issued, and each of its uses [ISS-K11]', async () => {
    const found = await during([], async (server) => {
      const fresh = await newToken(await server.admin())
      await server.as({ token: fresh }).get(jwks)
      return claimsOf(fresh).jti
    })
    const lines = (await readFile(join(directory, 'audit.log'), 'utf8')).trimEnd().split('\n')
    const events = lines
      .map((line) => JSON.parse(line))
      .filter((event) => JSON.stringify(event).includes(found))
    expect(events).toMatchObject([
      {
        requestURI: `${accounts}/bot/token`,
        annotations: { 'authentication.kubernetes.io/issued-credential-id': `JTI=${found}` },
      },
      {
        requestURI: jwks,
        user: { extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${found}`] } },
      },
    ])
  })
})
