import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { labCertificate, labNow, named } from '../../pki/certificate-lab.suite.ts'
import { privateKeyPem } from '../../pki/index.ts'
import { runCommand } from '../run-command.ts'
import { credentialCommand } from './credential.ts'

let home: string
const at = (name: string) => join(home, name)

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'credential-command-'))
  await mkdir(at('.kube'))
})
afterEach(() => rm(home, { recursive: true }))

const base64 = (text: string) => Buffer.from(text).toString('base64')
const jwt = (claims: object | string) => {
  const text = typeof claims === 'string' ? claims : JSON.stringify(claims)
  return `e30.${Buffer.from(text).toString('base64url')}.s3cret-signature`
}

async function putKubeconfig(user: string, server = 'https://a:6443'): Promise<void> {
  await writeFile(
    at('.kube/config'),
    `current-context: main
clusters: [{name: c, cluster: {server: "${server}"}}]
users:
- {name: jane, user: {${user}}}
contexts:
- {name: main, context: {cluster: c, user: jane}}
- {name: nobody, context: {cluster: c, user: ""}}
`,
  )
}

/** A plugin that counts its runs in a file and prints a text. */
async function putPlugin(output: string, exit = 0): Promise<string> {
  const path = at('login')
  await writeFile(
    path,
    `#!/bin/sh\necho run >> '${at('runs')}'\ncat <<'EOT'\n${output}\nEOT\nexit ${exit}\n`,
  )
  await chmod(path, 0o700)
  return `exec: {command: "${path}", apiVersion: client.authentication.k8s.io/v1beta1, interactiveMode: Never, args: [s3cret-argument]}`
}

const answer = (status: object) =>
  JSON.stringify({
    apiVersion: 'client.authentication.k8s.io/v1beta1',
    kind: 'ExecCredential',
    status,
  })

const run = (...args: string[]) => runUntil(new AbortController().signal, ...args)

async function runUntil(drain: AbortSignal, ...args: string[]) {
  const said = { stdout: '', stderr: '' }
  const never = new AbortController().signal
  const code = await runCommand([credentialCommand], ['credential', ...args], {
    env: { PATH: '/usr/bin:/bin' },
    interactive: false,
    columns: 80,
    isRoot: false,
    homeDirectory: home,
    stdout: (text) => void (said.stdout += text),
    stderr: (text) => void (said.stderr += text),
    drain,
    kill: never,
  })
  expect(said.stdout + said.stderr).not.toContain('s3cret')
  return { code, ...said }
}

const jsonOf = (stdout: string): unknown => JSON.parse(stdout)

