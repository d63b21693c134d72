import { describe, expect, test } from 'vitest'
import { parseKubeconfig } from './parse.ts'
import { resolveContext } from './resolve-context.ts'

const data = Buffer.from('pem').toString('base64')
const good = `
current-context: main
clusters:
- {name: c, cluster: {server: "https://a:6443", certificate-authority-data: ${data}}}
users:
- {name: u, user: {token: t0ken}}
contexts:
- {name: main, context: {cluster: c, user: u, namespace: dev}}
- {name: plain, context: {cluster: c, user: u}}
- {name: nobody, context: {cluster: c}}
- {name: lost, context: {cluster: x, user: z}}
- {name: empty, context: }
`
const resolve = async (text: string, name?: string) =>
  resolveContext(await parseKubeconfig(text, 'x'), name)

describe('a context', () => {
  test('that is current stands for its cluster, its user and its namespace', async () => {
    expect(await resolve(good)).toMatchObject({
      contextName: 'main',
      clusterName: 'c',
      cluster: { server: 'https://a:6443', certificateAuthorityData: 'pem' },
      userName: 'u',
      namespace: 'dev',
    })
  })

  test('can be named, and its namespace is default unless it says otherwise', async () => {
    expect(await resolve(good, 'plain')).toMatchObject({ namespace: 'default', userName: 'u' })
  })

  test('may name no user', async () => {
    expect(await resolve(good, 'nobody')).toMatchObject({ userName: '', user: {} })
  })

  test.each([
    [
      'other',
      'the kubeconfig: context "other" does not exist; those that do: "main", "plain", "nobody", "lost", "empty"',
    ],
    ['', 'the kubeconfig: no context is chosen: name one, or set current-context'],
    [
      'lost',
      'context "lost" has 2 problems:\n  cluster "x" does not exist\n  user "z" does not exist',
    ],
    ['empty', 'context "empty": it names no cluster'],
  ])('%j is refused', async (name, message) => {
    await expect(resolve(good, name)).rejects.toThrow(message)
  })

  test('is refused in an empty kubeconfig', async () => {
    await expect(resolve('', 'a')).rejects.toThrow('context "a" does not exist, nor does any other')
  })
})

describe('a context cannot be used [CRED-K4]', () => {
  const config = (cluster: string, user: string) => `
current-context: main
clusters: [{name: c, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`
  const server = 'server: "https://a"'
  test.each([
    ['', 'it has no server'],
    ['server: "a:6443"', 'server must be a URL such as https://host:6443'],
    ['server: "ftp://a"', 'server must be a URL such as https://host:6443'],
    [`${server}, proxy-url: "s3cret"`, 'proxy-url must be an http, https or socks5 URL'],
    [
      `${server}, certificate-authority: a, certificate-authority-data: ${data}`,
      'certificate-authority-data and certificate-authority are both set: keep one',
    ],
    [
      `${server}, insecure-skip-tls-verify: true, certificate-authority-data: ${data}`,
      'insecure-skip-tls-verify is set together with a certificate authority: keep one of them',
    ],
    [
      `${server}, insecure-skip-tls-verify: true, certificate-authority: a`,
      'insecure-skip-tls-verify is set together with a certificate authority: keep one of them',
    ],
  ])('with the cluster {%s}', async (cluster, problem) => {
    await expect(resolve(config(cluster, ''))).rejects.toMatchObject({
      code: 'KUBECONFIG_INVALID',
      problems: [`cluster "c": ${problem}`],
    })
  })

  const v1 = 'apiVersion: client.authentication.k8s.io/v1'
  test.each([
    [
      `client-certificate: a, client-certificate-data: ${data}, client-key: k`,
      'client-certificate-data and client-certificate are both set: keep one',
    ],
    [
      `client-certificate: a, client-key-data: ${data}, client-key: k`,
      'client-key-data and client-key are both set: keep one',
    ],
    [
      `client-certificate-data: ${data}`,
      'a client certificate needs client-key-data or client-key',
    ],
    ['client-key: k', 'a client key needs client-certificate-data or client-certificate'],
    [
      'token: t, username: bob',
      'token and username are both set: only one way to authenticate is allowed',
    ],
    [
      'tokenFile: f, username: bob',
      'tokenFile and username are both set: only one way to authenticate is allowed',
    ],
    [
      'token: t, password: p',
      'token and password are both set: only one way to authenticate is allowed',
    ],
    [
      `exec: {command: a, ${v1}, interactiveMode: Never}, auth-provider: {name: oidc}`,
      'exec and auth-provider are both set: keep one',
    ],
    [`exec: {${v1}, interactiveMode: Never}`, 'exec has no command'],
    ['exec: {command: a}', 'exec has no apiVersion'],
    [
      `exec: {command: a, ${v1}}`,
      'exec.interactiveMode is needed: one of Never, IfAvailable, Always',
    ],
    [
      `exec: {command: a, ${v1}, interactiveMode: Sometimes}`,
      'exec.interactiveMode must be one of Never, IfAvailable, Always',
    ],
    [
      `exec: {command: a, ${v1}, interactiveMode: Never, env: [{value: x}]}`,
      'exec has an env without a name',
    ],
    ['as-groups: [a]', 'as-uid, as-groups and as-user-extra need as'],
    ['as-uid: "1"', 'as-uid, as-groups and as-user-extra need as'],
  ])('with the user {%s}', async (user, problem) => {
    await expect(resolve(config(server, user))).rejects.toMatchObject({
      problems: [`user "u": ${problem}`],
    })
  })

  test.each([
    ['exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1}'],
    ['token: t, exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1}'],
    ['as: jane, as-groups: [a], as-uid: "1", as-user-extra: {a: [b]}'],
    [`client-certificate-data: ${data}, client-key: k`],
    ['username: bob, password: p'],
    ['password: p, exec: {command: a, apiVersion: client.authentication.k8s.io/v1beta1}'],
    ['tokenFile: f, token: t'],
    ['tokenFile: f, password: p'],
  ])('but it can with the user {%s}', async (user) => {
    await expect(resolve(config(server, user))).resolves.toMatchObject({ userName: 'u' })
  })

  test('and all that is wrong is said at once', async () => {
    await expect(resolve(config('', 'client-key: k'))).rejects.toThrow(/2 problems/)
  })
})
