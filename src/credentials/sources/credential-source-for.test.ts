import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { ExecConfig, KubeconfigUser, ResolvedContext } from '../../kubeconfig/index.ts'
import { labCertificate, named } from '../../pki/certificate-lab.suite.ts'
import { privateKeyPem } from '../../pki/index.ts'
import type { Credential } from '../credential.ts'
import { type CredentialHost, credentialSourceFor } from './credential-source.ts'
import { FakeClock, tokenOfRun } from './fake-plugin.suite.ts'
import { SourceRegistry } from './source-registry.ts'

let directory: string
let runs: number
let host: CredentialHost
let certificate: { readonly certPem: string; readonly keyPem: Secret }

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'choice-'))
  await writeFile(join(directory, 'token'), 'file-token')
  const made = await labCertificate({ subject: named('jane') })
  certificate = { certPem: made.certificate.toString(), keyPem: privateKeyPem(made.key) }
  runs = 0
  host = {
    plugins: {
      env: {},
      cwd: '/',
      platform: 'linux',
      clock: new FakeClock(),
      stdinIsTty: () => false,
      stderr: 'inherit',
      killGroup: () => {},
    },
    registry: new SourceRegistry(),
    run: async () => tokenOfRun(++runs),
  }
})
afterEach(() => rm(directory, { recursive: true }))

const exec: ExecConfig = {
  command: 'login',
  apiVersion: 'client.authentication.k8s.io/v1beta1',
}

const contextOf = (user: KubeconfigUser, server = 'https://a:6443'): ResolvedContext => ({
  contextName: 'main',
  clusterName: 'c',
  cluster: { server },
  userName: 'u',
  user,
  namespace: 'default',
})

const choose = (user: KubeconfigUser, server?: string) =>
  credentialSourceFor(contextOf(user, server), host)

/** What would be sent. */
async function sent(user: KubeconfigUser, server?: string): Promise<string> {
  const credential: Credential = (await choose(user, server).source?.current()) ?? {}
  const { token, basic, clientCertificate } = credential
  return [
    token && `Bearer ${token.reveal()}`,
    basic && `Basic ${basic.username}:${basic.password.reveal()}`,
    clientCertificate && 'certificate',
  ]
    .filter(Boolean)
    .join(' + ')
}

const parts = (): Record<string, KubeconfigUser> => ({
  token: { token: new Secret('t') },
  tokenFile: { tokenFile: join(directory, 'token') },
  username: { username: 'bob' },
  password: { password: new Secret('p') },
  certificate: {
    clientCertificateData: certificate.certPem,
    clientKeyData: certificate.keyPem,
  },
  exec: { exec },
})
const userWith = (...names: string[]): KubeconfigUser =>
  Object.assign({}, ...names.map((name) => parts()[name])) as KubeconfigUser

describe('of several credentials of a user [CRED-K6]', () => {
  test.each([
    ['exec', 'Bearer token-1', 1],
    ['exec token', 'Bearer t', 0],
    ['exec tokenFile', 'Bearer file-token', 0],
    ['exec token tokenFile', 'Bearer file-token', 0],
    ['exec username', 'Basic bob:', 0],
    ['exec username password', 'Basic bob:p', 0],
    ['exec password', 'Bearer token-1', 1],
    ['exec certificate', 'certificate', 0],
    ['token certificate', 'Bearer t + certificate', 0],
    ['tokenFile certificate exec', 'Bearer file-token + certificate', 0],
    ['username password certificate', 'Basic bob:p + certificate', 0],
    ['tokenFile password', 'Bearer file-token', 0],
    ['password', '', 0],
    ['', '', 0],
  ])('{%s} sends %j, with %i runs of the plugin', async (names, expected, expectedRuns) => {
    expect(await sent(userWith(...names.split(' ')))).toBe(expected)
    expect(runs).toBe(expectedRuns)
  })

  test.each(['exec', 'token', 'tokenFile', 'username password', 'certificate'])(
    'nothing is sent to an http:// server: {%s} [CRED-S9]',
    async (names) => {
      const user = userWith(...names.split(' '))
      expect(choose(user, 'http://a:8080').source).toBeUndefined()
      expect(runs).toBe(0)
      host = { ...host, allowHttp: true }
      expect(await sent(user, 'http://a:8080')).not.toBe('')
    },
  )

  test('the choice is explained, with what was there in vain', () => {
    expect(choose(userWith('exec', 'token', 'tokenFile', 'certificate')).why).toEqual({
      used: [
        {
          kind: 'client-certificate',
          from: 'inline',
          reason: 'a client certificate is part of every connection',
        },
        {
          kind: 'token-file',
          from: join(directory, 'token'),
          reason: 'a token file goes before everything else in the header',
        },
      ],
      ignored: [
        { kind: 'token', from: 'inline', reason: 'token-file wins' },
        { kind: 'exec', from: 'login', reason: 'token-file wins: the plugin is not run' },
      ],
    })
    expect(choose(userWith('exec', 'password')).why).toEqual({
      used: [{ kind: 'exec', from: 'login', reason: 'nothing else is set' }],
      ignored: [
        {
          kind: 'basic',
          from: 'password only',
          reason: 'a password without a username proves nothing',
        },
      ],
    })
    expect(choose(userWith('token'), 'http://a').why.ignored).toEqual([
      {
        kind: 'token',
        from: 'inline',
        reason: 'the server is http://, where anybody on the way could read it',
      },
    ])
  })

  test('inline data beats a file [CRED-K3]', async () => {
    const user = { ...userWith('certificate'), clientCertificate: '/none', clientKey: '/none' }
    expect(await sent(user)).toBe('certificate')
  })

  test('the two halves of a certificate may be a file and inline', async () => {
    const path = join(directory, 'crt')
    await writeFile(path, certificate.certPem)
    expect(await sent({ clientCertificate: path, clientKeyData: certificate.keyPem })).toBe(
      'certificate',
    )
  })
})

describe('an auth-provider', () => {
  test.each([
    ['gcp', /gke-gcloud-auth-plugin/],
    ['azure', /kubelogin/],
    ['openstack', /client-keystone-auth/],
    ['exec', /only oidc is left/],
    ['__proto__', /only oidc is left/],
  ])('%s is refused with what to use instead [CRED-K14, CRED-S16]', (name, hint) => {
    for (const others of [{}, { token: new Secret('t') }]) {
      expect(() => choose({ ...others, authProvider: { name } })).toThrow(
        expect.objectContaining({ code: 'UNSUPPORTED', hint: expect.stringMatching(hint) }),
      )
    }
  })

  test('oidc goes behind a token, and beside a certificate', () => {
    const config = {
      'idp-issuer-url': new Secret('https://i'),
      'client-id': new Secret('c'),
    }
    const authProvider = { name: 'oidc', config }
    const kinds = (user: KubeconfigUser) => choose(user).why.used.map(({ kind }) => kind)
    expect(kinds({ authProvider })).toEqual(['auth-provider'])
    expect(kinds({ ...userWith('token'), authProvider })).toEqual(['token'])
    expect(kinds({ ...userWith('certificate'), authProvider })).toEqual([
      'client-certificate',
      'auth-provider',
    ])
  })
})