describe('sallyport credential [CRED-A4]', () => {
  test('shows what wins, runs the plugin and shows what it gave, as a table', async () => {
    const token = jwt({
      iss: 'https://idp',
      sub: 'jane\u001b[31m',
      exp: 4_102_444_800,
      groups: ['dev'],
      nonce: 's3cret-nonce',
    })
    const expirationTimestamp = '2099-01-01T00:00:00Z'
    await putKubeconfig(await putPlugin(answer({ token, expirationTimestamp })))
    const { code, stdout, stderr } = await run()
    expect(stderr).toBe('')
    expect(code).toBe(0)
    const lines = stdout.replace(/took \d+ ms/, 'took 9 ms').replace(/\(in [^)]+\)/, '(in time)')
    expect(lines).toBe(`Context   main
Cluster   c (https://a:6443)
User      jane

CREDENTIAL   USED   FROM${' '.repeat(at('login').length - 4)}   WHY
exec         yes    ${at('login')}   nothing else is set

Plugin   ${at('login')} (took 9 ms)

Token      JWT of ${token.length} characters, not shown
  iss      https://idp
  sub      janeU+001B[31m
  exp      2100-01-01T00:00:00Z
  groups   ["dev"]
  nonce    [redacted]
Expires    2099-01-01T00:00:00Z (in time)
`)
  })

  test.each([
    ['far beyond the calendar', { exp: 1e20 }, 'Expires +not stated'],
    ['with tokens of others deep in it', { act: [{ refresh_token: 's3cret' }] }, 'redacted'],
    ['nested without end', `{"a":${'['.repeat(1e5)}${']'.repeat(1e5)}}`, 'too deep|opaque'],
  ])('shows a token %s', async (_name, claims, shown) => {
    await putKubeconfig(`token: ${jwt(claims)}`)
    const { code, stdout } = await run()
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(shown))
  })

  test('shows no password that is part of an address', async () => {
    await putKubeconfig('token: s3cret', 'https://jane:s3cret@a:6443/')
    expect((await run()).stdout).toContain('c (https://a:6443/)')
    expect((await run('--output', 'json')).stdout).toContain('"https://a:6443/"')
  })

  test('shows a client certificate', async () => {
    const made = await labCertificate({ subject: named('jane'), notAfter: labNow + 60_000 })
    const [cert, key] = [made.certificate.toString(), privateKeyPem(made.key).reveal()]
    await putKubeconfig(`client-certificate-data: ${base64(cert)}, client-key-data: ${base64(key)}`)
    const { code, stdout } = await run()
    expect(code).toBe(0)
    expect(stdout).toMatch(/Certificate +CN=jane\n +issuer +CN=jane\n +serial +0A0B0C\n/)
    expect(stdout).toContain('2026-03-01T12:01:00Z')
  })
})

describe('sallyport credential looks without touching [CRED-A4]', () => {
  test('runs nothing if told so, and says what would run [CRED-S1]', async () => {
    await putKubeconfig(await putPlugin(answer({ token: 's3cret' })))
    const { code, stdout } = await run('--no-run', '--output', 'json')
    expect(code).toBe(0)
    expect(jsonOf(stdout)).toEqual({
      context: 'main',
      cluster: { name: 'c', server: 'https://a:6443' },
      user: 'jane',
      used: [{ kind: 'exec', from: at('login'), reason: 'nothing else is set' }],
      ignored: [],
      plugin: { command: at('login'), resolvedPath: at('login'), interactive: false },
    })
    await expect(rm(at('runs'))).rejects.toThrow('ENOENT')
  })

  test('is JSON if asked for, with what is there in vain', async () => {
    const exec = await putPlugin(answer({ token: 's3cret' }))
    await putKubeconfig(`${exec}, token: s3cret-token`)
    const { stdout } = await run('--output', 'json')
    expect(jsonOf(stdout)).toMatchObject({
      used: [{ kind: 'token' }],
      ignored: [{ kind: 'exec', reason: 'token wins: the plugin is not run' }],
      credential: { token: { form: 'opaque', characters: 12 } },
    })
    await expect(rm(at('runs'))).rejects.toThrow('ENOENT')
  })

  test('says that a context has no credential, or none for http', async () => {
    await putKubeconfig('token: s3cret', 'http://a')
    expect((await run('--context', 'nobody')).stdout).toContain('requests are anonymous')
    const { stdout } = await run()
    expect(stdout).toMatch(/token +no +inline +the server is http/)
    expect(stdout).toContain('No credential is used')
  })
})

