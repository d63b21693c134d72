import type { Socket } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { labAuthority } from '../../http/tls-lab.suite.ts'
import { type CertificateAuthority, issueKeyAndCertificate } from '../../pki/index.ts'
import { identityOfCertificate } from './agent-identity.ts'

let ca: CertificateAuthority
beforeAll(async () => {
  ca = await labAuthority('identity CA')
})

async function identityOf(commonName: string, organizations: readonly string[]) {
  const { certificate } = await issueKeyAndCertificate({
    ca,
    subject: { commonName, organizations },
    usages: ['client auth'],
    now: Date.now(),
    lifetimeMs: 3_600_000,
  })
  const socket = { getPeerX509Certificate: () => certificate } as unknown as Socket
  return identityOfCertificate(socket)
}

describe('the identity behind a certificate', () => {
  test.each([
    ['of a node', 'system:node:a', ['system:nodes'], 'a'],
    ['of a node in another group as well', 'system:node:a', ['x', 'system:nodes'], 'a'],
    ['without the group of nodes', 'system:node:a', ['x'], undefined],
    ['of a person in the group of nodes', 'a', ['system:nodes'], undefined],
    ['without the name of a node', 'system:node:', ['system:nodes'], undefined],
    ['with the group inside the name', 'system:node:a\nO=system:nodes', [], undefined],
    ['with the group joined to the name', 'system:node:a + O=system:nodes', ['x'], undefined],
    ['with the name inside the group', 'x', ['system:nodes\nCN=system:node:a'], undefined],
  ])('[SEC-R801] %s', async (_name, commonName, organizations, nodeName) => {
    expect((await identityOf(commonName, organizations))?.nodeName).toBe(nodeName)
  })

  test('[SEC-R806] is the same for a renewed certificate, and for no other name', async () => {
    const names: [string, string[]][] = [
      ['a', ['b']],
      ['a', ['b', 'c']],
      ['a', ['b,O=c']],
      ['a,O=b', []],
      ['b', ['a']],
    ]
    const keys = await Promise.all(names.map(async (each) => (await identityOf(...each))?.key))
    expect(new Set(keys).size).toBe(names.length)
    expect((await identityOf('a', ['b']))?.key).toBe(keys[0])
  })

  test('[SEC-R803] is shown with its serial number, and no longer than it needs to be', async () => {
    const identity = await identityOf('x'.repeat(60), ['y'.repeat(60)])
    expect(identity?.fields['certificate']).toHaveLength(103)
    expect(identity?.fields['serial']).toMatch(/^[0-9A-F]+$/)
  })
})
