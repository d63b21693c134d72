import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import { KubeconfigInvalid } from './kubeconfig.ts'
import { parseKubeconfig } from './parse.ts'
import { makeKubeconfig, renderKubeconfig } from './write.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

const everything = `
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: main
clusters:
- name: c
  cluster:
    server: https://127.0.0.1:6443
    tls-server-name: kubernetes
    certificate-authority: ca.crt
    certificate-authority-data: ${base64('ca pem')}
    proxy-url: http://proxy:3128
    disable-compression: true
    insecure-skip-tls-verify: false
    future-field: {a: [1]}
    extensions:
    - name: sallyport.dev/cluster-location
      extension: {addresses: [a, b]}
users:
- name: u
  user:
    client-certificate: u.crt
    client-certificate-data: ${base64('cert pem')}
    client-key: u.key
    client-key-data: ${base64('key pem')}
    token: t0ken
    tokenFile: token
    username: bob
    password: pa55
    as: alice
    as-uid: "7"
    as-groups: [dev, ops]
    as-user-extra: {scopes: [a, b]}
    auth-provider:
      name: oidc
      config: {id-token: idt0ken}
    exec:
      command: ./login
      args: [a, b]
      env: [{name: KEY, value: envs3cret}]
      apiVersion: client.authentication.k8s.io/v1
      installHint: install it
      provideClusterInfo: true
      interactiveMode: Never
contexts:
- name: main
  context: {cluster: c, user: u, namespace: dev}
`

