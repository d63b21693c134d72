import { describe, expect, test } from 'vitest'
import type { Attributes, Kind, KubeObject, UserInfo, WriteAttempt } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { certificateAdmission } from './certificate-admission.ts'
import { nodeAdmission } from './node-admission.ts'
import { nodeAuthorizer } from './node-authorizer.ts'
import { asks, node, person } from './policy-objects.suite.ts'

const signal = new AbortController().signal
const pod = (name: string, nodeName: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { nodeName },
})
const running = { ...pod('runs', 'a'), spec: { nodeName: 'a', serviceAccountName: 'bot' } }
const view = new FakeClusterView({ objects: [pod('mine', 'a'), pod('other', 'b'), running] })
const authorizer = nodeAuthorizer(view)
const lease = 'leases.coordination.k8s.io'
const csr = 'certificatesigningrequests.certificates.k8s.io'

function selecting(attributes: Attributes, fieldSelector: string): Attributes {
  const resource = { ...attributes.resource!, fieldSelector }
  return { ...attributes, resource }
}

describe('a node identity', () => {
  const a = node('a')
  const inLeases = { namespace: 'kube-node-lease' }
  test.each([
    [true, asks(a, 'create', 'nodes')],
    [true, asks(a, 'get', 'nodes', { name: 'a' })],
    [true, asks(a, 'watch', 'nodes', { name: 'a' })],
    [false, asks(a, 'get', 'nodes', { name: 'b' })],
    [false, asks(a, 'list', 'nodes')],
    [false, asks(a, 'delete', 'nodes', { name: 'a' })],
    [true, asks(a, 'patch', 'nodes/status', { name: 'a' })],
    [false, asks(a, 'get', 'nodes/proxy', { name: 'a' })],
    [true, asks(a, 'create', lease, inLeases)],
    [true, asks(a, 'update', lease, { ...inLeases, name: 'a' })],
    [false, asks(a, 'update', lease, { ...inLeases, name: 'b' })],
    [false, asks(a, 'update', lease, { namespace: 'kube-system', name: 'a' })],
    [false, asks(a, 'list', lease, inLeases)],
    [true, asks(a, 'create', csr)],
    [true, asks(a, 'watch', csr)],
    [false, asks(a, 'update', 'certificatesigningrequests/approval.certificates.k8s.io')],
    [true, asks(a, 'list', 'services')],
    [false, asks(a, 'update', 'services')],
    [true, asks(a, 'create', 'tokenreviews.authentication.k8s.io')],
    [true, asks(a, 'create', 'subjectaccessreviews.authorization.k8s.io')],
    [false, asks(a, 'get', 'secrets', { namespace: 'default', name: 'x' })],
    [false, asks(a, 'create', 'pods', { namespace: 'default' })],
    [false, asks(a, 'update', 'pods/status', { namespace: 'default', name: 'mine' })],
    [false, asks(a, 'create', 'events', { namespace: 'default' })],
    [true, asks(a, 'get', 'pods', { namespace: 'default', name: 'mine' })],
    [false, asks(a, 'get', 'pods', { namespace: 'default', name: 'other' })],
    [false, asks(a, 'get', 'pods', { namespace: 'default', name: 'none' })],
    [false, asks(a, 'list', 'pods')],
    [true, asks(a, 'create', 'serviceaccounts/token', { namespace: 'default', name: 'bot' })],
    [false, asks(a, 'create', 'serviceaccounts/token', { namespace: 'default', name: 'idle' })],
    [false, asks(a, 'create', 'serviceaccounts/token', { namespace: 'other', name: 'bot' })],
    [false, asks(a, 'create', 'serviceaccounts/token', { namespace: 'default' })],
    [false, asks(a, 'get', 'serviceaccounts/token', { namespace: 'default', name: 'bot' })],
    [
      false,
      asks(node('b'), 'create', 'serviceaccounts/token', { namespace: 'default', name: 'bot' }),
    ],
    [false, asks(a, 'get', 'toString')],
    [false, asks(person('system:node:a'), 'create', 'nodes')],
    [false, asks(person('a', 'system:nodes'), 'create', 'nodes')],
    [false, asks(node(''), 'create', 'nodes')],
    [false, { user: a, verb: 'get', path: '/metrics' }],
  ])('allowed is %s for %j [GND-R81]', async (allowed, attributes) => {
    expect((await authorizer.authorize(attributes, signal)).allowed).toBe(allowed)
  })

  test.each([
    [true, 'spec.nodeName=a'],
    [true, 'status.phase!=Failed,spec.nodeName==a'],
    [false, 'spec.nodeName=b'],
    [false, 'spec.nodeName!=a'],
    [false, 'spec.nodeName=ab'],
    [false, 'metadata.name!=x\\,spec.nodeName=a'],
    [false, ''],
  ])('may list pods: %s with selector %j [GND-R81]', async (allowed, selector) => {
    const attributes = selecting(asks(a, 'list', 'pods'), selector)
    expect((await authorizer.authorize(attributes, signal)).allowed).toBe(allowed)
  })

  test('is refused with Kubernetes’ reasons', async () => {
    const reason = async (attributes: Attributes) =>
      (await authorizer.authorize(attributes, signal)).reason
    expect(await reason(asks(a, 'list', 'nodes'))).toBe(
      "node 'a' cannot read all nodes, only its own Node object",
    )
    expect(await reason(asks(a, 'get', 'pods', { namespace: 'default', name: 'other' }))).toBe(
      "no relationship found between node 'a' and this object",
    )
    expect(await reason(asks(a, 'update', lease, { namespace: 'x', name: 'a' }))).toBe(
      'can only access leases in the "kube-node-lease" system namespace',
    )
    expect(await reason(asks(node(''), 'get', 'nodes'))).toBe(
      'unknown node for user "system:node:"',
    )
  })

  test('says that its rules cannot be listed', () => {
    expect(authorizer.rulesFor(a, 'default', signal)).toMatchObject({ incomplete: true })
    expect(authorizer.rulesFor(person('x'), 'default', signal)).toMatchObject({ incomplete: false })
  })
})

