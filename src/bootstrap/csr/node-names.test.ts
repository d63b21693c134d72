import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import { listRevocations } from '../../authn/index.ts'
import { signers } from '../../authz/index.ts'
import { silentLogger, systemClock, type UserInfo, wellKnownKinds } from '../../core/index.ts'
import { ecKey } from '../../pki/csr-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import { parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { type StoredToken, tokenSecret } from '../tokens/stored-token.ts'
import { createCertificateController } from './csr-controller.ts'
import { createNodeNameCleaner, nodeNameAdmission } from './node-names.ts'
import {
  bearerOf,
  joinRights,
  labAuthority,
  nodeCsr,
  nodeUser,
  submit,
  untilAnswered,
} from './request-lab.suite.ts'

const hourMs = 3_600_000
const node = 'n1'

let ca: CertificateAuthority
beforeAll(async () => {
  ca = await labAuthority()
})

const tokens: Readonly<Record<string, Partial<StoredToken>>> = {
  first1: {},
  second: {},
  bound1: { boundNodeName: node },
  repla1: { boundNodeName: node, maxUses: 1, replaceNodeName: node },
  other1: { boundNodeName: 'n2', maxUses: 1, replaceNodeName: 'n2' },
  expire: { boundNodeName: node, maxUses: 1, replaceNodeName: node, expiresAt: 1 },
}

async function startCluster(): Promise<LocalCluster> {
  const cluster = await LocalCluster.open('kube-system', 'kube-node-lease')
  for (const [id, changes] of Object.entries(tokens))
    await cluster.create(
      tokenSecret({
        token: parseBootstrapToken(`${id}.0123456789abcdef`),
        usages: new Set(['signing', 'authentication']),
        extraGroups: [],
        ...changes,
      }),
    )
  cluster.run(controllerOf(cluster))
  return cluster
}

const controllerOf = (cluster: LocalCluster) =>
  createCertificateController({
    view: cluster.view,
    authorizer: joinRights,
    clock: systemClock,
    log: silentLogger,
    ca: () => ca,
    maxLifetimeMs: 365 * 24 * hourMs,
    metrics: { certificate: () => {} },
  })

const byHand = () => [
  { type: 'Approved', status: 'True', reason: 'ByHand', lastUpdateTime: new Date().toISOString() },
]

let count = 0
interface Order {
  readonly requester: UserInfo
  readonly key?: ReturnType<typeof ecKey>
  readonly name?: string
  readonly signer?: string
  readonly approved?: boolean
}

/** Requests a certificate for `node`; the last condition, and the certificate if there is one. */
async function request(cluster: LocalCluster, { requester, key, signer, approved }: Order) {
  const name = `csr-${count++}`
  await submit(cluster, {
    name,
    pem: nodeCsr(node, key),
    requester,
    ...(signer !== undefined && { signer }),
    ...(approved && { conditions: byHand() }),
  })
  const { said, certificate } = await untilAnswered(cluster, name)
  const issued = certificate === '' ? undefined : new X509Certificate(certificate)
  return { outcome: issued ? 'issued' : (said.at(-1)?.split(':')[1] ?? ''), issued }
}

/** A node that authenticates with this certificate. */
const holderOf = (certificate: X509Certificate): UserInfo => ({
  ...nodeUser(node),
  extra: {
    'authentication.kubernetes.io/credential-id': [
      `X509SHA256=${certificate.fingerprint256.replaceAll(':', '').toLowerCase()}`,
    ],
  },
})

const revokedSerials = async (cluster: LocalCluster): Promise<string[]> => {
  const { revocations } = await listRevocations(cluster.view, cluster.signal)
  return revocations.map(({ value }) => value)
}

async function joined(cluster: LocalCluster) {
  const key = ecKey()
  const { issued } = await request(cluster, { requester: bearerOf('first1'), key })
  if (!issued) throw new Error('the first machine did not join')
  return { key, issued }
}

const addNode = (cluster: LocalCluster) =>
  cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } })

const states = {
  free: async () => undefined,
  'joined, without a Node': joined,
  'joined, with a Node': async (cluster: LocalCluster) => {
    const first = await joined(cluster)
    await addNode(cluster)
    return first
  },
  'joined, its Node deleted': async (cluster: LocalCluster) => {
    const first = await joined(cluster)
    await addNode(cluster)
    const gone = { apiVersion: 'v1', kind: 'Node', metadata: { name: node } }
    await cluster.view.write('delete', gone, {}, cluster.signal)
    return first
  },
  'a Node of an older version': async (cluster: LocalCluster) => {
    await addNode(cluster)
    return undefined
  },
} as const
type State = keyof typeof states

