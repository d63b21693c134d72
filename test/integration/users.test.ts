import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parseKubeconfig } from '../../src/kubeconfig/index.ts'
import type { Credential } from '../support/https-caller.ts'
import { type CommandOutcome, runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let server: InProcessServer
let scratch: string
let file: string
let count = 0

beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-users-'))
  file = join(scratch, 'kubeconfig')
  count += 1
  return () => rm(scratch, { recursive: true, force: true })
})

/** Runs `sallyport user ...` on the running server's data directory. */
const user = (...words: string[]): Promise<CommandOutcome> =>
  runInProcess(['user', ...words, '--data-dir', server.dataDirectory])

interface Listed {
  readonly name: string
  readonly groups: readonly string[]
  readonly serial: string
  readonly issued: string
  readonly expires: string
  readonly state: string
}

async function list(): Promise<Listed[]> {
  const { stdout } = await user('list', '--output', 'json')
  return (JSON.parse(stdout) as { users: Listed[] }).users
}

/** What a client would prove its identity with by a kubeconfig. */
async function credentialIn(path: string): Promise<Credential & { readonly server: string }> {
  const { users, clusters } = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [one] = users.values()
  const [cluster] = clusters.values()
  const { clientCertificateData: cert, clientKeyData: key } = one ?? {}
  if (!cert || !key || !cluster) throw new Error(`${path} is not complete`)
  return { cert, key: key.reveal(), server: cluster.server }
}

/** Whom the server takes the owner of a kubeconfig for, or the code by which it refuses to say. */
async function whoIs(path: string): Promise<unknown> {
  const answer = await server
    .as(await credentialIn(path))
    .post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {})
  return answer.status === 201 ? answer.object['status'] : answer.status
}

