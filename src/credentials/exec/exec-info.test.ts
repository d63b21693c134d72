import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { execClusterInfo, renderExecInfo } from './exec-info.ts'
import { execConfig, failureOf, freshDirectory, version } from './plugin-lab.suite.ts'

const refusal = {
  status: 401,
  headers: { 'www-authenticate': ['Bearer realm="a"', 'Basic'], 'x-request-id': ['7'] },
}
const of = (name: 'v1alpha1' | 'v1beta1' | 'v1', more = {}) => ({
  exec: execConfig('plugin', { apiVersion: version(name), ...more }),
})

describe('the exec info is kubectl’s, byte by byte', () => {
  test.each([
    ['v1', false, '{"interactive":false}'],
    ['v1', true, '{"interactive":true}'],
    ['v1beta1', false, '{"interactive":false}'],
    ['v1alpha1', false, '{}'],
    ['v1alpha1', true, '{"interactive":true}'],
  ] as const)('%s, interactive %s [CRED-E2, CRED-R3]', (name, interactive, spec) => {
    expect(renderExecInfo(of(name), interactive)).toBe(
      `{"kind":"ExecCredential","apiVersion":"${version(name)}","spec":${spec}}\n`,
    )
  })

  test('only v1alpha1 tells which answer made the run necessary [CRED-R10]', () => {
    const told = JSON.parse(renderExecInfo({ ...of('v1alpha1'), refusal }, false))
    expect(told.spec.response).toEqual({
      code: 401,
      header: { 'Www-Authenticate': ['Bearer realm="a"', 'Basic'], 'X-Request-Id': ['7'] },
    })
    expect(renderExecInfo({ ...of('v1'), refusal }, false)).not.toContain('response')
  })
})

describe('the seed’s ExecInfo', () => {
  test('carries response and interactive at the top [CRED-R9, CRED-R10]', () => {
    expect(JSON.parse(renderExecInfo({ ...of('v1alpha1'), refusal }, true, 'seed'))).toEqual({
      kind: 'ExecInfo',
      apiVersion: version('v1alpha1'),
      response: {
        code: 401,
        header: { 'WWW-Authenticate': ['Bearer realm="a"', 'Basic'], 'X-Request-Id': ['7'] },
      },
      interactive: true,
    })
  })

  test('leaves out what is empty [CRED-R9, CRED-R10]', () => {
    expect(renderExecInfo(of('v1alpha1'), false, 'seed')).toBe(
      `{"kind":"ExecInfo","apiVersion":"${version('v1alpha1')}"}\n`,
    )
  })

  test('is for v1alpha1 alone', () => {
    expect(renderExecInfo(of('v1'), false, 'seed')).toContain('"kind":"ExecCredential"')
  })
})

describe('provideClusterInfo', () => {
  const pem = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'
  const cluster = {
    server: 'https://[::1]:6443/a&b',
    tlsServerName: 'api.example',
    insecureSkipTlsVerify: true,
    proxyUrl: 'http://proxy:3128',
    disableCompression: true,
    extensions: new Map<string, unknown>([
      ['client.authentication.k8s.io/exec', { z: [1, { y: null, x: '<' }], a: 'b' }],
      ['other', {}],
    ]),
  }

  test('adds every field, with the content of the CA file in place of its path [CRED-E3]', async () => {
    const file = join(freshDirectory(), 'ca.crt')
    writeFileSync(file, pem)
    const info = await execClusterInfo({ ...cluster, certificateAuthority: file })
    const text = renderExecInfo({ ...of('v1', { provideClusterInfo: true }), cluster: info }, false)
    expect(text).toBe(
      `{"kind":"ExecCredential","apiVersion":"${version('v1')}","spec":{"cluster":{` +
        '"server":"https://[::1]:6443/a\\u0026b","tls-server-name":"api.example",' +
        '"insecure-skip-tls-verify":true,' +
        `"certificate-authority-data":"${Buffer.from(pem).toString('base64')}",` +
        '"proxy-url":"http://proxy:3128","disable-compression":true,' +
        '"config":{"a":"b","z":[1,{"x":"\\u003c","y":null}]}},"interactive":false}}\n',
    )
  })

  test('inline data goes before the file, and what is not set is not told [CRED-E3]', async () => {
    const info = await execClusterInfo({
      server: 'https://a?b=c',
      certificateAuthority: '/does/not/exist',
      certificateAuthorityData: pem,
    })
    const run = { ...of('v1beta1', { provideClusterInfo: true }), cluster: info }
    expect(JSON.parse(renderExecInfo(run, false)).spec.cluster).toEqual({
      server: 'https://a',
      'certificate-authority-data': Buffer.from(pem).toString('base64'),
      config: null,
    })
  })

  test('off means that nothing is told, and v1alpha1 has no place for it [CRED-E3]', async () => {
    const info = await execClusterInfo({ server: 'https://a' })
    expect(renderExecInfo({ ...of('v1'), cluster: info }, false)).not.toContain('cluster')
    const run = { ...of('v1alpha1', { provideClusterInfo: true }), cluster: info }
    expect(renderExecInfo(run, false)).not.toContain('cluster')
  })

  test('a CA file that cannot be read is named', async () => {
    const error = await failureOf(
      execClusterInfo({ server: 'https://a', certificateAuthority: '/no/ca.crt' }),
    )
    expect(error).toMatchObject({ code: 'FILE' })
    expect(error.message).toContain('/no/ca.crt')
  })
})