/** Outcome of a request with another key, by token and by whether the name is free. */
const outcomes: Readonly<Record<string, readonly [free: string, taken: string]>> = {
  first1: ['issued', 'NodeNameReserved'],
  second: ['issued', 'NodeNameReserved'],
  bound1: ['issued', 'NodeNameReserved'],
  repla1: ['issued', 'issued'],
  other1: ['TokenBoundToNode', 'TokenBoundToNode'],
  expire: ['TokenGone', 'TokenGone'],
}

const table = Object.keys(states).flatMap((state) =>
  Object.entries(outcomes).flatMap(([token, [free, taken]]) =>
    ['approved by the server', 'approved by hand'].map(
      (approval) => [state, token, approval, state === 'free' ? free : taken] as const,
    ),
  ),
)

describe('a machine with a key of its own', () => {
  test.each(table)(
    '[SEC-R1301, SEC-R1302] name %s, token %s, %s: %s',
    async (state, token, approval, expected) => {
      const cluster = await startCluster()
      const first = await states[state as State](cluster)
      const approved = approval === 'approved by hand'
      const requester = bearerOf(token)
      const { outcome } = await request(cluster, { requester, key: ecKey(), approved })
      // An administrator may approve after the token's end; that does not open the name.
      const isOverlooked = approved && expected === 'TokenGone'
      const byName = state === 'free' ? 'issued' : 'NodeNameReserved'
      expect(outcome).toBe(isOverlooked ? byName : expected)
      const isReplaced = token === 'repla1' && first !== undefined
      expect(await revokedSerials(cluster)).toEqual(
        isReplaced ? [first.issued.serialNumber.replace(/^0+/, '')] : [],
      )
    },
  )

  test.each([signers.kubeletClient, signers.client])(
    '[SEC-R1301] signer %s: no user gets a reserved name by approval',
    async (signer) => {
      const cluster = await startCluster()
      await joined(cluster)
      for (const username of ['admin', 'system:node:n2', 'system:node:n1']) {
        const requester = { username, groups: ['system:authenticated'] }
        const { outcome } = await request(cluster, { requester, signer, approved: true })
        expect([username, outcome]).toEqual([username, 'NodeNameReserved'])
      }
    },
  )

  test('[SEC-R1301] exactly one of many requests at once on two servers gets the name', async () => {
    const cluster = await startCluster()
    cluster.run(controllerOf(cluster))
    const order = { requester: bearerOf('second') }
    const all = await Promise.all(Array.from({ length: 12 }, () => request(cluster, order)))
    expect(all.filter(({ issued }) => issued)).toHaveLength(1)
    expect(new Set(all.map(({ outcome }) => outcome))).toEqual(
      new Set(['issued', 'NodeNameReserved']),
    )
  })
})

describe('the machine that holds the name', () => {
  test.each(Object.keys(states).filter((state) => state.startsWith('joined')))(
    '[SEC-R1303] retries with the same key and any token: %s',
    async (state) => {
      const cluster = await startCluster()
      const first = await states[state as State](cluster)
      for (const token of ['first1', 'second', 'bound1']) {
        const order = { requester: bearerOf(token), ...(first && { key: first.key }) }
        expect((await request(cluster, order)).outcome).toBe('issued')
      }
      expect(await revokedSerials(cluster)).toEqual([])
    },
  )

  test('[SEC-R1303] renews with its certificate, with a new key, again and again', async () => {
    const cluster = await startCluster()
    let { issued } = await joined(cluster)
    for (let round = 0; round < 3; round++) {
      const renewed = await request(cluster, { requester: holderOf(issued) })
      expect(renewed.outcome).toBe('issued')
      issued = renewed.issued ?? issued
    }
  })

  test('[SEC-R1304] of an older version renews, twice with the same certificate if need be', async () => {
    const cluster = await startCluster()
    await addNode(cluster)
    const { issued: old } = await joined(await startCluster())
    for (let round = 0; round < 2; round++)
      expect((await request(cluster, { requester: holderOf(old) })).outcome).toBe('issued')
    const taken = await request(cluster, { requester: bearerOf('second') })
    expect(taken.outcome).toBe('NodeNameReserved')
  })

  test('[SEC-R1304] of an older version is known by its request', async () => {
    const cluster = await LocalCluster.open('kube-system')
    const { issued } = await joined(await startCluster())
    await submit(cluster, {
      name: 'issued-before',
      pem: nodeCsr(node, ecKey()),
      requester: bearerOf('first1'),
      conditions: byHand(),
      certificate: issued.toString(),
    })
    cluster.run(controllerOf(cluster))
    const key = { namespace: 'kube-system' }
    const [reservation] = await cluster.until(
      wellKnownKinds.configMap,
      key,
      ({ length }) => length > 0,
    )
    expect(JSON.stringify(reservation)).toContain(issued.serialNumber)
  })
})

