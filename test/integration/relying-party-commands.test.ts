import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { allFeatures } from '../../src/apiserver/features/index.ts'
import { startTestIssuer, type TestIssuer } from '../../src/testing/index.ts'
import { buildOnce } from '../build-once.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { runSallyport } from '../support/sallyport-process.ts'

let scratch = ''
let issuer: TestIssuer
let ca = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'relying-party-'))
  issuer = await startTestIssuer({ algorithm: 'ES256' })
  ca = join(scratch, 'ca.crt')
  await writeFile(ca, issuer.caPem ?? '')
})
afterAll(async () => {
  await issuer.stop()
  await rm(scratch, { recursive: true, force: true })
})

const rowsOf = (stdout: string): Record<string, string> =>
  Object.fromEntries(
    stdout
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {3,}/))
      .map(([check = '', outcome = '']) => [check, outcome]),
  )

describe('issuer verify [ISS-P4]', () => {
  const verify = (...args: string[]) => runInProcess(['issuer', 'verify', ...args])
  const trusting = () => ['--issuer', issuer.issuer, '--certificate-authority', ca]

  test('explains every check of a good token', async () => {
    const token = issuer.serviceAccountToken({
      namespace: 'shop',
      name: 'bot',
      audience: 'vault',
      pod: 'web',
    })
    const { code, stdout, stderr } = await verify(token, ...trusting(), '--audience', 'vault')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^CHECK +OUTCOME +DETAIL\n/)
    expect(rowsOf(stdout)).toMatchObject({
      form: 'passed',
      purpose: 'passed',
      issuer: 'passed',
      keys: 'passed',
      key: 'passed',
      signature: 'passed',
      claims: 'passed',
      audience: 'passed',
      times: 'passed',
      'service account': 'passed',
      'still alive': 'unknown',
    })
    expect(stdout).toContain('shop/bot (uid uid-of-the-account), bound to Pod web')
    expect(stdout).not.toContain(token)
  })

  test('says what was not demanded, and so not proven', async () => {
    const token = issuer.serviceAccountToken({ audience: 'vault' })
    const { code, stdout } = await verify(token, '--certificate-authority', ca)
    // Nobody but the token named the issuer, and it leads into a private network.
    expect(code).toBe(1)
    expect(rowsOf(stdout)).toMatchObject({
      keys: 'failed',
      signature: 'skipped',
      audience: 'passed',
      trust: 'unknown',
      recipient: 'unknown',
    })
    expect(stdout).toContain('private addresses must be allowed')
  })

  test.each<[string, () => string, Record<string, string>, string]>([
    [
      'for others',
      () => issuer.serviceAccountToken({ audience: 'bank' }),
      { audience: 'failed', signature: 'passed' },
      'the token has "bank", expected "vault"',
    ],
    [
      'that is dead and for others',
      () => issuer.serviceAccountToken({ audience: 'bank', claims: { exp: 1 } }),
      { audience: 'failed', times: 'failed', signature: 'passed' },
      'expected "vault"',
    ],
    [
      'with the signature of another',
      () => {
        const [one, other] = ['a', 'b'].map((name) =>
          issuer.serviceAccountToken({ audience: 'vault', name }).split('.'),
        )
        return [one?.[0], one?.[1], other?.[2]].join('.')
      },
      { key: 'passed', signature: 'failed', times: 'passed' },
      "the token's signature is invalid",
    ],
    [
      'of another',
      () => issuer.serviceAccountToken({ audience: 'vault', claims: { iss: 'https://x' } }),
      { issuer: 'failed', keys: 'skipped', audience: 'passed', times: 'passed' },
      'the token has "https://x", expected',
    ],
    [
      'that is junk',
      () => 'junk',
      { form: 'failed', signature: 'skipped', claims: 'skipped' },
      'has 1 parts',
    ],
  ])('a token %s is not accepted', async (_name, make, rows, words) => {
    const args = [...trusting(), '--audience', 'vault']
    const token = make()
    const { code, stdout, stderr } = await verify(token, ...args)
    expect(code).toBe(1)
    expect(rowsOf(stdout)).toMatchObject(rows)
    expect(stderr).toContain(words)
    const json = await verify(token, ...args, '--output', 'json')
    expect(JSON.parse(json.stdout)).toMatchObject({
      accepted: false,
      error: { code: 'TOKEN_NOT_ACCEPTED' },
      checks: expect.arrayContaining([expect.objectContaining({ outcome: 'failed' })]),
    })
  })

  // On a busy machine the build alone takes longer than a test may.
  beforeAll(() => buildOnce(), 120_000)

  test('reads the token from a file or from standard input', async () => {
    const token = issuer.serviceAccountToken({ audience: 'vault' })
    const file = join(scratch, 'token')
    await writeFile(file, `${token}\n`)
    const args = [...trusting(), '--audience', 'vault', '--output', 'json']
    const { code, stdout } = await verify('--token-file', file, ...args)
    expect([code, JSON.parse(stdout).accepted]).toEqual([0, true])
    const piped = await runSallyport(['issuer', 'verify', '-', ...args], { input: `${token}\n` })
    expect([piped.code, JSON.parse(piped.stdout).accepted]).toEqual([0, true])
  })

  test('reads no more of a file than a token can have', async () => {
    const { code, stderr } = await verify('--token-file', '/dev/zero', ...trusting())
    expect([code, stderr]).toEqual([1, expect.stringContaining('the token is not accepted')])
  })

  test.each([
    [[], 'give one of TOKEN'],
    [['a', '--token-file', 'b'], 'give one of TOKEN'],
    [['a.b.c', '--issuer', 'http://issuer.example'], '--issuer is not an https URL'],
  ])('%j is wrong usage', async (args, words) => {
    const { code, stderr } = await verify(...args)
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)])
  })

  test('an issuer that nobody can discover is told, whoever named it', async () => {
    const token = issuer.serviceAccountToken({ audience: 'vault', claims: { iss: 'api' } })
    const { code, stderr } = await verify(token)
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('nobody outside can discover the issuer that the token names'),
    ])
  })

  test('a CA file without a certificate is refused by name', async () => {
    const file = join(scratch, 'empty')
    await writeFile(file, '')
    const { code, stderr } = await verify(
      'a.b.c',
      '--certificate-authority',
      file,
      '--issuer',
      'https://x.example',
    )
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${file} is no CA file`)])
  })

  test('escape sequences of a token do not reach the terminal', async () => {
    const token = issuer.serviceAccountToken({
      audience: '\u001b[31m\u009b31m',
      name: 'a\u001b[2Jb',
    })
    const { stdout, stderr } = await verify(token, ...trusting(), '--audience', 'vault')
    expect(stdout + stderr).not.toMatch(/[\u001b\u009b]/)
  })
})

describe('with a cluster', () => {
  let server: InProcessServer
  let token = ''
  beforeAll(async () => {
    server = await startInProcess({ features: allFeatures })
    const admin = await server.admin()
    const accounts = '/api/v1/namespaces/default/serviceaccounts'
    await admin.post(accounts, { metadata: { name: 'bot' } })
    const made = await admin.post(`${accounts}/bot/token`, { spec: { audiences: ['vault'] } })
    token = JSON.parse(made.text).status.token
  })
  afterAll(() => server.close())

  test('issuer verify reads documents that are not public by its kubeconfig [ISS-P4]', async () => {
    const kubeconfig = server.serving.adminKubeconfig
    const args = ['issuer', 'verify', token, '--audience', 'vault', '--kubeconfig', kubeconfig]
    const { code, stdout } = await runInProcess(args)
    expect([code, rowsOf(stdout)['service account']]).toEqual([0, 'passed'])
  })

  test('a user who may not read them is told so, and by which role they may', async () => {
    const out = join(scratch, 'jane.kubeconfig')
    await runInProcess(['user', 'create', 'jane', '--out', out, '--data-dir', server.dataDirectory])
    const role = 'system:service-account-issuer-discovery'
    const verified = await runInProcess(['issuer', 'verify', token, '--kubeconfig', out])
    expect(verified.stderr).toContain('User "jane" cannot get path')
    expect(verified.stderr).toContain(role)
    const published = await runInProcess(['issuer', 'publish', '--out', scratch, '--from', out])
    expect(published.stderr).toContain('User "jane" cannot get path')
    expect(published.stderr).toContain(role)
    expect([verified.code, published.code]).toEqual([1, 1])
  })

  test('doctor issuer says that they are not public, and what to do [ISS-P5]', async () => {
    const file = join(scratch, 'cluster.crt')
    await writeFile(file, server.serving.pki.clusterCa.bundlePem)
    const url = `https://127.0.0.1:${server.port}`
    const args = ['doctor', 'issuer', url, '--certificate-authority', file]
    const { code, stdout, stderr } = await runInProcess([...args, '--for', 'vault', '--for', 'aws'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^RELYING PARTY +VERDICT\naws +fails\nvault +fails\n/)
    expect(stdout).toContain('responds with 401 to requests with no credential')
    expect(stdout).toContain(
      '-> serve them without authentication with --service-account-issuer-public',
    )
    expect(stderr).toContain('does not work at aws, vault')
  })
})