const nodeKind: Kind = {
  group: '',
  version: 'v1',
  kind: 'Node',
  resource: 'nodes',
  namespaced: false,
}
const leaseKind: Kind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  resource: 'leases',
  namespaced: true,
}
const csrKind: Kind = {
  group: 'certificates.k8s.io',
  version: 'v1',
  kind: 'CertificateSigningRequest',
  resource: 'certificatesigningrequests',
  namespaced: false,
}

/** In these tests a request is `CN` or `CN,O`. */
const readSubject = (request: string) => {
  if (request === 'garbage') throw new Error('not PEM')
  const [commonName = '', ...organizations] = request.split(',')
  return { commonName, organizations }
}

const write = (kind: Kind, user: UserInfo, parts: Partial<WriteAttempt>): WriteAttempt => ({
  user,
  operation: 'create',
  kind,
  subresource: '',
  namespace: '',
  name: 'a',
  dryRun: false,
  ...parts,
})

const nodeObject = (name: string, rest: Record<string, unknown> = {}, meta = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, ...meta },
  ...rest,
})

const addressed = (address: string) => ({ type: 'InternalIP', address })

const request = (signerName: string, subject: string, rest = {}): KubeObject => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: 'a' },
  spec: { signerName, request: subject },
  ...rest,
})