describe('a machine that was replaced', () => {
  test('[SEC-R1302] loses all certificates of its name, and does not renew', async () => {
    const cluster = await startCluster()
    const { issued } = await joined(cluster)
    const { issued: renewed } = await request(cluster, { requester: holderOf(issued) })
    const { issued: present } = await request(cluster, { requester: bearerOf('repla1') })
    if (!renewed || !present) throw new Error('not issued')
    const serials = [issued, renewed].map((each) => each.serialNumber.replace(/^0+/, ''))
    expect((await revokedSerials(cluster)).toSorted()).toEqual(serials.toSorted())
    for (const before of [issued, renewed])
      expect((await request(cluster, { requester: holderOf(before) })).outcome).toBe(
        'NodeNameReserved',
      )
    expect((await request(cluster, { requester: holderOf(present) })).outcome).toBe('issued')
  })

  test('[SEC-R1302] is out even if the server stops between the move and the revocation', async () => {
    const cluster = await startCluster()
    const { issued } = await joined(cluster)
    let failures = 1
    cluster.beforeWrite = async () => {
      if (!cluster.writes.at(-1)?.endsWith(' sallyport-revoked') || failures-- <= 0) return
      throw new Error('the store is away')
    }
    expect((await request(cluster, { requester: bearerOf('repla1') })).outcome).toBe('issued')
    expect(await revokedSerials(cluster)).toEqual([issued.serialNumber.replace(/^0+/, '')])
  })

  test('[SEC-R1302] is replaced once: the token does not move the name again', async () => {
    const cluster = await startCluster()
    await joined(cluster)
    await request(cluster, { requester: bearerOf('repla1') })
    const again = await request(cluster, { requester: bearerOf('repla1') })
    expect(again.outcome).toBe('TokenUsedUp')
  })
})

function outcomeOf(write: () => unknown): unknown {
  try {
    return write()
  } catch (error) {
    return error
  }
}

describe('a reservation', () => {
  test.each([
    ['create', 'system:masters', true],
    ['update', 'system:masters', true],
    ['delete', 'system:masters', true],
    ['create', 'editors', false],
    ['update', 'editors', false],
    ['delete', 'system:nodes', false],
    ['delete', 'system:bootstrappers', false],
  ] as const)('[SEC-R1305] %s by %s: %s', (operation, group, isAllowed) => {
    const write = () =>
      nodeNameAdmission(
        {
          operation,
          user: { username: 'somebody', groups: [group] },
          kind: wellKnownKinds.configMap,
          subresource: '',
          namespace: 'kube-system',
          name: 'sallyport-node-name-0123',
          dryRun: false,
        },
        AbortSignal.abort(),
      )
    const refused = expect.objectContaining({ reason: 'Forbidden' })
    expect(outcomeOf(write)).toEqual(isAllowed ? undefined : refused)
  })

  test('[SEC-R1305] that cannot be read is no free name', async () => {
    const cluster = await startCluster()
    await joined(cluster)
    const [held] = await cluster.list(wellKnownKinds.configMap, { namespace: 'kube-system' })
    if (!held) throw new Error('no reservation')
    await cluster.change(wellKnownKinds.configMap, held.metadata as never, (object) => {
      object['data'] = { certificates: 'x' }
    })
    for (const token of ['second', 'repla1'])
      expect((await request(cluster, { requester: bearerOf(token) })).outcome).toBe(
        'NodeNameReserved',
      )
  })

  test('[SEC-R1306] ends with its last certificate if there is no Node', async () => {
    const clock = { ...systemClock, now: () => systemClock.now() + 2 * 365 * 24 * hourMs }
    const cluster = await startCluster()
    await joined(cluster)
    cluster.run(createNodeNameCleaner(cluster.view, clock))
    const key = { namespace: 'kube-system' }
    const left = await cluster.until(wellKnownKinds.configMap, key, ({ length }) => length === 0)
    expect(left).toEqual([])
  })
})