describe('sallyport credential fails with a next step [CRED-A4]', () => {
  test.each([
    ['fails', '', 3, 'EXIT'],
    ['prints rubbish', 's3cret rubbish', 0, 'DECODE'],
  ])('tells why and what to do when the plugin %s', async (_name, output, exit, code) => {
    await putKubeconfig(await putPlugin(output, exit))
    const text = await run()
    expect(text.code).toBe(1)
    expect(text.stdout).toContain('nothing else is set')
    expect(text.stdout).toMatch(/login \(failed after \d+ ms\)/)
    expect(text.stderr).toMatch(/^error: .*login.*\nhint: /)
    const json = await run('--output', 'json')
    expect(jsonOf(json.stdout)).toMatchObject({ used: [{ kind: 'exec' }], error: { code } })
  })

  test('heeds the policy of the preferences', async () => {
    await putKubeconfig(await putPlugin(answer({ token: 's3cret' })))
    await writeFile(at('.kube/kuberc'), 'kind: Preference\ncredentialPluginPolicy: DenyAll')
    const { code, stdout } = await run('--output', 'json')
    expect(code).toBe(1)
    expect(jsonOf(stdout)).toMatchObject({ error: { code: 'POLICY_DENIED' } })
  })

  test.each([
    ['gcp', 'gke-gcloud-auth-plugin'],
    ['azure', 'kubelogin'],
  ])('names what took the place of %s', async (name, replacement) => {
    await putKubeconfig(`auth-provider: {name: ${name}}`)
    const { code, stderr, stdout } = await run()
    expect(code).toBe(1)
    expect(stderr).toContain(replacement)
    expect(stdout).not.toContain('anonymous')
  })
})

describe('sallyport credential names what is wrong [CRED-A4]', () => {
  test('says once how a missing plugin is installed', async () => {
    const exec = 'command: not-there, apiVersion: client.authentication.k8s.io/v1beta1'
    await putKubeconfig(`exec: {${exec}, installHint: "get it at https://x"}`)
    const { stderr } = await run()
    expect(stderr).toBe(
      'error: exec plugin "not-there" is not found in PATH\nhint: get it at https://x\n',
    )
    await putKubeconfig(`exec: {${exec}}`)
    expect((await run()).stderr).toContain('hint: install it')
  })

  test.each(['a b', 'a\\r\\nX-Evil: 1', 'tök'])(
    'says that the token %j cannot be sent',
    async (token) => {
      await putKubeconfig(`token: "${token}"`)
      const { code, stderr } = await run()
      expect(code).toBe(1)
      expect(stderr).toContain('error: the token has characters that cannot be sent')
    },
  )

  test('says that a certificate of the kubeconfig is none, and that a key is not its own', async () => {
    const [jane, joe] = await Promise.all(
      ['jane', 'joe'].map((name) => labCertificate({ subject: named(name) })),
    )
    const cert = base64(jane?.certificate.toString() ?? '')
    const key = base64(joe ? privateKeyPem(joe.key).reveal() : '')
    await putKubeconfig(`client-certificate-data: ${cert}, client-key-data: ${key}`)
    expect(jsonOf((await run('--output', 'json')).stdout)).toMatchObject({
      error: { code: 'CERT_KEY_MISMATCH' },
    })
    await putKubeconfig(`client-certificate-data: ${base64('x')}, client-key-data: ${key}`)
    const { code, stderr } = await run()
    expect(code).toBe(1)
    expect(stderr).toContain('error: the user has a certificate that is not valid PEM')
  })

  test('says which context there is not', async () => {
    await putKubeconfig('')
    const { code, stderr } = await run('--context', 'other')
    expect(code).toBe(1)
    expect(stderr).toContain('context "other" does not exist; those that do: "main", "nobody"')
  })
})

test('text of plugins, tokens and kubeconfigs is shown without power over the terminal [SEC-R2404]', async () => {
  const evil = '\x1b]0;\u009b2J\r\u202e'
  const claims = { [evil]: evil, nested: { [evil]: [evil] } }
  await putKubeconfig(await putPlugin(answer({ token: jwt(claims) })))
  const { stdout } = await run()
  expect(stdout).toContain('U+001B]0;U+009B2JU+000DU+202E')
  expect(stdout).toMatch(/^[\n\x20-\x7e]*$/)
  await putKubeconfig(`username: ${JSON.stringify(evil)}, password: s3cret`)
  expect((await run()).stdout).toMatch(/^[\n\x20-\x7e]*$/)
})

test('a signal ends the command, which says so and is not at fault', async () => {
  await putKubeconfig(await putPlugin(answer({ token: 's3cret' })))
  const { code, stderr } = await runUntil(AbortSignal.abort())
  expect([code, stderr]).toEqual([1, 'error: interrupted by a signal\n'])
})
