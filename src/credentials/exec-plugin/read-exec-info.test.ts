import { describe, expect, test } from 'vitest'
import { renderExecInfo } from '../exec/exec-info.ts'
import { execConfig, version } from '../exec/plugin-lab.suite.ts'
import { readExecInfo, requireCluster } from './request.ts'

const read = (text: string) => readExecInfo({ KUBERNETES_EXEC_INFO: text })
const config = (name: 'v1alpha1' | 'v1beta1' | 'v1') =>
  execConfig('plugin', { apiVersion: version(name), provideClusterInfo: true })

describe('what is asked', () => {
  test.each(['v1beta1', 'v1'] as const)('in %s, with the cluster [CRED-A1]', (name) => {
    const cluster = {
      server: 'https://a',
      tlsServerName: 'b',
      insecureSkipTlsVerify: true,
      certificateAuthorityData: 'PEM\n',
      proxyUrl: 'http://c',
      disableCompression: true,
      config: { d: 1 },
    }
    const info = read(renderExecInfo({ exec: config(name), cluster }, true))
    expect(info).toEqual({
      apiVersion: version(name),
      dialect: 'shipped',
      interactive: true,
      cluster,
    })
    expect(requireCluster(info)).toEqual(cluster)
  })

  test('a cluster without a config has none, though kubectl sends null [CRED-A1]', () => {
    const info = read(renderExecInfo({ exec: config('v1'), cluster: { server: 'a' } }, false))
    expect(info.cluster).toEqual({ server: 'a' })
  })

  test.each(['shipped', 'seed'] as const)(
    'in v1alpha1, %s, with the refusal [CRED-A1]',
    (dialect) => {
      const refusal = { status: 401, headers: { 'x-a': ['1', '2'] } }
      expect(read(renderExecInfo({ exec: config('v1alpha1'), refusal }, false, dialect))).toEqual({
        apiVersion: version('v1alpha1'),
        dialect,
        interactive: false,
        response: { code: 401, header: { 'X-A': ['1', '2'] } },
      })
    },
  )
})

describe('what cannot be used is refused', () => {
  test.each([
    ['nothing', undefined, 'is not set'],
    ['an empty text', '', 'is not set'],
    ['no JSON', 'canary', 'is not a JSON object'],
    ['a list', '[]', 'is not a JSON object'],
    ['no kind', '{}', 'kind'],
    ['another kind', '{"kind":"Pod","apiVersion":"v1"}', 'kind'],
    ['the seed’s kind in v1', `{"kind":"ExecInfo","apiVersion":"${version('v1')}"}`, 'kind'],
    ['no version', '{"kind":"ExecCredential"}', 'apiVersion'],
    ['another version', '{"kind":"ExecCredential","apiVersion":"v2"}', 'apiVersion'],
    [
      'a cluster without a server',
      `{"kind":"ExecCredential","apiVersion":"${version('v1')}","spec":{"cluster":{}}}`,
      'server',
    ],
  ])('%s [CRED-A1]', (_name, text, words) => {
    const attempt = () => readExecInfo({ KUBERNETES_EXEC_INFO: text })
    expect(attempt).toThrow(words)
    expect(attempt).not.toThrow('canary')
  })

  test('a missing cluster, if there must be one [CRED-A1]', () => {
    const info = read(`{"kind":"ExecCredential","apiVersion":"${version('v1')}","spec":{}}`)
    expect(() => requireCluster(info)).toThrow('provideClusterInfo: true')
  })
})
