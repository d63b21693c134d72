import { describe, expect, test } from 'vitest'
import { signers } from '../../authz/index.ts'
import { type Authorizer, machineIdentity, type UserInfo } from '../../core/index.ts'
import { attribute, der, distinguishedName } from '../../pki/certificate-lab.suite.ts'
import { altNames, labCsr } from '../../pki/csr-lab.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { decideRequest } from './approve.ts'
import { nodeUser } from './request-lab.suite.ts'
import { readSigningRequest } from './signing-request.ts'

const { userPrefix, group, loopbackGroup } = machineIdentity
const machine = (name: string, ...groups: string[]): UserInfo => ({
  username: `${userPrefix}${name}`,
  groups: [group, ...groups, 'system:authenticated'],
})
const laptop = machine('laptop')

const csr = (commonName: string, organizations: readonly string[], dns?: string): string =>
  labCsr({
    subject: distinguishedName(...organizations.map((name) => [attribute('O', name)]), [
      attribute('CN', commonName),
    ]),
    ...(dns !== undefined && { extensions: [altNames(der(0x82, dns))] }),
  })
const own = csr(laptop.username, [group])

interface Asked {
  readonly requester: UserInfo
  readonly pem: string
  readonly signer?: string
  readonly usages?: readonly string[]
  readonly mayRenew?: boolean
}

const decided = async ({ requester, pem, mayRenew = true, ...more }: Asked): Promise<unknown> => {
  const request = readSigningRequest({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'r', uid: 'u' },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: more.signer ?? signers.client,
      usages: more.usages ?? ['digital signature', 'client auth'],
      ...requester,
    },
  })
  const authorizer: Authorizer = {
    authorize: ({ user, resource }) => ({
      allowed:
        mayRenew && resource?.subresource === 'selfmachineclient' && user.groups.includes(group),
      reason: '',
    }),
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
  }
  const parts = { view: new FakeClusterView(), authorizer, nowMs: 0 }
  const verdict = await decideRequest(request, parts, new AbortController().signal)
  return typeof verdict === 'object' ? `${verdict.type}:${verdict.reason}` : verdict
}

describe('a machine [ISS-W6]', () => {
  test('renews its own certificate', async () => {
    expect(await decided({ requester: laptop, pem: own })).toBe('Approved:AutoApproved')
  })

  test('does so only as long as it has the right', async () => {
    expect(await decided({ requester: laptop, pem: own, mayRenew: false })).toBe('no-right')
  })

  test.each<[string, Asked]>([
    ['the name of another machine', { requester: machine('other'), pem: own }],
    ['another group', { requester: laptop, pem: csr(laptop.username, ['devs']) }],
    ['no group', { requester: laptop, pem: csr(laptop.username, []) }],
    ['a group more', { requester: laptop, pem: csr(laptop.username, [group, 'devs']) }],
    [
      'the group of the server’s loopback, though it is in it',
      {
        requester: machine('laptop', loopbackGroup),
        pem: csr(laptop.username, [group, loopbackGroup]),
      },
    ],
    ['a DNS name', { requester: laptop, pem: csr(laptop.username, [group], 'api.example') }],
    ['a server’s usage', { requester: laptop, pem: own, usages: ['server auth'] }],
    ['a signer of nodes', { requester: laptop, pem: own, signer: signers.kubeletClient }],
    ['no name at all', { requester: machine(''), pem: csr(userPrefix, [group]) }],
    ['nonsense', { requester: laptop, pem: 'x' }],
  ])('is not approved by the server for %s', async (_name, asked) => {
    expect(await decided(asked)).toBeUndefined()
  })

  test.each<[string, UserInfo]>([
    ['a person of that name without the group', { ...laptop, groups: ['system:authenticated'] }],
    ['a node', nodeUser('laptop')],
    ['a bootstrap token', { username: 'system:bootstrap:abcdef', groups: [group] }],
  ])('is not what %s is', async (_name, requester) => {
    expect(await decided({ requester, pem: own })).toBeUndefined()
  })
})