describe('a kubeconfig', () => {
  test('is read with every field that has a meaning, and those that have none are kept [CRED-R23, CRED-S1]', async () => {
    const config = await parseKubeconfig(everything, 'x')
    expect(config.currentContext).toBe('main')
    expect(config.unknown).toEqual({ preferences: { colors: true } })
    expect(config.clusters.get('c')).toEqual({
      server: 'https://127.0.0.1:6443',
      tlsServerName: 'kubernetes',
      certificateAuthority: 'ca.crt',
      certificateAuthorityData: 'ca pem',
      proxyUrl: 'http://proxy:3128',
      disableCompression: true,
      insecureSkipTlsVerify: false,
      extensions: new Map([['sallyport.dev/cluster-location', { addresses: ['a', 'b'] }]]),
      unknown: { 'future-field': { a: [1] } },
    })
    expect(config.contexts.get('main')).toEqual({ cluster: 'c', user: 'u', namespace: 'dev' })
    const user = config.users.get('u')
    expect(user).toMatchObject({
      clientCertificate: 'u.crt',
      clientCertificateData: 'cert pem',
      clientKey: 'u.key',
      tokenFile: 'token',
      username: 'bob',
      impersonate: {
        username: 'alice',
        uid: '7',
        groups: ['dev', 'ops'],
        extra: { scopes: ['a', 'b'] },
      },
      exec: {
        command: './login',
        args: ['a', 'b'],
        apiVersion: 'client.authentication.k8s.io/v1',
        installHint: 'install it',
        provideClusterInfo: true,
        interactiveMode: 'Never',
      },
    })
    expect([
      user?.clientKeyData?.reveal(),
      user?.token?.reveal(),
      user?.password?.reveal(),
      user?.authProvider?.config?.['id-token']?.reveal(),
      user?.exec?.env?.[0]?.value.reveal(),
    ]).toEqual(['key pem', 't0ken', 'pa55', 'idt0ken', 'envs3cret'])
  })

  test('does not show its credentials when it is printed', async () => {
    const config = await parseKubeconfig(everything, 'x')
    const printed = inspect(config, { depth: 10 }) + JSON.stringify([...config.users])
    expect(printed).not.toMatch(/key pem|t0ken|pa55|s3cret/)
    expect(printed).toContain('redacted')
  })

  test('loses nothing when it is written and read again', async () => {
    const config = await parseKubeconfig(everything, 'x')
    const text = await renderKubeconfig(config)
    const again = await parseKubeconfig(text, 'y')
    expect(again).toEqual(config)
    expect(await renderKubeconfig(again)).toBe(text)
  })

  test.each([
    ['JSON', '{"current-context":"x","clusters":[{"name":"c","cluster":{"server":"s"}}]}'],
    ['a byte order mark', '\uFEFFcurrent-context: x\nclusters: [{name: c, cluster: {server: s}}]'],
    ['aliases', 'current-context: &n x\nclusters: [{name: c, cluster: {server: s}}]\nextra: *n'],
  ])('may be or have %s', async (_name, text) => {
    const config = await parseKubeconfig(text, 'x')
    expect(config.currentContext).toBe('x')
    expect(config.clusters.get('c')?.server).toBe('s')
  })

  test.each(['', '# nothing\n', 'apiVersion: v1\nkind: Config\nusers: null\ncontexts: []\n'])(
    'may be empty: %j',
    async (text) => {
      expect((await parseKubeconfig(text, 'x')).clusters.size).toBe(0)
    },
  )

  test('reads booleans and base64 as kubectl does [CRED-K5]', async () => {
    const text = `clusters: [{name: c, cluster: {server: s, insecure-skip-tls-verify: yes}}]
users: [{name: "12:30", user: {client-certificate-data: "${base64('a long text of a certificate').replace(/(.{8})/g, '$1\\n')}"}}]`
    const config = await parseKubeconfig(text, 'x')
    expect(config.clusters.get('c')?.insecureSkipTlsVerify).toBe(true)
    expect(config.users.get('12:30')?.clientCertificateData).toBe('a long text of a certificate')
  })

  test.each([
    ['nothing', ''],
    ['null', 'args: null, env: null,'],
    ['empty lists', 'args: [], env: [],'],
  ])('takes %s for no arguments and no variables [CRED-R25]', async (_name, fields) => {
    const text = `users: [{name: u, user: {exec: {${fields} command: a, apiVersion: b}}}]`
    const exec = (await parseKubeconfig(text, 'x')).users.get('u')?.exec
    expect(exec?.args ?? []).toEqual([])
    expect(exec?.env ?? []).toEqual([])
  })

  test('has both users of the proposal [CRED-R23]', async () => {
    const text = `users:
- name: a
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1alpha1
      command: /bin/kubectl-login
      args: ["hello", "world"]
- name: b
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1alpha1
      command: heptio-authenticator-aws
      args: [token, -i, (CLUSTER_ID), -r, (ROLE_ARN)]`
    const { users } = await parseKubeconfig(text, 'x')
    expect(users.get('a')?.exec).toMatchObject({
      command: '/bin/kubectl-login',
      args: ['hello', 'world'],
    })
    expect(users.get('b')?.exec?.args).toEqual(['token', '-i', '(CLUSTER_ID)', '-r', '(ROLE_ARN)'])
    expect(users.get('b')?.authProvider).toBeUndefined()
  })

  test.each([
    ['a number as an argument', 'args: [1]'],
    ['a boolean as an argument', 'args: [yes]'],
    ['a number as a value', 'env: [{name: A, value: 1}]'],
    ['a number as a command', 'command: 1'],
    ['a text as a boolean', 'provideClusterInfo: "true"'],
  ])('does not take %s for text [CRED-K5]', async (_name, field) => {
    const text = `users: [{name: u, user: {exec: {${field}}}}]`
    await expect(parseKubeconfig(text, 'x')).rejects.toThrow(/users\[0\]\.user\.exec\.\S+ must be/)
  })

  test.each(['n', 'y', 'on', 'off', 'No'])(
    'reads a bare %s as the truth value that it is to kubectl [CRED-K5]',
    async (word) => {
      const text = `extensions: [{name: e, extension: {value: ${word}}}]`
      const { extensions } = await parseKubeconfig(text, 'x')
      expect(extensions?.get('e')).toEqual({ value: ['y', 'on'].includes(word) })
    },
  )

  test('is not confused by a name such as __proto__', async () => {
    const text = 'users: [{name: __proto__, user: {as-user-extra: {__proto__: [x]}}}]'
    const user = (await parseKubeconfig(text, 'x')).users.get('__proto__')
    expect(Object.entries(user?.impersonate?.extra ?? {})).toEqual([['__proto__', ['x']]])
  })
})

