import { createHmac } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type BootstrapToken,
  generateBootstrapToken,
  mintDiscoveryJwt,
  parseBootstrapToken,
  tokenSecret,
  tokenText,
  verifySignature,
} from '../../src/bootstrap/index.ts'
import { eventually } from '../support/eventually.ts'
import type { Answer, Credential } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
const tokenPath = '/api/v1/namespaces/kube-system/secrets'
const fileToken = 'csv001.0123456789abcdef'
const boss = parseBootstrapToken(fileToken)

let scratch = ''
let tokenFile = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-discovery-'))
  tokenFile = join(scratch, 'tokens.csv')
  await writeFile(tokenFile, `${fileToken},boss,u-1,system:masters\nopaque-token,plain,u-2\n`)
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

async function createToken(server: InProcessServer): Promise<BootstrapToken> {
  const token = generateBootstrapToken()
  const usages = new Set(['signing', 'authentication'] as const)
  const extraGroups = ['system:bootstrappers:kubeadm:default-node-token']
  const body = tokenSecret({ token, usages, extraGroups })
  await (await server.admin()).request(tokenPath, { method: 'POST', body })
  const jwt = () => mintDiscoveryJwt(token, Date.now())
  await eventually('known', async () => {
    const answer = await server.as({ token: jwt() }).get(infoPath)
    return answer.status === 200
  })
  return token
}

const isSigned = ({ headers }: Answer): boolean => headers['x-kubernetes-jws'] !== undefined

describe.each([
  ['on', ['--anonymous-auth=true'], 200],
  ['off', ['--anonymous-auth=false'], 401],
])('anonymous access %s', (_name, flags, anonymously) => {
  let server: InProcessServer
  let token: BootstrapToken
  beforeAll(async () => {
    server = await startInProcess({ flags: [...flags, '--token-auth-file', tokenFile] })
    token = await createToken(server)
  })
  afterAll(() => server.close())

  const jwtOf = (signer: BootstrapToken): Credential => ({
    token: mintDiscoveryJwt(signer, Date.now()),
  })

  test.each<[string, () => Credential | Promise<Credential>, number, boolean]>([
    ['no credential', () => ({}), anonymously, false],
    ['a signed request', () => jwtOf(token), 200, true],
    ['a request signed with a token of the file', () => jwtOf(boss), 200, true],
    ['the token itself', () => ({ token: tokenText(token).reveal() }), 200, false],
    ['a token of the file', () => ({ token: fileToken }), 200, false],
    ['an opaque token of the file', () => ({ token: 'opaque-token' }), 200, false],
    ['a certificate', () => server.issue('jane'), 200, false],
    [
      'a request signed with another secret',
      () => jwtOf(parseBootstrapToken(`${token.id}.0123456789abcdef`)),
      401,
      false,
    ],
    ['a request of an unknown token', () => jwtOf(generateBootstrapToken()), 401, false],
    ['an unknown token', () => ({ token: 'zzzzzz.0123456789abcdef' }), 401, false],
  ])(
    '[DISC-T5, DISC-S7, DISC-R41, DISC-R38, DISC-T11] %s',
    async (_case, credential, status, signed) => {
      const answer = await server.as(await credential()).get(infoPath)
      expect([answer.status, isSigned(answer)]).toEqual([status, signed])
    },
  )

  test('[DISC-R26] the double slash of the proposal is answered as well, and signed', async () => {
    const answer = await server.as(jwtOf(token)).get(`/${infoPath}?timeout=10s`)
    expect(answer.status).toBe(200)
    const signature = String(answer.headers['x-kubernetes-jws'])
    expect(() => verifySignature(signature, Buffer.from(answer.text), token)).not.toThrow()
    expect((await server.as({}).get(`/${infoPath}`)).status).toBe(anonymously)
    expect((await server.as(jwtOf(token)).get('//api/v1/namespaces')).status).toBe(400)
  })
})