describe('doctor issuer [ISS-P5]', () => {
  const doctor = (...args: string[]) => runInProcess(['doctor', 'issuer', ...args])

  test('says who takes it, who does not and why', async () => {
    const args = [issuer.issuer, '--certificate-authority', ca, '--output', 'json']
    const good = await doctor(...args, '--for', 'go-oidc', '--for', 'jose')
    expect(good.code).toBe(0)
    expect(JSON.parse(good.stdout).relyingParties).toMatchObject([
      { relyingParty: 'go-oidc', verdict: 'warns' },
      { relyingParty: 'jose', verdict: 'warns' },
    ])
    const bad = await doctor(...args, '--for', 'aws')
    expect(bad.code).toBe(1)
    const { error, relyingParties } = JSON.parse(bad.stdout)
    expect(error.code).toBe('ISSUER_UNFIT')
    const told = JSON.stringify(relyingParties)
    for (const words of ['private addresses', 'not signed by a public CA', 'has the port'])
      expect(told).toContain(words)
  })

  test('checks all that are known unless told otherwise', async () => {
    const { code, stdout } = await doctor('https://127.0.0.1:1')
    expect(code).toBe(1)
    for (const name of ['aws', 'gcp', 'azure', 'vault', 'openidconnect-rs'])
      expect(stdout).toContain(name)
    expect(stdout).toMatch(/^fails at all: .*cannot be reached/m)
  })
})
