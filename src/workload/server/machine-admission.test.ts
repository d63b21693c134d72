import { describe, expect, test } from 'vitest'
import {
  type KubeObject,
  machineIdentity,
  type UserInfo,
  type WriteAttempt,
  wellKnownKinds,
  workloadMark,
} from '../../core/index.ts'
import { attribute, distinguishedName } from '../../pki/certificate-lab.suite.ts'
import { labCsr } from '../../pki/csr-lab.suite.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { machineAdmission } from './machine-admission.ts'

const machine = (name: string, ...groups: string[]): UserInfo => ({
  username: `${machineIdentity.userPrefix}${name}`,
  groups: [machineIdentity.group, ...groups],
})
const a = machine('a')
const local = machine('a', machineIdentity.loopbackGroup)
const admin: UserInfo = { username: 'root', groups: ['system:masters'] }

interface PodParts {
  readonly mark?: string
  readonly node?: string
  readonly ip?: string
  readonly meta?: object
}

const pod = ({ mark, node = 'a', ip, meta }: PodParts = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'x',
    namespace: 'n',
    labels: mark === undefined ? {} : { [workloadMark]: mark },
    ...meta,
  },
  spec: { nodeName: node },
  ...(ip !== undefined && { status: { podIP: ip, podIPs: [{ ip }] } }),
})
const lease = (mark?: string): KubeObject => ({ ...pod(mark ? { mark } : {}), kind: 'Lease' })

const renewed = { ...lease('a'), spec: { renewTime: 'now' } }
const held: KubeObject = {
  ...lease('a'),
  metadata: { ...lease('a').metadata, finalizers: ['foregroundDeletion'] },
}

const view = new FakeClusterView({ objects: [pod({ mark: 'a' })] })
const admit = machineAdmission(view)

async function outcome(user: UserInfo, parts: Partial<WriteAttempt>): Promise<string> {
  const attempt: WriteAttempt = {
    user,
    operation: 'create',
    kind: wellKnownKinds.pod,
    subresource: '',
    namespace: 'n',
    name: 'x',
    dryRun: false,
    ...parts,
  }
  try {
    await admit(attempt, new AbortController().signal)
    return 'admitted'
  } catch (error) {
    return error instanceof Error ? error.message : 'thrown'
  }
}

const update = (oldObject: KubeObject, object: KubeObject, subresource = '') =>
  ({ operation: 'update', oldObject, object, subresource }) as const
const status = (oldObject: KubeObject, object: KubeObject) => update(oldObject, object, 'status')
const own = pod({ mark: 'a' })
const at = (ip: string) => pod({ mark: 'a', ip })
const leases = { kind: wellKnownKinds.lease }
const notOwn = 'machine "a" can only write Pods with the label sallyport.dev/workload=a'

const csr = (commonName: string, organization: string = machineIdentity.group) => {
  const subject = distinguishedName([attribute('O', organization)], [attribute('CN', commonName)])
  const { kind, group, version } = wellKnownKinds.certificateSigningRequest
  const object: KubeObject = {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name: 'x' },
    spec: { request: Buffer.from(labCsr({ subject })).toString('base64') },
  }
  return { kind: wellKnownKinds.certificateSigningRequest, object }
}

