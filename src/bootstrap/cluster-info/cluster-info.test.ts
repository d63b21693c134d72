import { describe, expect, test } from 'vitest'
import { clusterInfoText, readClusterInfoText } from './cluster-info.ts'
import { labRoot } from './location.suite.ts'

const { pem } = await labRoot('kubernetes', Date.now())
const { pem: nextPem } = await labRoot('kubernetes-next', Date.now())

describe('the text of cluster-info [DISC-R49]', () => {
  test('has the form of kubeadm, byte for byte', () => {
    expect(clusterInfoText({ addresses: ['https://10.0.0.1:6443'], rootsPem: 'roots' })).toBe(
      `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: cm9vdHM=
    server: https://10.0.0.1:6443
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
`,
    )
  })

  test.each([
    [
      'everything',
      { clusterId: 'x"y', addresses: ['https://a', 'https://b'], rootsPem: pem, systemRoots: true },
    ],
    ['the roots of the system alone [DISC-R5]', { addresses: ['https://a.example.com'] }],
    ['an id [DISC-R44]', { addresses: ['https://a'], rootsPem: pem, clusterId: '1e10' }],
    [
      'further addresses [DISC-R45]',
      { addresses: ['https://a', 'https://[::1]:6443'], rootsPem: pem },
    ],
    [
      'the roots of the system as well [DISC-R47]',
      { addresses: ['https://a'], rootsPem: pem, systemRoots: true },
    ],
    ['several roots [DISC-R46]', { addresses: ['https://a'], rootsPem: pem + nextPem }],
  ] as const)('carries %s', async (_name, location) => {
    expect(await readClusterInfoText(clusterInfoText(location), 'it')).toEqual(location)
  })
})
