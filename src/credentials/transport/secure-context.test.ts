import { describe, expect, test } from 'vitest'
import { labAuthority } from '../../http/tls-lab.suite.ts'
import { checkTlsMaterial } from './dial.ts'

describe('the authorities of a cluster', () => {
  test.each(['', '\n', 'not a certificate', '-----BEGIN PRIVATE KEY-----'])(
    'are never the empty set, or those of the system, by mistake: %j',
    (caPem) => {
      expect(() => checkTlsMaterial(caPem, undefined)).toThrow('holds no certificate')
    },
  )

  test('are those of the system where the cluster names none', async () => {
    expect(() => checkTlsMaterial(undefined, undefined)).not.toThrow()
    const { bundlePem } = await labAuthority()
    expect(() => checkTlsMaterial(bundlePem, undefined)).not.toThrow()
  })
})