describe('the identity of a machine [ISS-W6]', () => {
  test.each<[string, UserInfo, Partial<WriteAttempt>, string]>([
    ['creates its Pod', a, { object: own }, 'admitted'],
    ['creates no Pod without the mark', a, { object: pod() }, notOwn],
    ['creates no Pod of another', a, { object: pod({ mark: 'b', node: 'b' }) }, notOwn],
    [
      'creates no Pod that says it runs elsewhere',
      a,
      { object: pod({ mark: 'a', node: 'b' }) },
      'spec.nodeName must be "a"',
    ],
    [
      'creates no Pod that is owned',
      a,
      { object: pod({ mark: 'a', meta: { labels: own.metadata.labels, ownerReferences: [{}] } }) },
      'has no owner',
    ],
    ['writes the status of its Pod', a, status(own, at('10.0.0.1')), 'admitted'],
    ['writes no status of another’s Pod', a, status(pod({ mark: 'b' }), own), notOwn],
    ['does not give its mark away', a, status(own, pod({ mark: 'b' })), notOwn],
    ['does not take a Pod over', a, update(pod(), own), notOwn],
    ['deletes its Pod', a, { operation: 'delete', oldObject: own }, 'admitted'],
    ['deletes no other', a, { operation: 'delete', oldObject: pod({ mark: 'b' }) }, notOwn],
    ['deletes no Pod of people', a, { operation: 'delete', oldObject: pod() }, notOwn],
    ['is on loopback where that is the server’s', local, status(own, at('127.0.0.1')), 'admitted'],
    ['is on ::1 there', local, status(own, at('::1')), 'admitted'],
    ['is on loopback nowhere else', a, status(own, at('127.0.0.1')), 'is on loopback'],
    ['is not link-local', local, status(own, at('169.254.169.254')), 'link-local'],
    ['is somewhere', local, status(own, at('0.0.0.0')), 'unspecified'],
    ['has a Lease for its Pod', a, { ...leases, object: lease('a') }, 'admitted'],
    [
      'has no Lease of another name',
      a,
      { ...leases, name: 'leader', object: lease('a') },
      'there is no Pod "leader" of machine "a"',
    ],
    ['has no Lease without the mark', a, { ...leases, object: lease() }, 'only write Leases'],
    [
      'renews no Lease of others',
      a,
      { ...leases, ...update(lease('b'), lease('a')) },
      'only write Leases',
    ],
    ['asks', a, { kind: { ...wellKnownKinds.pod, group: 'authentication.k8s.io' } }, 'admitted'],
    ['renews its certificate', a, csr(`${machineIdentity.userPrefix}a`), 'admitted'],
    [
      'asks for no other name',
      a,
      csr(`${machineIdentity.userPrefix}b`),
      'of its own name and group',
    ],
    ['asks for no other group', a, csr(a.username, 'system:nodes'), 'of its own name and group'],
    ['approves nothing', a, { ...csr(a.username), subresource: 'approval' }, 'only ask for'],
    ['deletes no request', a, { ...csr(a.username), operation: 'delete' }, 'only ask for'],
    [
      'writes nothing else, whatever RBAC says',
      a,
      { kind: wellKnownKinds.secret },
      'machine "a" can only write its own Pods and Leases',
    ],
    ['has a name', machine(''), { object: pod({ mark: '' }) }, 'is no name of a machine'],
  ])('%s', async (_what, user, attempt, expected) => {
    expect(await outcome(user, attempt)).toContain(expected)
  })
})

const onlyRun = 'the label sallyport.dev/workload is written by `workload run` only'

describe('others, even superusers [ISS-W6]', () => {
  test.each<[string, Partial<WriteAttempt>, string]>([
    ['create Pods', { object: pod() }, 'admitted'],
    ['create none with the mark', { object: own }, onlyRun],
    ['add no mark', update(pod(), own), onlyRun],
    ['change no mark', update(pod({ mark: 'b' }), own), onlyRun],
    ['remove no mark', update(own, pod()), onlyRun],
    ['add no mark by way of the status', status(pod(), own), onlyRun],
    ['write no status of a workload', status(own, at('10.0.0.9')), 'only machine "a" can write'],
    ['may label a workload', update(own, own), 'admitted'],
    ['may delete a workload', { operation: 'delete', oldObject: own }, 'admitted'],
    ['put no Pod on loopback', status(pod(), pod({ ip: '127.0.0.1' })), 'is on loopback'],
    ['put Pods elsewhere', status(pod(), pod({ ip: '10.0.0.1' })), 'admitted'],
    ['forge no Lease', { ...leases, object: lease('a') }, onlyRun],
    ['renew no Lease', { ...leases, ...update(lease('a'), renewed) }, 'only machine "a"'],
    ['may take finalizers off a Lease', { ...leases, ...update(held, lease('a')) }, 'admitted'],
    ['write Leases of their own', { ...leases, object: lease() }, 'admitted'],
    ['may use the label on other kinds', { kind: wellKnownKinds.service, object: own }, 'admitted'],
  ])('%s', async (_what, attempt, expected) => {
    expect(await outcome(admin, attempt)).toContain(expected)
  })

  test('a Pod that was on loopback before is written as before', async () => {
    const old = pod({ ip: '127.0.0.1' })
    expect(await outcome(admin, status(old, old))).toBe('admitted')
  })
})
