import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { labCa, labLeaf } from '../../src/addon/token/token-lab.suite.ts'
import { addRevocation } from '../../src/authn/index.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { allOfProxy, outwardAddress, ServiceProxyLab } from '../support/service-proxy-lab.ts'

interface Seen {
  readonly url: string
  readonly raw: readonly string[]
}

/** All values of a header, whatever its spelling. */
const valuesOf = ({ raw }: Seen, name: string): string[] =>
  raw.flatMap((each, at) =>
    at % 2 === 0 && each.toLowerCase().replaceAll(/[_.]/g, '-') === name ? [raw[at + 1] ?? ''] : [],
  )

/** Header and claims of the one token that an add-on was sent. */
function tokenOf(seen: Seen): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [value = '', ...others] = valuesOf(seen, 'authorization')
  if (others.length > 0 || !value.startsWith('Bearer ')) throw new Error(`no token: ${value}`)
  const [header, claims] = value
    .slice(7)
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(String(Buffer.from(part, 'base64url'))))
  return { header, claims }
}

describe.skipIf(outwardAddress === undefined)('an add-on that learns its user', () => {
  let lab: ServiceProxyLab
  let ann: HttpsCaller
  const base = '/api/v1/namespaces/default/services/web/proxy'
  const always = '/api/v1/namespaces/default/services/always/proxy'
  const everything = allOfProxy('get', 'create', 'update', 'patch', 'delete')

  beforeAll(async () => {
    lab = await ServiceProxyLab.open()
    const backend = await lab.backend((request, response) => {
      response.setHeader('cache-control', 'public, max-age=60')
      response.end(JSON.stringify({ url: request.url, raw: request.rawHeaders }))
    })
    await lab.addon('web', backend)
    await lab.addon('always', backend, { annotations: { 'sallyport.dev/add-auth': 'true' } })
    await lab.addon('grouped', backend, {
      annotations: { 'sallyport.dev/add-auth': 'true', 'sallyport.dev/add-auth-groups': 'true' },
    })
    await lab.addon('proposal', backend, {
      annotations: { 'alpha.service-proxy.kubernetes.io/proxy-authentication': 'true' },
    })
    ann = await lab.user('ann', [everything])
  })
  afterAll(() => lab.close())

  const seenBy = async (who: HttpsCaller, path: string, headers = {}): Promise<Seen> => {
    const answer = await who.get(path, headers)
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`)
    return JSON.parse(answer.text)
  }

  test('is told nothing unless asked for [ADDON-R10]', async () => {
    const seen = await seenBy(ann, `${base}/`)
    expect(valuesOf(seen, 'authorization')).toEqual([])
  })

  test('gets a token with add-auth=true, as the proposal has it [ADDON-R12, ADDON-R17, ADDON-R18, ADDON-R20, ADDON-R21]', async () => {
    const seen = await seenBy(ann, `${base}/x?a=1&add-auth=true&b=%20`)
    const { header, claims } = tokenOf(seen)
    expect(seen.url).toBe('/x?a=1&b=%20')
    expect(header).toMatchObject({ typ: 'k8s-addon+jwt', alg: 'ES256' })
    expect(claims).toMatchObject({ sub: 'ann', aud: ['default/web'] })
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(60)
    expect(claims['groups']).toBeUndefined()
  })

  test('is shown the certificate of the API server, under the cluster CA [ADDON-R22]', async () => {
    const { header } = tokenOf(await seenBy(ann, `${base}/?add-auth=true`))
    const [leaf = ''] = header['x5c'] as string[]
    const certificate = new X509Certificate(Buffer.from(leaf, 'base64'))
    expect(certificate.subjectAltName).toContain('DNS:kubernetes.default.svc')
    expect(certificate.checkIssued(lab.server.serving.pki.clusterCa.certificate)).toBe(true)
  })

  test.each([
    ['add-auth=true', '/'],
    ['add-auth=true&x=y', '/?x=y'],
    ['x=y&add-auth=true', '/?x=y'],
    ['&&add-auth=true&=&;', '/?&&=&;'],
    ['x=add-auth=true&add-auth=true', '/?x=add-auth=true'],
    ['%zz&add-auth=true', '/?%zz'],
  ])('the other bytes of ?%s stay as they are [ADDON-R13]', async (query, url) => {
    expect((await seenBy(ann, `${base}/?${query}`)).url).toBe(url)
  })

  test.each([
    'add-auth',
    'add-auth=',
    'add-auth=1',
    'add-auth=TRUE',
    'add-auth=yes',
    'add-auth=false',
    'add-auth=true&add-auth=true',
    'add-auth=true&add-auth=false',
    'ADD-AUTH=true',
    'add-auth=true;x',
    'x;add-auth=true',
    'add%2Dauth=true',
    'add_auth=true',
    '%61dd-auth=true',
    'add-auth=%74rue',
  ])('?%s is a 400 and reaches nobody [ADDON-R12, ADDON-T56]', async (query) => {
    expect((await ann.get(`${base}/?${query}`)).status).toBe(400)
  })

  test('gets one by its annotation, whatever the URL says [ADDON-R14]', async () => {
    expect(tokenOf(await seenBy(ann, `${always}/x`)).claims).toMatchObject({
      aud: ['default/always'],
    })
    const proposal = '/api/v1/namespaces/default/services/proposal/proxy'
    expect(tokenOf(await seenBy(ann, `${proposal}/`)).claims).toMatchObject({ sub: 'ann' })
  })

  test('the requests of its page ask by a cookie that only they have [ADDON-R14]', async () => {
    const first = await ann.get(`${base}/?add-auth=true`)
    expect(first.headers['set-cookie']).toEqual([
      `sallyport-add-auth=true; Path=${base}/; HttpOnly; SameSite=Strict`,
    ])
    const seen = await seenBy(ann, `${base}/api`, { cookie: 'own=1; sallyport-add-auth=true; b=2' })
    expect(tokenOf(seen).claims).toMatchObject({ sub: 'ann' })
    expect(valuesOf(seen, 'cookie')).toEqual(['own=1; b=2'])
    const none = await seenBy(ann, `${base}/api`, { cookie: 'sallyport-add-auth=false; c=3' })
    expect([valuesOf(none, 'authorization'), valuesOf(none, 'cookie')]).toEqual([[], ['c=3']])
  })

  test('learns groups only if it asks for them', async () => {
    const grouped = '/api/v1/namespaces/default/services/grouped/proxy'
    expect(tokenOf(await seenBy(ann, `${grouped}/`)).claims['groups']).toEqual([
      'system:authenticated',
    ])
  })

  test.each(['/api/v1/namespaces/default/pods/web/proxy', '/api/v1/nodes/n/proxy'])(
    'is a Service: %s with add-auth is a 400',
    async (path) => {
      const admin = await lab.server.admin()
      expect((await admin.get(`${path}/?add-auth=true`)).status).toBe(400)
    },
  )

  test('is told who acts, not who impersonates', async () => {
    const admin = await lab.server.admin()
    const seen = await seenBy(admin, `${always}/`, {
      'impersonate-user': 'ann',
      'impersonate-group': 'g',
    })
    expect(tokenOf(seen).claims).toMatchObject({ sub: 'ann' })
    expect(valuesOf(seen, 'impersonate-user')).toEqual([])
  })

  test.each(['ann b\u00fcrger', 'https://idp.example#123', '\u540d\u524d \u{1F600}', 'a"b\\c'])(
    'is told the name %j as it is [ADDON-R19]',
    async (name) => {
      const who = lab.server.as(await lab.server.issue(name, ['system:masters']))
      expect(tokenOf(await seenBy(who, `${always}/`)).claims).toMatchObject({ sub: name })
    },
  )

  test('gets the same token again, and another user another one [ADDON-R16]', async () => {
    const bob = await lab.user('bob', [everything])
    const [first, second, other] = await Promise.all([
      seenBy(ann, `${always}/1`),
      seenBy(ann, `${always}/2`),
      seenBy(bob, `${always}/3`),
    ])
    expect(valuesOf(first, 'authorization')).toEqual(valuesOf(second, 'authorization'))
    expect(tokenOf(other).claims).toMatchObject({ sub: 'bob' })
  })

  const forged = [
    'Authentication',
    'X-Authenticated-User',
    'X_Authenticated_User',
    'x-authenticated_user',
    'X.Authenticated.User',
    'X-Authorized-User',
    'X-Remote-User',
    'X-Remote-Group',
    'X-Remote-Extra-Foo',
    'X-Forwarded-User',
    'X-Forwarded-Email',
    'Remote-User',
    'Cf-Access-Jwt-Assertion',
    'x-goog-iap-jwt-assertion',
    'X-Goog-Authenticated-User-Email',
    'X-Amzn-Oidc-Data',
    'X-Pomerium-Jwt-Assertion',
  ]

  test.each(forged)('never sees %s of a client [ADDON-R34, ADDON-T3, ADDON-T13]', async (name) => {
    const seen = await seenBy(ann, `${always}/`, { [name]: 'forged' })
    expect(JSON.stringify(seen)).not.toContain('forged')
    expect(tokenOf(seen).claims).toMatchObject({ sub: 'ann' })
  })

  test.each<Record<string, string>>([
    { X_Remote_User: 'forged' },
    { connection: 'Authorization' },
    { connection: 'close, authorization, X-Forwarded-Uri' },
  ])('is not reached with %j, which is rejected [ADDON-T3, ADDON-T6]', async (headers) => {
    expect((await ann.get(`${always}/`, headers)).status).toBe(400)
  })

  test.each(['close, X-Forwarded-Uri', 'X-Authenticated-User'])(
    'Connection: %s takes nothing of ours away [ADDON-T5]',
    async (connection) => {
      const seen = await seenBy(ann, `${always}/`, { connection })
      expect(tokenOf(seen).claims).toMatchObject({ sub: 'ann' })
      expect(valuesOf(seen, 'x-forwarded-uri')).toEqual([`${always}/`])
    },
  )

  test("never gets the user's own credential, and its token is none here [ADDON-R2, ADDON-T30]", async () => {
    const seen = await seenBy(ann, `${always}/`)
    const [authorization = ''] = valuesOf(seen, 'authorization')
    const stranger = lab.server.as({ token: authorization.slice(7) })
    for (const path of ['/api/v1/namespaces', `${always}/`, '/version'])
      expect([path, (await stranger.get(path)).status]).toEqual([path, 401])
  })

  test('its answers are for this user and no cache [ADDON-T59]', async () => {
    const { headers } = await ann.get(`${always}/`)
    expect(headers['cache-control']).toBe('private, max-age=60')
    expect(headers['vary']).toContain('Authorization, Cookie')
  })

  test('is not reached by a revoked user though a token is cached [ADDON-R15, ADDON-R28, ADDON-T51]', async () => {
    const eve = await lab.user('eve', [everything])
    await seenBy(eve, `${always}/`)
    const { view } = lab.server.serving
    await addRevocation(view, { type: 'user', value: 'eve' }, AbortSignal.timeout(5_000))
    expect((await eve.get(`${always}/`)).status).toBe(401)
  })

  test('is not reached by who lost the right though a token is cached [ADDON-R15]', async () => {
    const dan = await lab.user('dan', [everything])
    await seenBy(dan, `${always}/`)
    const admin = await lab.server.admin()
    await admin.delete('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/dan')
    const answer = await dan.get(`${always}/`)
    expect(answer.status).toBe(403)
  })
})

describe.skipIf(outwardAddress === undefined)('with a dedicated key', () => {
  test('tokens name a key that is published at its own path [ADDON-R22, ADDON-P9]', async () => {
    const lab = await ServiceProxyLab.open(['--addon-token-key', 'dedicated'])
    try {
      const backend = await lab.backend((request, response) =>
        response.end(JSON.stringify({ url: request.url, raw: request.rawHeaders })),
      )
      const path = await lab.addon('web', backend)
      const admin = await lab.server.admin()
      const seen: Seen = JSON.parse((await admin.get(`${path}/?add-auth=true`)).text)
      const { header } = tokenOf(seen)
      expect(header['x5c']).toBeUndefined()
      const keys = await admin.get('/addon/v1/jwks')
      expect(keys.status).toBe(200)
      expect(keys.text).toContain(String(header['kid']))
      const by = (user: string) => admin.get('/addon/v1/jwks', { 'Impersonate-User': user })
      expect((await by('system:serviceaccount:default:guard')).status).toBe(200)
      expect((await by('ann')).status).toBe(403)
    } finally {
      await lab.close()
    }
  })
})

test('a serving certificate that no guard would believe is warned of', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-serving-'))
  const [cert, key] = [join(directory, 'tls.crt'), join(directory, 'tls.key')]
  const times = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 }
  const leaf = await labLeaf(await labCa(), times)
  await writeFile(cert, leaf.certificate.toString())
  await writeFile(key, leaf.key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  const tls = ['--tls-cert-file', cert, '--tls-private-key-file', key]
  const warning = 'guards will reject the users of add-ons'
  try {
    for (const [flags, isWarned] of [
      [tls, true],
      [[...tls, '--addon-token-key', 'dedicated'], false],
      [[], false],
    ] as const) {
      const lab = await ServiceProxyLab.open(flags)
      expect([flags, lab.server.log.includes(warning)]).toEqual([flags, isWarned])
      await lab.close()
    }
  } finally {
    await rm(directory, { recursive: true })
  }
})