describe('user create [GND-R77]', () => {
  test('writes a private kubeconfig by which the server knows the user', async () => {
    const { code, stdout, stderr } = await user(
      'create',
      'jane',
      '--group',
      'developers,readers',
      '--out',
      file,
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/makes you jane of developers, readers until .* \(serial [0-9A-F]+\)/)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await whoIs(file)).toMatchObject({
      userInfo: { username: 'jane', groups: ['developers', 'readers', 'system:authenticated'] },
    })
    expect((await credentialIn(file)).server).toBe(server.serving.url)
  })

  test('says in JSON what was issued, and no key', async () => {
    const { stdout } = await user('create', 'json', '--out', file, '--output', 'json')
    const said = JSON.parse(stdout) as Listed
    expect(said).toMatchObject({ name: 'json', groups: [], kubeconfig: file })
    const { cert = '' } = await credentialIn(file)
    expect(said.serial).toBe(new X509Certificate(cert).serialNumber)
    expect(stdout).not.toContain('PRIVATE')
  })

  test('prints the kubeconfig when asked to', async () => {
    const { stdout } = await user('create', 'piped', '--out', '-')
    const { users } = await parseKubeconfig(stdout, 'stdout')
    expect([...users.keys()]).toEqual(['piped'])
  })

  test('makes a certificate as short-lived and a server address as asked for', async () => {
    const flags = ['--lifetime', '2h', '--server', 'https://api.example.com:6443', '--out', file]
    await user('create', 'short', ...flags)
    const { cert = '', server: address } = await credentialIn(file)
    const { validTo } = new X509Certificate(cert)
    expect(Date.parse(validTo) - Date.now()).toBeLessThanOrEqual(2 * 3_600_000 + 1_000)
    expect(address).toBe('https://api.example.com:6443')
  })

  test('keeps mode 0600 when a file is replaced', async () => {
    await writeFile(file, 'old', { mode: 0o644 })
    expect((await user('create', 'again', '--out', file)).code).toBe(0)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test.each([
    [['create'], 'NAME is missing'],
    [['create', ''], 'cannot be a user name'],
    [['create', ' jane'], 'cannot be a user name'],
    [['create', 'a\nb'], 'cannot be a user name'],
    [['create', 'system:admin'], "the cluster's own"],
    [['create', 'jane', 'john'], 'unexpected argument "john"'],
    [['create', 'jane', '--lifetime', '1s'], 'must be at least 1m'],
    [['revoke'], 'give either the NAME of a user or the --serial'],
    [['revoke', 'jane', '--serial', 'AB'], 'give either the NAME of a user or the --serial'],
    [['revoke', '--serial', 'not hexadecimal'], 'must be a serial number in hexadecimal'],
  ])('%j is wrong usage and issues nothing', async (words, expected) => {
    const before = await list()
    const { code, stderr } = await user(...words)
    expect(code).toBe(2)
    expect(stderr).toContain(expected)
    expect(await list()).toEqual(before)
  })

  test('that cannot write its file says how to take the certificate back', async () => {
    const place = join(scratch, 'a-file')
    await writeFile(place, '')
    const { code, stderr } = await user('create', 'lost', '--out', join(place, 'kubeconfig'))
    expect(code).toBe(1)
    expect(stderr).toMatch(/a-file\/kubeconfig: E[A-Z]+\n/)
    const serial = /user revoke --serial ([0-9A-F]+)/.exec(stderr)?.[1]
    expect((await list()).find((one) => one.name === 'lost')?.serial).toBe(serial)
  })

  test('warns of a group that no rule can limit', async () => {
    const { code, stderr } = await user(
      'create',
      'root',
      '--group',
      'system:masters',
      '--out',
      file,
    )
    expect(code).toBe(0)
    expect(stderr).toContain('no RBAC rule can limit them')
  })

  test('by several at a time loses none of the records', async () => {
    const names = Array.from({ length: 8 }, (_none, i) => `together-${i}`)
    const made = await Promise.all(
      names.map((name) => user('create', name, '--out', join(scratch, name))),
    )
    expect(made.map(({ code }) => code)).toEqual(names.map(() => 0))
    expect((await list()).map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  })
})

describe('user list and revoke [GND-R77, GND-R78]', () => {
  const nameOf = (word: string): string => `${word}-${count}`

  test('show who has a certificate and whether it still counts', async () => {
    const name = nameOf('ann')
    await user('create', name, '--group', 'a', '--out', file)
    const before = (await list()).find((one) => one.name === name)
    expect(before).toMatchObject({ groups: ['a'], state: 'valid' })
    const text = await user('list')
    expect(text.stdout).toMatch(/^NAME +GROUPS +STATE +EXPIRES +SERIAL\n/)
    expect(text.stdout).toMatch(new RegExp(`^${name} +a +valid `, 'm'))
    expect((await user('revoke', name, '--reason', 'left')).stdout).toBe(
      `user ${name} is revoked\n`,
    )
    expect((await list()).find((one) => one.name === name)?.state).toBe('revoked')
  })

  test('by name refuse every certificate of the user from the next request on', async () => {
    const name = nameOf('bob')
    const other = join(scratch, 'other')
    await user('create', name, '--out', file)
    await user('create', name, '--out', other)
    expect(await whoIs(file)).not.toBe(401)
    const revoked = await user('revoke', name, '--output', 'json')
    expect(JSON.parse(revoked.stdout)).toEqual({ revoked: `user ${name}`, alreadyRevoked: false })
    expect([await whoIs(file), await whoIs(other)]).toEqual([401, 401])
    const again = await user('revoke', name, '--output', 'json')
    expect(again.code).toBe(0)
    expect(JSON.parse(again.stdout)).toMatchObject({ alreadyRevoked: true })
  })

  test.each([
    ['a person', []],
    ['a machine', ['--machine']],
  ])('by name let no new certificate of %s be issued [SEC-R2454]', async (_who, flags) => {
    const name = nameOf('zoe')
    expect((await user('revoke', name, ...flags)).code).toBe(0)
    const refused = await user('create', name, ...flags, '--out', file)
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toMatch(/^error: user \S+ is revoked.*\nhint: .*--serial/m)
    expect((await list()).some((one) => one.name.endsWith(name))).toBe(false)
    expect((await user('create', `${name}-b`, ...flags, '--out', file)).code).toBe(0)
  })

  test.each([
    ['as printed', (serial: string) => serial],
    [
      'in lower case with colons',
      (serial: string) => serial.toLowerCase().replaceAll(/(..)(?!$)/g, '$1:'),
    ],
  ])('by serial %s refuse one certificate', async (_name, spelt) => {
    const name = nameOf('eve')
    const other = join(scratch, 'other')
    const made = await user('create', name, '--out', file, '--output', 'json')
    await user('create', name, '--out', other)
    const { serial } = JSON.parse(made.stdout) as Listed
    expect((await user('revoke', '--serial', spelt(serial))).code).toBe(0)
    expect(await whoIs(file)).toBe(401)
    expect(await whoIs(other)).toMatchObject({ userInfo: { username: name } })
    const states = (await list()).filter((one) => one.name === name).map(({ state }) => state)
    expect(states.sort()).toEqual(['revoked', 'valid'])
  })
})

describe('without a running server [GND-R77]', () => {
  const commands = [['create', 'jane'], ['list'], ['revoke', 'jane']]

  test.each(commands)('%s says that there is no cluster', async (...words) => {
    const nowhere = join(scratch, 'nowhere')
    const { code, stdout, stderr } = await runInProcess([
      'user',
      ...words,
      '--data-dir',
      nowhere,
      '--output',
      'json',
    ])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'NO_CLUSTER' } })
    expect(stderr).toContain(`there is no cluster in ${nowhere}`)
    expect(await readdir(scratch)).toEqual([])
  })

  test.each(commands)('%s says that nobody answers, and changes nothing', async (...words) => {
    const dataDirectory = join(scratch, 'data')
    await mkdir(dataDirectory)
    const stopped = await startInProcess({ dataDirectory })
    await stopped.halt()
    const before = await readdir(scratch, { recursive: true })
    const call = ['user', ...words, '--data-dir', dataDirectory, '--output', 'json']
    const { code, stdout, stderr } = await runInProcess(call)
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'CLIENT_CONNECTION_FAILED' } })
    expect(stderr).toContain(`no answer from ${stopped.serving.url}`)
    expect(stderr).toContain('is the server running?')
    expect(await readdir(scratch, { recursive: true })).toEqual(before)
  })
})