describe('on writes a node identity', () => {
  const a = node('a')
  const others = [
    nodeObject('b', {
      spec: { podCIDRs: ['10.1.1.0/24'] },
      status: {
        addresses: [
          '10.0.0.2',
          'fd00::2',
          'b.internal',
          '127.0.0.1',
          '::ffff:10.0.0.3',
          'B.Example.',
        ].map(addressed),
      },
    }),
  ]
  const podAt = (name: string, nodeName: string, ips: readonly string[], more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...more },
    spec: { nodeName },
    status: { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) },
  })
  const pods = [
    podAt('on-b', 'b', ['10.2.0.5', 'fd02::5']),
    podAt('on-a', 'a', ['10.2.0.6']),
    podAt('unbound', '', ['10.2.0.7']),
    podAt('workload', 'b', ['10.2.0.8'], { labels: { 'sallyport.dev/workload': 'b' } }),
    { ...podAt('over', 'b', []), status: { phase: 'Failed', podIP: '10.2.0.9' } },
  ]
  const admit = nodeAdmission(readSubject, new FakeClusterView({ objects: [...others, ...pods] }))
  const outcome = async (attempt: WriteAttempt) => {
    try {
      await admit(attempt, signal)
      return 'admitted'
    } catch (error) {
      return error instanceof Error ? error.message : 'thrown'
    }
  }
  const labelled = (labels: object) => nodeObject('a', {}, { labels })
  const owned = { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: '1' }] }
  const kubelet = 'kubernetes.io/kube-apiserver-client-kubelet'

  const listing = (address: string) =>
    nodeObject('a', { status: { addresses: [addressed(address)] } })

  test.each([
    ['its own', '10.0.0.1', true],
    ['loopback', '127.0.0.1', true],
    ['its own name', 'a', true],
    ["another node's", '10.0.0.2', false],
    ["another node's, mapped", '::ffff:10.0.0.2', false],
    ["another node's IPv6, written out", 'fd00:0::0002', false],
    ["one in another node's Pod CIDR", '10.1.1.9', false],
    ["another node's name", 'b', false],
    ["another node's second name", 'B.internal.', false],
    ["another node's, which that lists as mapped", '10.0.0.3', false],
    ["another node's name, which that lists with its final dot", 'b.example', false],
    ['loopback, mapped', '::ffff:127.0.0.1', true],
    ['that of a Pod on another node', '10.2.0.5', false],
    ['that of a Pod on another node, mapped', '::ffff:a02:5', false],
    ['the second one of a Pod on another node', 'FD02::0:5', false],
    ['that of a Pod on another node, with a zone', 'fd02::5%eth0', false],
    ['that of its own Pod', '10.2.0.6', true],
    ['that of a Pod on no node', '10.2.0.7', true],
    ['that of a workload of a machine', '10.2.0.8', true],
    ['that of a Pod that has ended', '10.2.0.9', true],
  ])('[SEC-R807] may list an address that is %s (%s): %s', async (_name, address, isAdmitted) => {
    const oldObject = nodeObject('a')
    for (const attempt of [
      write(nodeKind, a, { object: listing(address) }),
      write(nodeKind, a, {
        operation: 'update',
        subresource: 'status',
        object: listing(address),
        oldObject,
      }),
    ])
      expect(await outcome(attempt)).toMatch(isAdmitted ? /^admitted$/ : /belongs to node "b"$/)
  })

  const many = (count: number, network = '10.7') =>
    Array.from({ length: count }, (_, at) => addressed(`${network}.${at >> 8}.${at & 255}`))

  /** How often the status of other Nodes and Pods is read when a node lists so many addresses. */
  async function readsFor(count: number): Promise<number> {
    let reads = 0
    const counted = (object: KubeObject, status: object): KubeObject =>
      Object.defineProperty(object, 'status', {
        get: () => {
          reads += 1
          return status
        },
      })
    const nodes = ['b', 'c', 'd'].map((name, at) =>
      counted(nodeObject(name), { addresses: many(256, `10.${at}`) }),
    )
    const pods = ['x', 'y'].map((name, at) =>
      counted(
        { ...nodeObject(name, { spec: { nodeName: 'b' } }), kind: 'Pod' },
        { podIP: `10.8.0.${at}` },
      ),
    )
    const list = async ({ kind }: { readonly kind: string }) => ({
      items: kind === 'Pod' ? pods : nodes,
      resourceVersion: '1',
    })
    const object = nodeObject('a', { status: { addresses: many(count) } })
    await nodeAdmission(readSubject, { list })(write(nodeKind, a, { object }), signal)
    return reads
  }

  test('[SEC-R2450] Nodes and Pods are read as often for many addresses as for one', async () => {
    const once = await readsFor(1)
    expect(once).toBeGreaterThanOrEqual(5)
    expect(await readsFor(256)).toBe(once)
  })

  test('[SEC-R2450] lists at most 256 addresses, and may have fewer where there were more', async () => {
    const listed = (count: number) => nodeObject('a', { status: { addresses: many(count) } })
    const update = (from: number, to: number) =>
      outcome(
        write(nodeKind, a, {
          operation: 'update',
          subresource: 'status',
          oldObject: listed(from),
          object: listed(to),
        }),
      )
    const tooMany = 'node "a" is not allowed to list more than 256 addresses'
    expect(await outcome(write(nodeKind, a, { object: listed(257) }))).toContain(tooMany)
    expect(await update(1, 257)).toContain(tooMany)
    expect(await update(1, 256)).toBe('admitted')
    expect(await update(400, 300)).toBe('admitted')
  })

  test.each(['podCIDR', 'podCIDRs'])('[SEC-R807] does not set its own %s', async (field) => {
    const value = field === 'podCIDR' ? '10.0.0.0/8' : ['10.0.0.0/8']
    const object = nodeObject('a', { spec: { [field]: value } })
    expect(await outcome(write(nodeKind, a, { object }))).toContain(`not allowed to set ${field}`)
    const update = write(nodeKind, a, { operation: 'update', object, oldObject: nodeObject('a') })
    expect(await outcome(update)).toContain(`not allowed to set ${field}`)
    expect(await outcome({ ...update, oldObject: object })).toBe('admitted')
  })

  test.each([
    ['its own Node', write(nodeKind, a, { object: nodeObject('a') }), 'admitted'],
    [
      'another Node',
      write(nodeKind, a, { name: 'b', object: nodeObject('b') }),
      'nodes "b" is forbidden: node "a" is not allowed to modify node "b"',
    ],
    [
      'another Node’s status',
      write(nodeKind, a, { operation: 'update', subresource: 'status', name: 'b' }),
      'nodes "b" is forbidden: node "a" is not allowed to modify node "b"',
    ],
    [
      'labels that draw workloads',
      write(nodeKind, a, {
        object: labelled({ 'x.node-restriction.kubernetes.io/z': '1', 'foo.k8s.io/x': '2' }),
      }),
      'nodes "a" is forbidden: node "a" is not allowed to set the following labels: foo.k8s.io/x, x.node-restriction.kubernetes.io/z',
    ],
    [
      'labels of its own',
      write(nodeKind, a, {
        object: labelled({
          'kubernetes.io/hostname': 'a',
          'node.kubernetes.io/x': '1',
          'my.kubelet.kubernetes.io/y': '2',
          'example.com/z': '3',
          plain: '4',
        }),
      }),
      'admitted',
    ],
    [
      'a changed restricted label',
      write(nodeKind, a, {
        operation: 'update',
        object: labelled({}),
        oldObject: labelled({ 'node-role.kubernetes.io/control-plane': '' }),
      }),
      'nodes "a" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/control-plane',
    ],
    [
      'its taints',
      write(nodeKind, a, {
        operation: 'update',
        object: nodeObject('a', { spec: {} }),
        oldObject: nodeObject('a', { spec: { taints: [{ key: 'x' }] } }),
      }),
      'nodes "a" is forbidden: node "a" is not allowed to modify taints',
    ],
    [
      'its owners',
      write(nodeKind, a, {
        operation: 'update',
        object: nodeObject('a', {}, owned),
        oldObject: nodeObject('a'),
      }),
      'nodes "a" is forbidden: node "a" is not allowed to modify ownerReferences',
    ],
    ['its own Lease', write(leaseKind, a, { namespace: 'kube-node-lease' }), 'admitted'],
    [
      'another Lease',
      write(leaseKind, a, { namespace: 'kube-node-lease', name: 'b' }),
      'leases.coordination.k8s.io "b" is forbidden: can only access node lease with the same name as the requesting node',
    ],
    [
      'a Lease elsewhere',
      write(leaseKind, a, { namespace: 'kube-system' }),
      'leases.coordination.k8s.io "a" is forbidden: can only access leases in the "kube-node-lease" system namespace',
    ],
    [
      'a request for its own certificate',
      write(csrKind, a, { object: request(kubelet, 'system:node:a') }),
      'admitted',
    ],
    [
      'a request for another node’s certificate',
      write(csrKind, a, { object: request(kubelet, 'system:node:b') }),
      'certificatesigningrequests.certificates.k8s.io "a" is forbidden: can only create a node CSR with CN=system:node:a',
    ],
    [
      'a request that cannot be read',
      write(csrKind, a, { object: request(kubelet, 'garbage') }),
      'certificatesigningrequests.certificates.k8s.io "a" is forbidden: unable to parse csr: not PEM',
    ],
    [
      'an approval',
      write(csrKind, a, { operation: 'update', subresource: 'approval' }),
      'certificatesigningrequests.certificates.k8s.io "a" is forbidden: node "a" can only create CSRs',
    ],
    [
      'anything else, whatever RBAC says',
      write({ ...nodeKind, kind: 'Pod', resource: 'pods' }, a, {}),
      'pods "a" is forbidden: node "a" can only write its own Node, Lease and CSRs',
    ],
    [
      'anything, if it has no name',
      write(nodeKind, node(''), {}),
      'nodes "a" is forbidden: could not determine node from user "system:node:"',
    ],
  ])('%s [GND-R81]', async (_what, attempt, expected) => {
    expect(await outcome(attempt)).toBe(expected)
  })

  test('others are not held to that', async () => {
    const people = [person('alice'), person('system:node:a'), person('x', 'system:nodes')]
    for (const user of people) {
      expect(await outcome(write(nodeKind, user, { name: 'b' }))).toBe('admitted')
    }
  })
})

