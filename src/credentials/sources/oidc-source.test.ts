import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { parseKubeconfig } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource } from '../credential.ts'
import { unverifiedClaims } from './explain.ts'
import { FakeIssuer, idToken } from './fake-issuer.suite.ts'
import { deferred, FakeClock, refusal401 } from './fake-plugin.suite.ts'
import { oidcSource } from './oidc-source.ts'
import { SourceRegistry } from './source-registry.ts'

const hour = 3_600_000
let issuer: FakeIssuer
let directory: string
let file: string
let clock: FakeClock
let registry: SourceRegistry

beforeAll(async () => {
  issuer = await FakeIssuer.start()
})
afterAll(() => issuer.stop())

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'oidc-'))
  file = join(directory, 'config')
  clock = new FakeClock()
  registry = new SourceRegistry()
  issuer.asked.length = 0
  issuer.refreshToken = 'refresh-0'
  issuer.discovery = {}
  issuer.answer = undefined
  issuer.gate = Promise.resolve()
  issuer.expiresAt = () => clock.now() + hour
})
afterEach(() => rm(directory, { recursive: true }))

/** Writes a kubeconfig with an id-token that lives for a time. */
async function putKubeconfig(lifetime: number, more = ''): Promise<void> {
  const ca = Buffer.from(issuer.caPem).toString('base64')
  await writeFile(
    file,
    `current-context: main
future: kept
users:
- name: jane
  user:
    auth-provider:
      name: oidc
      config: {idp-issuer-url: "${issuer.url}", client-id: me, idp-certificate-authority-data: ${ca},
        id-token: ${idToken(clock.now() + lifetime, 'old')}, refresh-token: refresh-0${more}}
`,
    { mode: 0o644 },
  )
}

async function open(): Promise<CredentialSource> {
  const config = await parseKubeconfig(await readFile(file, 'utf8'), file)
  const authProvider = config.users.get('jane')?.authProvider ?? { name: '' }
  const where = { cluster: { server: 'https://a' }, user: { name: 'jane', file } }
  return oidcSource(authProvider, where, { clock, registry, random: () => 0 })
}

const subject = async (credential: Promise<Credential | undefined>) =>
  unverifiedClaims((await credential)?.token?.reveal() ?? '')?.['sub']

const stored = async () => {
  const config = await parseKubeconfig(await readFile(file, 'utf8'), file)
  const { 'id-token': id, 'refresh-token': refresh } =
    config.users.get('jane')?.authProvider?.config ?? {}
  return [unverifiedClaims(id?.reveal() ?? '')?.['sub'], refresh?.reveal()]
}

describe('an id-token of the kubeconfig [CRED-K13]', () => {
  test('is used as long as it has more than ten seconds', async () => {
    await putKubeconfig(10_001)
    expect(await subject((await open()).current())).toBe('old')
    expect(issuer.asked).toEqual([])
  })

  test('is refreshed after that, once for all who wait, by all who read the file', async () => {
    await putKubeconfig(10_000)
    const sources = [await open(), await open()]
    const all = await Promise.all(
      [...sources, ...sources].map((source) => subject(source.current())),
    )
    expect(all).toEqual(['new-1', 'new-1', 'new-1', 'new-1'])
    expect(issuer.asked).toEqual([
      {
        form: { grant_type: 'refresh_token', refresh_token: 'refresh-0', client_id: 'me' },
        authorization: undefined,
      },
    ])
  })

  test('is refreshed in the background before it expires', async () => {
    await putKubeconfig(hour)
    const source = await open()
    await source.current()
    clock.advance(hour - 60_000)
    const rotated = new Promise<Credential>((resolve) => source.onRotate(resolve))
    expect(await subject(source.current())).toBe('old')
    expect(await subject(rotated)).toBe('new-1')
  })

  test('is replaced when the server refuses it', async () => {
    await putKubeconfig(hour)
    const source = await open()
    expect(await subject(source.renew(await source.current(), refusal401))).toBe('new-1')
  })
})

describe('new tokens [CRED-K13, CRED-S15]', () => {
  test('are in the file, for its owner alone, before they are used; nothing else is lost', async () => {
    await putKubeconfig(-1)
    await (await open()).current()
    expect(await stored()).toEqual(['new-1', 'refresh-1'])
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readFile(file, 'utf8')).toContain('future: kept')
    expect(await readdir(directory)).toEqual(['config'])
  })

  test('are not used if they cannot be kept', async () => {
    await putKubeconfig(-1)
    const source = await open()
    await rm(directory, { recursive: true })
    await writeFile(directory, '')
    await expect(source.current()).rejects.toMatchObject({ code: 'FILE' })
    expect(issuer.asked).toEqual([])
  })

  test('of another process are used instead of asking again', async () => {
    await putKubeconfig(hour)
    const [mine, theirs] = [await open(), ((registry = new SourceRegistry()), await open())]
    await mine.current()
    await theirs.current()
    clock.advance(hour)
    expect(await subject(theirs.current())).toBe('new-1')
    expect(await subject(mine.current())).toBe('new-1')
    expect(issuer.asked).toHaveLength(1)
    clock.advance(hour)
    expect(await subject(mine.current())).toBe('new-2')
    expect(issuer.asked[1]?.form['refresh_token']).toBe('refresh-1')
  })

  test('are waited for while another process holds the lock', async () => {
    await putKubeconfig(-1)
    const lock = `${file}.lock`
    await writeFile(lock, '')
    let looks = 0
    clock = new (class extends FakeClock {
      override monotonic(): number {
        looks++
        return super.monotonic()
      }
    })()
    const waiting = (await open()).current()
    while (looks < 8) await new Promise((resolve) => setImmediate(resolve))
    expect(issuer.asked).toEqual([])
    await rm(lock)
    expect(await subject(waiting)).toBe('new-1')
  })

  test('are given up when the lock stays, which is named', async () => {
    await putKubeconfig(-1)
    await writeFile(`${file}.lock`, '')
    const source = await open()
    const waiting = source.current()
    const moving = setInterval(() => clock.advance(2_000), 1)
    await expect(waiting).rejects.toMatchObject({
      code: 'FILE',
      hint: expect.stringContaining(`${file}.lock`),
    })
    clearInterval(moving)
    expect(issuer.asked).toEqual([])
  })

  test('are not written through a link, nor is the lock', async () => {
    await putKubeconfig(-1)
    const victim = join(directory, 'victim')
    await writeFile(victim, await readFile(file))
    await rm(file)
    await symlink(victim, file)
    const source = await open()
    await source.current()
    expect(await stored()).toEqual(['new-1', 'refresh-1'])
    expect(await readFile(victim, 'utf8')).toContain('refresh-0')
  })

  test('of a user without a file are kept in memory', async () => {
    const config = {
      'idp-issuer-url': new Secret(`${issuer.url}/`),
      'client-id': new Secret('me'),
      'idp-certificate-authority-data': new Secret(Buffer.from(issuer.caPem).toString('base64')),
      'refresh-token': new Secret('refresh-0'),
    }
    const where = { cluster: { server: 'https://a' }, user: { name: 'jane' } }
    const source = oidcSource({ name: 'oidc', config }, where, { clock, registry })
    expect(await subject(source.current())).toBe('new-1')
    clock.advance(hour)
    expect(await subject(source.current())).toBe('new-2')
  })
})

