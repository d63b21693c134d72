import { describe, expect, test } from 'vitest'
import { decodeOutput } from '../exec/decode-output.ts'
import { Heard, version } from '../exec/plugin-lab.suite.ts'
import type { ExecInfo } from './request.ts'
import { renderCredential, writeCredential } from './response.ts'

const info = (
  name: 'v1alpha1' | 'v1beta1' | 'v1',
  dialect: 'shipped' | 'seed' = 'shipped',
): ExecInfo => ({ apiVersion: version(name), dialect, interactive: false })
const expiresAt = Date.UTC(2026, 0, 1, 0, 0, 0, 999)

describe('an answer', () => {
  test.each([info('v1alpha1'), info('v1alpha1', 'seed'), info('v1beta1'), info('v1')])(
    'is understood by whoever asked: $apiVersion $dialect [CRED-A1]',
    async (asked) => {
      const text = renderCredential(asked, { token: 'abc', expiresAt: new Date(expiresAt) })
      const plugin = { command: 'plugin' }
      const credential = await decodeOutput(Buffer.from(text), asked.apiVersion, plugin)
      expect(credential.token?.reveal()).toBe('abc')
      expect(credential.expiresAt).toBe(Date.UTC(2026, 0, 1))
    },
  )

  test('has the shape of its version [CRED-A1]', () => {
    const pair = { clientCertificateData: 'cert', clientKeyData: 'key' }
    expect(JSON.parse(renderCredential(info('v1'), { ...pair, expiresAt }))).toEqual({
      kind: 'ExecCredential',
      apiVersion: version('v1'),
      status: { ...pair, expirationTimestamp: '2026-01-01T00:00:00Z' },
    })
    expect(JSON.parse(renderCredential(info('v1alpha1', 'seed'), { token: 'a' }))).toEqual({
      kind: 'ExecCredentials',
      apiVersion: version('v1alpha1'),
      token: 'a',
    })
  })

  test('is written as a line', async () => {
    const stdout = new Heard()
    await writeCredential(info('v1'), { token: 'a' }, stdout)
    expect(stdout.text).toMatch(/^\{.*\}\n$/)
  })

  test.each([
    ['nothing', {}],
    ['an empty token', { token: '' }],
    ['a certificate alone', { token: 'a', clientCertificateData: 'x' }],
    ['a key alone', { token: 'a', clientKeyData: 'x' }],
    ['a token with a line break', { token: 'a\n' }],
    ['no time', { token: 'a', expiresAt: Number.NaN }],
    ['no date', { token: 'a', expiresAt: new Date('soon') }],
  ])('is not made of %s [CRED-A1]', (_name, credential) => {
    expect(() => renderCredential(info('v1'), credential)).toThrow(TypeError)
  })
})