describe('certificate requests', () => {
  const client = 'kubernetes.io/kube-apiserver-client'
  const asked: string[] = []
  const admit = certificateAdmission({
    readSubject,
    authorizer: {
      authorize: ({ user, verb, resource }) => {
        asked.push(`${verb} ${resource?.resource}.${resource?.group} ${resource?.name}`)
        return { allowed: user.groups.includes(`${verb} ${resource?.name}`), reason: '' }
      },
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
  })
  const outcome = async (attempt: WriteAttempt) => {
    try {
      await admit(attempt, signal)
      return 'admitted'
    } catch (error) {
      return error instanceof Error ? error.message : 'thrown'
    }
  }
  const approval = (...groups: string[]) =>
    write(csrKind, person('u', ...groups), {
      operation: 'update',
      subresource: 'approval',
      object: request('other/signer', 'x'),
      oldObject: request(client, 'x'),
    })

  test('are approved by those who may approve for the stored signer', async () => {
    expect(await outcome(approval(`approve ${client}`))).toBe('admitted')
    expect(await outcome(approval('approve kubernetes.io/*'))).toBe('admitted')
    expect(await outcome(approval('approve other/signer', `sign ${client}`))).toBe(
      `certificatesigningrequests.certificates.k8s.io "a" is forbidden: user not permitted to approve requests with signerName "${client}"`,
    )
    expect(asked).toContain(`approve signers.certificates.k8s.io ${client}`)
  })

  test('are signed by those who may sign, other status is free', async () => {
    const signing = (status: object) =>
      write(csrKind, person('u'), {
        operation: 'update',
        subresource: 'status',
        object: request(client, 'x', { status }),
        oldObject: request(client, 'x'),
      })
    expect(await outcome(signing({ certificate: 'abc' }))).toContain('not permitted to sign')
    expect(await outcome(signing({ conditions: [{}] }))).toContain('not permitted to sign')
    expect(await outcome(signing({}))).toBe('admitted')
  })

  test('cannot ask for a client certificate of system:masters', async () => {
    const asking = (subject: string, signer = client) =>
      outcome(write(csrKind, person('u'), { object: request(signer, subject) }))
    expect(await asking('me,system:masters')).toBe(
      `certificatesigningrequests.certificates.k8s.io "a" is forbidden: use of ${client} signer with system:masters group is not allowed`,
    )
    expect(await asking('me,devs')).toBe('admitted')
    expect(await asking('garbage')).toContain('failed to parse CSR: not PEM')
    expect(await asking('me,system:masters', 'example.com/own')).toBe('admitted')
  })
})