describe('the secret of a client', () => {
  test.each([
    ['goes into a header', {}, 'Basic bWU6cCUyRnc=', undefined],
    [
      'goes into the form where the issuer wants that',
      { token_endpoint_auth_methods_supported: ['client_secret_post'] },
      undefined,
      'p/w',
    ],
  ])('%s', async (_name, discovery, authorization, secret) => {
    await putKubeconfig(-1, ', client-secret: p/w')
    issuer.discovery = discovery
    await (await open()).current()
    expect(issuer.asked[0]?.authorization).toBe(authorization)
    expect(issuer.asked[0]?.form['client_secret']).toBe(secret)
  })
})

describe('there is no credential', () => {
  const answerWith = (status: number, body: string) => (response: ServerResponse) =>
    void response.writeHead(status).end(body)

  test.each<[string, string, () => void]>([
    [
      'when the refresh token is not good any more',
      'status 400 (invalid_grant)',
      () => {
        issuer.refreshToken = 'other'
      },
    ],
    [
      'when the answer has no id_token',
      'without an id_token',
      () => {
        issuer.answer = answerWith(200, '{"access_token":"s3cret"}')
      },
    ],
    [
      'when the answer is no JSON',
      'without an id_token',
      () => {
        issuer.answer = answerWith(200, 's3cret')
      },
    ],
    [
      'when the error is not a plain word',
      'status 500',
      () => {
        issuer.answer = answerWith(500, '{"error":"s3cret token \\u001b[31m"}')
      },
    ],
    [
      'when a redirect would carry it away',
      'status 302',
      () => {
        issuer.answer = (response) => void response.writeHead(302, { location: 'https://x' }).end()
      },
    ],
    [
      'when the document is that of another issuer',
      'another issuer',
      () => {
        issuer.discovery = { issuer: 'https://other' }
      },
    ],
    [
      'when the token endpoint is not protected',
      'no token_endpoint with https',
      () => {
        issuer.discovery = { token_endpoint: 'http://idp.example/token' }
      },
    ],
    [
      'when the answer is too large',
      'response is too large',
      () => {
        issuer.answer = answerWith(200, `{"id_token":"${'x'.repeat(2 * 1024 * 1024)}"}`)
      },
    ],
  ])('%s', async (_name, message, prepare) => {
    await putKubeconfig(-1)
    prepare()
    const failure: unknown = await (await open()).current().catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'PROVIDER', message: expect.stringContaining(message) })
    expect(JSON.stringify(failure)).not.toMatch(/s3cret|refresh-0/)
    expect(await stored()).toEqual(['old', 'refresh-0'])
    expect(await readdir(directory)).toEqual(['config'])
  })

  test('when the issuer is not trusted', async () => {
    await putKubeconfig(-1)
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace(/idp-certificate-authority-data: \S+,/, ''))
    await expect((await open()).current()).rejects.toMatchObject({ code: 'PROVIDER' })
    expect(issuer.asked).toEqual([])
  })

  test.each([
    ['idp-issuer-url', {}],
    ['client-id', { 'idp-issuer-url': new Secret('https://i') }],
    ['https', { 'idp-issuer-url': new Secret('http://i'), 'client-id': new Secret('c') }],
  ])('when %s is missing', (name, config) => {
    const where = { cluster: { server: 'https://a' }, user: { name: 'jane' } }
    expect(() => oidcSource({ name: 'oidc', config }, where, { clock })).toThrow(name)
  })

  test('when it has expired and there is nothing to refresh it with', async () => {
    await putKubeconfig(-1)
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace(', refresh-token: refresh-0', ''))
    await expect((await open()).current()).rejects.toThrow('no refresh-token')
  })

  test('after the source was disposed of, and the request ends', async () => {
    await putKubeconfig(-1)
    const gate = deferred<void>()
    issuer.gate = gate.promise
    const source = await open()
    const waiting = source.current()
    while (issuer.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
    registry.dispose()
    await expect(waiting).rejects.toMatchObject({ code: 'DISPOSED' })
    gate.resolve()
    expect(await readdir(directory)).toEqual(['config'])
  })
})