describe('a request signed with a token', () => {
  let server: InProcessServer
  let token: BootstrapToken
  beforeAll(async () => {
    server = await startInProcess({
      flags: ['--token-auth-file', tokenFile, '--bootstrap-token-failures', '0'],
    })
    token = await createToken(server)
  })
  afterAll(() => server.close())

  const signedBy = (signer: BootstrapToken) =>
    server.as({ token: mintDiscoveryJwt(signer, Date.now()) })

  test.each([
    ['all Secrets', '/api/v1/secrets', {}],
    ['the namespaces', '/api/v1/namespaces', {}],
    ['cluster-info as somebody else', infoPath, { 'Impersonate-User': 'system:admin' }],
  ])(
    '[DISC-R38, DISC-S9] of an administrator in the token file does not read %s',
    async (_name, path, headers) => {
      expect((await server.as({ token: fileToken }).get('/api/v1/secrets')).status).toBe(200)
      expect((await signedBy(boss).get(path, headers)).status).toBe(403)
    },
  )

  test.each([
    ['alg none', { typ: 'JWT', alg: 'none' }],
    ['alg HS384', { typ: 'JWT', alg: 'HS384' }],
    ['alg RS256', { typ: 'JWT', alg: 'RS256' }],
    ['alg in small letters', { typ: 'JWT', alg: 'hs256' }],
    ['no alg', { typ: 'JWT' }],
    ['no typ', { alg: 'HS256' }],
    ['another typ', { typ: 'at+jwt', alg: 'HS256' }],
    ['another kid', { typ: 'JWT', alg: 'HS256', kid: 'zzzzzz' }],
    ['no kid', { typ: 'JWT', alg: 'HS256', kid: undefined }],
    ['a critical extension', { typ: 'JWT', alg: 'HS256', crit: ['b64'], b64: true }],
  ])('[DISC-R31, DISC-T2] with %s is 401', async (_name, fields) => {
    const header = JSON.stringify({ kid: token.id, ...fields })
    const [, payload = ''] = mintDiscoveryJwt(token, Date.now()).split('.')
    const input = `${Buffer.from(header).toString('base64url')}.${payload}`
    const mac = createHmac('sha256', token.secret.reveal()).update(input).digest('base64url')
    const answer = await server.as({ token: `${input}.${mac}` }).get(infoPath)
    expect([answer.status, isSigned(answer)]).toEqual([401, false])
  })

  test('[DISC-R42] is answered without a signature where there is no body to sign', async () => {
    const answer = await signedBy(token).request(infoPath, { method: 'HEAD' })
    expect([answer.status, isSigned(answer), answer.text]).toEqual([405, false, ''])
  })

  test('[DISC-R42] is told that the answer is for nobody else', async () => {
    const { headers } = await signedBy(token).get(infoPath)
    expect([headers['cache-control'], headers['vary']]).toEqual([
      'no-store',
      expect.stringContaining('Authorization'),
    ])
  })

  test('[DISC-R35] is refused if it is for another cluster', async () => {
    const { uid = '' } = (await (await server.admin()).get('/api/v1/namespaces/kube-system')).object
      .metadata
    const statuses = ['another', uid].map(async (cluster) => {
      const jwt = mintDiscoveryJwt(token, Date.now(), cluster)
      return (await server.as({ token: jwt }).get(infoPath)).status
    })
    expect(await Promise.all(statuses)).toEqual([401, 200])
  })

  test('[DISC-S9] is nobody to whom a TokenReview is shown it', async () => {
    const review = async (shown: string) => {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token: shown },
      }
      const path = '/apis/authentication.k8s.io/v1/tokenreviews'
      const answer = await (await server.admin()).request(path, { method: 'POST', body })
      return (answer.object['status'] as { authenticated?: boolean }).authenticated
    }
    expect(await review(tokenText(token).reveal())).toBe(true)
    expect(await review(mintDiscoveryJwt(token, Date.now()))).toBeUndefined()
  })

  test('[DISC-S13, SEC-R2103] gets the same answer whether its token is unknown, wrong, expired or for something else', async () => {
    const wrong = parseBootstrapToken(`${token.id}.0123456789abcdef`)
    const other = generateBootstrapToken()
    const expired = generateBootstrapToken()
    const stored = { usages: new Set(['signing'] as const), extraGroups: [] }
    for (const body of [
      tokenSecret({ ...stored, token: other }),
      tokenSecret({ ...stored, token: expired, expiresAt: Date.now() - 1 }),
    ])
      await (await server.admin()).request(tokenPath, { method: 'POST', body })
    const answers = [generateBootstrapToken(), wrong, other, expired].flatMap((signer) => [
      signedBy(signer).get(infoPath),
      server.as({ token: tokenText(signer).reveal() }).get(infoPath),
    ])
    const bodies = (await Promise.all(answers)).map(({ status, text }) => `${status} ${text}`)
    expect(new Set(bodies).size).toBe(1)
    expect(bodies[0]).toMatch(/^401 .*"Unauthorized"/)
  })

  test('[DISC-T6] is refused as soon as its token is deleted, and its signature is gone within a second', async () => {
    const dying = await createToken(server)
    await eventually('signed', async () =>
      (await server.as({}).get(infoPath)).text.includes(`jws-kubeconfig-${dying.id}`),
    )
    const path = `${tokenPath}/bootstrap-token-${dying.id}`
    await (await server.admin()).request(path, { method: 'DELETE' })
    expect((await signedBy(dying).get(infoPath)).status).toBe(401)
    const isGone = async () => !(await server.as({}).get(infoPath)).text.includes(dying.id)
    await eventually('gone', isGone, 1_000)
  })
})

test('[DISC-S13, SEC-R2101, SEC-R2102] failures get 429 at last, and a right token at the same address is accepted', async () => {
  const server = await startInProcess({ flags: ['--bootstrap-token-failures', '3'] })
  const token = await createToken(server)
  const wrong = parseBootstrapToken(`${token.id}.0123456789abcdef`)
  const failed: number[] = []
  let last: string | undefined
  for (const shown of [tokenText(wrong).reveal(), mintDiscoveryJwt(wrong, Date.now())])
    for (let round = 0; round < 3; round++) {
      const answer = await server.as({ token: shown }).get(infoPath)
      failed.push(answer.status)
      last = String(answer.headers['retry-after'])
    }
  const right = [tokenText(token).reveal(), mintDiscoveryJwt(token, Date.now())]
  const accepted = await Promise.all(
    right.map(async (shown) => (await server.as({ token: shown }).get(infoPath)).status),
  )
  await server.close()
  expect([failed, last, accepted]).toEqual([[401, 401, 401, 429, 429, 429], '60', [200, 200]])
})
