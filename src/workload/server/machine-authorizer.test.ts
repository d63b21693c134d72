import { expect, test } from 'vitest'
import {
  type Attributes,
  type KubeObject,
  machineIdentity,
  type UserInfo,
  workloadMark,
} from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { machineAuthorizer } from './machine-authorizer.ts'

const pod = (name: string, mark?: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'n', ...(mark && { labels: { [workloadMark]: mark } }) },
  spec: { nodeName: 'a' },
})
const request = (name: string, username: string): KubeObject => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name },
  spec: { username },
})
const view = new FakeClusterView({
  objects: [
    pod('own', 'a'),
    pod('other', 'b'),
    pod('plain'),
    request('mine', `${machineIdentity.userPrefix}a`),
    request('yours', `${machineIdentity.userPrefix}b`),
  ],
})
const requests = {
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
  namespace: '',
}
const authorizer = machineAuthorizer(view)
const a: UserInfo = {
  username: `${machineIdentity.userPrefix}a`,
  groups: [machineIdentity.group],
}

const asks = (verb: string, parts: object, user = a): Attributes => ({
  user,
  verb,
  resource: {
    group: '',
    version: 'v1',
    resource: 'pods',
    subresource: '',
    namespace: 'n',
    name: '',
    ...parts,
  },
})

test.each<[boolean, Attributes]>([
  [true, asks('get', { ...requests, name: 'mine' })],
  [true, asks('watch', { ...requests, name: 'mine' })],
  [false, asks('get', { ...requests, name: 'yours' })],
  [false, asks('get', { ...requests, name: 'none' })],
  [false, asks('list', requests)],
  [false, asks('delete', { ...requests, name: 'mine' })],
  [false, asks('get', { ...requests, name: 'mine', subresource: 'approval' })],
  [true, asks('get', { name: 'own' })],
  [false, asks('get', { name: 'other' })],
  [false, asks('get', { name: 'plain' })],
  [false, asks('get', { name: 'none' })],
  [true, asks('list', { fieldSelector: 'spec.nodeName=a' })],
  [true, asks('watch', { fieldSelector: 'metadata.name=own,spec.nodeName=a' })],
  [false, asks('list', { fieldSelector: 'spec.nodeName=b' })],
  [false, asks('list', {})],
  [false, asks('create', {})],
  [false, asks('get', { name: 'own', subresource: 'proxy' })],
  [false, asks('get', { name: 'own', resource: 'secrets' })],
  [false, asks('get', { name: 'own' }, { ...a, groups: [] })],
  [false, asks('get', { name: 'own' }, { ...a, username: 'alice' })],
  [false, { user: a, verb: 'get', path: '/metrics' }],
])('a machine sees its own Pods and requests: %s for %j [ISS-W6]', async (allowed, attributes) => {
  const decision = await authorizer.authorize(attributes, new AbortController().signal)
  expect(decision.allowed).toBe(allowed)
})
