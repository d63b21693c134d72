import { type ContestCase, credential, group, printing } from '../contest-case.ts'

const good = credential({ token: 'plain-token' })
const beta = (status: object): string =>
  JSON.stringify({ kind: 'ExecCredential', apiVersion: `${group}/v1beta1`, status })
const v1beta1 = { apiVersion: `${group}/v1beta1` }
const section = (name: string, rest: object, output = good): ContestCase => ({
  name: `section: ${name}`,
  user: printing(output, rest),
})

/** Table 2.5 of the fact sheet: what an exec section may say, and what its plugin is told. */
export const sectionCases: readonly ContestCase[] = [
  section('v1beta1', v1beta1, beta({ token: 'beta-token' })),
  section(
    'v1beta1 without a mode',
    { ...v1beta1, interactiveMode: undefined },
    beta({ token: 't' }),
  ),
  section('v1 without a mode', { interactiveMode: undefined }),
  section('an empty mode', { interactiveMode: '' }),
  section('an unknown mode', { interactiveMode: 'Sometimes' }),
  section('a mode in lower case', { interactiveMode: 'never' }),
  section('no command', { command: undefined }),
  section('an empty command', { command: '' }),
  section('no apiVersion', { apiVersion: undefined }),
  section(
    'apiVersion v1alpha1',
    { apiVersion: `${group}/v1alpha1` },
    JSON.stringify({
      kind: 'ExecCredential',
      apiVersion: `${group}/v1alpha1`,
      status: { token: 'alpha-token' },
    }),
  ),
  section('an apiVersion that nobody knows', { apiVersion: `${group}/v2` }),
  section('args null', { args: null }),
  section('args with a number', { args: ['a', 1] }),
  section('args are a text', { args: 'a b' }),
  section('env null', { env: null }),
  section('env with a number', { env: [{ name: 'N', value: 1 }] }),
  section('env without a name', { env: [{ value: 'x' }] }),
  section('env with an empty name', { env: [{ name: '', value: 'x' }] }),
  section('unknown fields', { more: true, colour: 'red' }),
  section('provideClusterInfo is a text', { provideClusterInfo: 'true' }),
  section('installHint is a number', { installHint: 5 }),
  section('interactiveMode is a boolean', { interactiveMode: false }),
  {
    name: 'section: exec beside auth-provider',
    user: { ...printing(good), 'auth-provider': { name: 'oidc', config: {} } },
  },
  { name: 'section: auth-provider gcp', user: { 'auth-provider': { name: 'gcp', config: {} } } },
  { name: 'section: auth-provider azure', user: { 'auth-provider': { name: 'azure' } } },
  { name: 'section: auth-provider of nobody', user: { 'auth-provider': { name: 'openstack' } } },
  ...(
    [
      ['with the cluster', {}],
      ['with a server name', { 'tls-server-name': 'kubernetes' }],
      ['with compression off', { 'disable-compression': true }],
      [
        'without verification',
        { 'certificate-authority': undefined, 'insecure-skip-tls-verify': true },
      ],
      [
        'with an extension',
        {
          extensions: [
            {
              name: `${group}/exec`,
              extension: { audience: 'a<b>&c', n: [1, 2.5, null], deep: { yes: true } },
            },
          ],
        },
      ],
      [
        'with an extension of another name',
        { extensions: [{ name: 'other', extension: { audience: 'x' } }] },
      ],
      [
        'with an extension that is a text',
        { extensions: [{ name: `${group}/exec`, extension: 'text' }] },
      ],
    ] as const
  ).map(
    ([name, cluster]): ContestCase => ({
      name: `exec info: ${name}`,
      user: printing(good, { provideClusterInfo: true }),
      cluster,
    }),
  ),
  {
    name: 'exec info: with a bare n as a key, which YAML 1.1 takes for false',
    user: printing(good, { provideClusterInfo: true }),
    cluster: { extensions: [{ name: `${group}/exec`, extension: { KEY: 1 } }] },
    text: (kubeconfig) => kubeconfig.replace('"KEY":1', 'n: 1'),
  },
  {
    name: 'exec info: v1beta1 with the cluster',
    user: printing(beta({ token: 't' }), { ...v1beta1, provideClusterInfo: true }),
  },
  {
    name: 'exec info: an authority larger than a variable may be',
    user: printing(good, { provideClusterInfo: true }),
    cluster: { extensions: [{ name: `${group}/exec`, extension: { long: 'x'.repeat(140_000) } }] },
  },
]
