import { describe, expect, test } from 'vitest'
import { labAuthority } from '../../http/tls-lab.suite.ts'
import { readLocationDocument } from './document.ts'

const { bundlePem } = await labAuthority()
const base64 = Buffer.from(bundlePem).toString('base64')
const where = 'the document'

const yaml = (cluster: string, rest = ''): string =>
  `apiVersion: v1\nkind: Config\nclusters:\n- name: ""\n  cluster: {${cluster}}\n${rest}`
const good = `server: "https://api:6443", certificate-authority-data: ${base64}`

describe('[DISC-R6, DISC-R7] a document', () => {
  test.each([
    ['YAML', yaml(good)],
    [
      'JSON',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          {
            name: '',
            cluster: { server: 'https://api:6443', 'certificate-authority-data': base64 },
          },
        ],
      }),
    ],
    ["kubeadm's", yaml(good, 'contexts: null\ncurrent-context: ""\nusers: null\n')],
    [
      "kubeadm's of old",
      yaml(good, 'contexts: []\ncurrent-context: ""\npreferences: {}\nusers: []\n'),
    ],
    ['without a name at all', yaml(good).replace('name: ""\n  ', '')],
    ['with a byte order mark', `\uFEFF${yaml(good)}`],
  ])('in %s form says where the cluster is', async (_name, text) => {
    const { cluster, roots, warnings } = await readLocationDocument(text, { where })
    expect(cluster).toEqual({ server: 'https://api:6443', certificateAuthorityData: bundlePem })
    expect([roots.length, warnings]).toEqual([1, []])
  })

  test('with a named cluster is read with a warning', async () => {
    const { warnings } = await readLocationDocument(yaml(good).replace('""', 'prod'), { where })
    expect(warnings).toEqual([expect.stringContaining('"prod"')])
  })

  test('without a CA means the roots of this system [DISC-R5]', async () => {
    const { cluster, roots } = await readLocationDocument(yaml('server: "https://api"'), { where })
    expect([cluster, roots]).toEqual([{ server: 'https://api' }, []])
  })

  test('keeps tls-server-name and extensions [DISC-R10]', async () => {
    const more = 'tls-server-name: other, extensions: [{name: a, extension: {b: 1}}]'
    const { cluster } = await readLocationDocument(yaml(`${good}, ${more}`), { where })
    expect(cluster).toMatchObject({
      tlsServerName: 'other',
      extensions: new Map([['a', { b: 1 }]]),
    })
  })
})

test.each([
  ['nothing', '', 'there is nothing in it'],
  ['HTML', '<html></html>', 'does not locate'],
  ['another kind', 'kind: Secret', 'kind must be Config'],
  ['no cluster [DISC-R7]', 'apiVersion: v1\nkind: Config\n', 'has 0'],
  ['two clusters [DISC-R7]', yaml(good, '- {name: b, cluster: {server: "https://b"}}\n'), 'has 2'],
  [
    'two unnamed clusters [DISC-R7]',
    yaml(good, '- {name: "", cluster: {server: "https://b"}}\n'),
    'twice',
  ],
  ['a key twice', yaml(`${good}, server: "https://b"`), 'not valid YAML'],
  ['a user [DISC-R8]', yaml(good, 'users: [{name: a, user: {token: hunter2}}]\n'), 'it has users'],
  [
    'a context [DISC-R8]',
    yaml(good, 'contexts: [{name: a, context: {cluster: ""}}]\n'),
    'contexts',
  ],
  [
    'a credential in the cluster [DISC-R8]',
    yaml(`${good}, token: hunter2`),
    '"token" is a credential',
  ],
  ['a path to a CA [DISC-R9]', yaml('server: "https://a", certificate-authority: /ca'), 'embedded'],
  [
    'a CA that is none [DISC-R9]',
    yaml('server: "https://a", certificate-authority-data: YWJj'),
    'its CA',
  ],
  [
    'no verification [DISC-R10]',
    yaml('server: "https://a", insecure-skip-tls-verify: true'),
    'insecure',
  ],
  [
    'a password of a proxy [DISC-R10]',
    yaml(`${good}, proxy-url: "http://a:hunter2@p"`),
    'proxy-url',
  ],
  ['no server [DISC-R11]', yaml('certificate-authority-data: ""'), 'no server'],
  ['http [DISC-R11]', yaml('server: "http://a"'), 'an https URL'],
  ['a user in the server [DISC-R11]', yaml('server: "https://a:hunter2@b"'), 'no user'],
  ['a fragment [DISC-R11]', yaml('server: "https://a/#b"'), 'fragment'],
  ['an empty fragment [DISC-R11]', yaml('server: "https://a/#"'), 'fragment'],
  [
    'a further address in clear text [DISC-R11]',
    yaml(
      `${good}, extensions: [{name: sallyport.dev/cluster-location, extension: {addresses: ["http://b"]}}]`,
    ),
    'sallyport.dev/cluster-location',
  ],
])('%s is refused', async (_name, text, said) => {
  const reading = readLocationDocument(text, { where })
  await expect(reading).rejects.toMatchObject({ reason: 'document-invalid' })
  await expect(reading).rejects.toThrow(said)
  await expect(reading).rejects.not.toThrow('hunter2')
})

test('all problems are told at once', async () => {
  const text = yaml('server: "http://a", insecure-skip-tls-verify: true', 'users: [{name: a}]\n')
  await expect(readLocationDocument(text, { where })).rejects.toThrow(/users.*https.*insecure/)
})

test('a path to a CA in a local file is read from beside it and embedded [DISC-R9]', async () => {
  const text = yaml('server: "https://api", certificate-authority: ca.crt')
  const readCa = (path: string) => Promise.resolve(path === 'ca.crt' ? bundlePem : '')
  const { cluster, roots } = await readLocationDocument(text, { where, readCa })
  expect(cluster).toEqual({ server: 'https://api', certificateAuthorityData: bundlePem })
  expect(roots).toHaveLength(1)
})