describe('a kubeconfig is refused', () => {
  const problems = async (text: string): Promise<readonly string[]> => {
    try {
      await parseKubeconfig(text, 'the-file')
      return []
    } catch (error) {
      if (!(error instanceof KubeconfigInvalid)) throw error
      expect(error.message).toMatch(/^the-file/)
      return error.problems
    }
  }

  test('with all its problems at once, each with its place [CRED-K4, CRED-K5]', async () => {
    const text = `
kind: Pod
current-context: 7
clusters:
- {name: c, cluster: {server: [x], insecure-skip-tls-verify: "true"}}
- {name: c, cluster: text}
users:
- name: u
  user: {token: 123, client-key-data: "n0t base64!", exec: {args: [1], env: {}}}
contexts: {a: b}
`
    expect(await problems(text)).toEqual([
      'kind must be Config: this is not a kubeconfig',
      'current-context must be a string, not a number',
      'clusters[0].cluster.server must be a string, not a list',
      'clusters[0].cluster.insecure-skip-tls-verify must be true or false, not a string',
      'clusters[1].name "c" is there twice',
      'clusters[1].cluster must be a map, not a string',
      'users[0].user.client-key-data is not valid base64',
      'users[0].user.token must be a string, not a number',
      'users[0].user.exec.env must be a list, not a map',
      'users[0].user.exec.args must be a list of strings, not a list',
      'contexts must be a list, not a map',
    ])
  })

  test.each([
    ['a list', '[]', ['must be a map, not a list']],
    ['text', 'hello', ['must be a map, not a string']],
    ['another version', 'apiVersion: v2', ['apiVersion must be v1']],
    [
      'the same key twice',
      'kind: Config\nkind: Config',
      ['line 2, column 1 is not valid YAML: duplicate key'],
    ],
    [
      'two documents',
      'kind: Config\n---\nkind: Config',
      ['line 2, column 1 is not valid YAML: more than one document'],
    ],
    [
      'an extension twice',
      'extensions: [{name: a}, {name: a}]',
      ['extensions[1].name "a" is there twice'],
    ],
  ])('if it is or has %s', async (_name, text, expected) => {
    expect(await problems(text)).toEqual(expected)
  })

  test('when aliases would blow it up', async () => {
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]']
    for (let i = 0; i < 8; i++) {
      const [from, to] = ['abcdefghij'[i], 'abcdefghij'[i + 1]]
      bomb.push(`${to}: &${to} [${Array(9).fill(`*${from}`).join(',')}]`)
    }
    expect(await problems(bomb.join('\n'))).toEqual(['has aliases that cannot be resolved'])
  })

  test.each([
    ['nested too deeply as lists', '['.repeat(20_000), 'is nested too deeply'],
    ['nested too deeply as maps', '{a: '.repeat(20_000), 'is nested too deeply'],
    [
      'nested too deeply by indentation',
      Array.from({ length: 1_000 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
      'is nested too deeply',
    ],
    ['nested too deeply as items', '- '.repeat(20_000), 'is nested too deeply'],
    ['very long', `# ${'x'.repeat(5 * 1024 * 1024)}`, 'is too large'],
    ['made of very many parts', '[a,'.padEnd(1_000_000, 'a,'), 'is too large'],
    [
      'deep by its aliases',
      `${Array.from({ length: 60 }, (_, i) => `a${i}: &a${i} [[[${i ? `*a${i - 1}` : ''}]]]`).join('\n')}`,
      'has aliases that cannot be resolved',
    ],
    [
      'made of aliases',
      `a: &a x\nb: [${'*a, '.repeat(200)}]`,
      'has aliases that cannot be resolved',
    ],
    ['an alias of itself', 'a: &a [*a]', 'has aliases that cannot be resolved'],
  ])('when it is %s, and the process goes on', async (_name, text, problem) => {
    expect(await problems(text)).toEqual([problem])
  })

  test.each([
    ['broken YAML', 'users:\n- name: u\n  user: {token: s3cret'],
    ['a token in the wrong place', 'users: s3cret'],
    ['a token of the wrong type', 'users: [{name: u, user: {token: [s3cret]}}]'],
    ['a key that is not base64', 'users: [{name: u, user: {client-key-data: "s3cret!"}}]'],
    ['an alias that does not exist', 'users: [{name: u, user: {token: *s3cret}}]'],
  ])('without quoting it: %s', async (_name, text) => {
    const found = await problems(text)
    expect(found.length).toBeGreaterThan(0)
    expect(found.join()).not.toContain('s3cret')
  })
})

describe('a new kubeconfig', () => {
  const facts = {
    clusterName: 'sallyport',
    server: 'https://127.0.0.1:6443',
    caPem: 'ca',
    userName: 'n',
  }

  test('has one context with an inline certificate [GND-R77]', async () => {
    const config = makeKubeconfig({
      ...facts,
      clientCertPem: 'cert',
      clientKeyPem: new Secret('key'),
    })
    expect(await renderKubeconfig(config)).toBe(`apiVersion: v1
kind: Config
current-context: n@sallyport
clusters:
  - name: sallyport
    cluster:
      server: https://127.0.0.1:6443
      certificate-authority-data: Y2E=
contexts:
  - name: n@sallyport
    context:
      cluster: sallyport
      user: "n"
users:
  - name: "n"
    user:
      client-certificate-data: Y2VydA==
      client-key-data: a2V5
`)
  })

  test('may have a token and a namespace instead', async () => {
    const config = makeKubeconfig({ ...facts, token: new Secret('t'), namespace: 'dev' })
    const again = await parseKubeconfig(await renderKubeconfig(config), 'x')
    expect(again.users.get('n')?.token?.reveal()).toBe('t')
    expect(again.contexts.get('n@sallyport')?.namespace).toBe('dev')
  })
})
