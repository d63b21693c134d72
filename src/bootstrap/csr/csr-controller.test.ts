import { X509Certificate } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import { signers } from '../../authz/index.ts'
import { type Clock, silentLogger, systemClock, wellKnownKinds } from '../../core/index.ts'
import { attribute, der, distinguishedName } from '../../pki/certificate-lab.suite.ts'
import { altNames, labCsr } from '../../pki/csr-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import { parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { readTokenSecret, type StoredToken, tokenSecret } from '../tokens/stored-token.ts'
import { type CertificateControllerParts, createCertificateController } from './csr-controller.ts'
import {
  bearerOf,
  joinRights,
  labAuthority,
  nodeCsr,
  nodeUser,
  outcomeOf,
  submit,
  untilAnswered,
} from './request-lab.suite.ts'

const { certificateSigningRequest: requestKind } = wellKnownKinds

const hourMs = 3_600_000
const id = 'abcdef'
const secretKey = { namespace: 'kube-system', name: `bootstrap-token-${id}` }

let ca: CertificateAuthority
beforeAll(async () => {
  ca = await labAuthority()
})

const partsFor = (cluster: LocalCluster): CertificateControllerParts => ({
  view: cluster.view,
  authorizer: joinRights,
  clock: systemClock,
  log: silentLogger,
  ca: () => ca,
  maxLifetimeMs: 365 * 24 * hourMs,
  metrics: { certificate: () => {} },
})

async function startCluster(
  token: Partial<StoredToken> = {},
  parts: Partial<CertificateControllerParts> = {},
): Promise<LocalCluster> {
  const cluster = await LocalCluster.open('kube-system', 'kube-node-lease')
  await cluster.create(
    tokenSecret({
      token: parseBootstrapToken(`${id}.0123456789abcdef`),
      usages: new Set(['signing', 'authentication']),
      extraGroups: [],
      ...token,
    }),
  )
  cluster.run(createCertificateController({ ...partsFor(cluster), ...parts }))
  return cluster
}

const join = (cluster: LocalCluster, node: string, name = `csr-${node}`) =>
  submit(cluster, { name, pem: nodeCsr(node), requester: bearerOf(id) })

async function addNode(cluster: LocalCluster, name: string, ready: string): Promise<void> {
  await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } })
  const conditions = [{ type: 'Ready', status: ready }]
  await cluster.change(
    wellKnownKinds.node,
    { name },
    (node) => Object.assign(node, { status: { conditions } }),
    'status',
  )
}

const addLease = (cluster: LocalCluster, name: string, renewTime: string) =>
  cluster.create({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
  })

const storedToken = async (cluster: LocalCluster) => {
  const secret = await cluster.get(wellKnownKinds.secret, secretKey)
  return secret && readTokenSecret(secret).stored
}

describe('a node that joins with a token', () => {
  test('[DISC-S10] is approved and gets a certificate of the CA for its name', async () => {
    const cluster = await startCluster()
    await join(cluster, 'n1')
    const { said, certificate } = await untilAnswered(cluster, 'csr-n1')
    expect(said).toEqual(['Approved:AutoApproved'])
    const made = new X509Certificate(certificate)
    expect(made.verify(ca.certificate.publicKey)).toBe(true)
    expect(made.subject.split('\n')).toEqual(['O=system:nodes', 'CN=system:node:n1'])
    expect(made.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2'])
    expect(made.ca).toBe(false)
  })

  test('[DISC-S10] waits while its user has no right, and goes on once it has', async () => {
    let isAllowed = false
    let asked = () => {}
    const firstQuestion = new Promise<void>((resolve) => {
      asked = resolve
    })
    const authorizer = {
      ...joinRights,
      authorize: () => {
        asked()
        return { allowed: isAllowed, reason: '' }
      },
    }
    const cluster = await startCluster({}, { authorizer })
    await join(cluster, 'n1')
    await firstQuestion
    expect(outcomeOf((await cluster.get(requestKind, { name: 'csr-n1' })) as never)).toEqual({
      said: [],
      certificate: '',
    })
    isAllowed = true
    expect((await untilAnswered(cluster, 'csr-n1')).said).toEqual(['Approved:AutoApproved'])
  })

  test.each([
    ['a Ready node', 'True', undefined, ['Denied:NodeNameReserved']],
    ['a Ready node that renews its Lease', 'True', 0, ['Denied:NodeNameReserved']],
    ['a node whose Lease has expired', 'True', 60_000, ['Denied:NodeNameReserved']],
    ['a node that is not Ready', 'False', undefined, ['Denied:NodeNameReserved']],
  ])('[DISC-S11] under the name of %s: %s %s gives %s', async (_name, ready, silentMs, said) => {
    const cluster = await startCluster()
    await addNode(cluster, 'n1', ready)
    if (silentMs !== undefined)
      await addLease(cluster, 'n1', new Date(Date.now() - silentMs).toISOString())
    await join(cluster, 'n1')
    expect((await untilAnswered(cluster, 'csr-n1')).said).toEqual(said)
  })

  test('[DISC-S10] is denied when its token is gone', async () => {
    const cluster = await startCluster({ expiresAt: Date.now() - 1 })
    await join(cluster, 'n1')
    expect((await untilAnswered(cluster, 'csr-n1')).said).toEqual(['Denied:TokenGone'])
  })

  test('[DISC-S3] is denied under another name than the token is bound to', async () => {
    const cluster = await startCluster({ boundNodeName: 'n1' })
    await join(cluster, 'n2')
    await join(cluster, 'n1')
    expect((await untilAnswered(cluster, 'csr-n2')).said).toEqual(['Denied:TokenBoundToNode'])
    expect((await untilAnswered(cluster, 'csr-n1')).said).toEqual(['Approved:AutoApproved'])
  })
})

describe('a token with a number of uses', () => {
  test('[DISC-S2] gives so many certificates and not one more, however many ask at once on two servers', async () => {
    const cluster = await startCluster({ maxUses: 3 })
    cluster.run(createCertificateController(partsFor(cluster)))
    const names = Array.from({ length: 12 }, (_, index) => `n${index}`)
    await Promise.all(names.map((name) => join(cluster, name)))
    const outcomes = await Promise.all(names.map((name) => untilAnswered(cluster, `csr-${name}`)))
    expect(outcomes.filter(({ certificate }) => certificate !== '')).toHaveLength(3)
    const refusals = outcomes.flatMap(({ certificate, said }) => (certificate ? [] : [said.at(-1)]))
    expect(refusals.every((each) => /^(Denied|Failed):TokenUsedUp$/.test(each ?? ''))).toBe(true)
    expect((await storedToken(cluster))?.uses).toBe(3)
  })

  test('[DISC-S2] lives on for as long as the last node needs to fetch its certificate', async () => {
    const cluster = await startCluster({ maxUses: 1 })
    await join(cluster, 'n1')
    await untilAnswered(cluster, 'csr-n1')
    const leftMs = ((await storedToken(cluster))?.expiresAt ?? 0) - Date.now()
    expect(leftMs).toBeGreaterThan(290_000)
    expect(leftMs).toBeLessThanOrEqual(300_000)
  })

  test('[DISC-S2] does not live longer by its last use', async () => {
    const expiresAt = Math.floor(Date.now() / 1000) * 1000 + 60_000
    const cluster = await startCluster({ maxUses: 1, expiresAt })
    await join(cluster, 'n1')
    await untilAnswered(cluster, 'csr-n1')
    expect((await storedToken(cluster))?.expiresAt).toBe(expiresAt)
  })

  test('[DISC-S2] counts a request once, even if its certificate could not be written at first', async () => {
    const cluster = await startCluster({ maxUses: 1 })
    let isFirst = true
    cluster.beforeWrite = async () => {
      const last = cluster.writes.at(-1)
      const isCertificate = last === 'update CertificateSigningRequest csr-n1'
      if (!isCertificate || (await storedToken(cluster))?.uses !== 1 || !isFirst) return
      isFirst = false
      throw new Error('the store is away')
    }
    await join(cluster, 'n1')
    expect((await untilAnswered(cluster, 'csr-n1')).certificate).not.toBe('')
    expect([isFirst, (await storedToken(cluster))?.uses]).toEqual([false, 1])
  })

  test('[DISC-S2] does not count where there is no limit', async () => {
    const cluster = await startCluster()
    await join(cluster, 'n1')
    await untilAnswered(cluster, 'csr-n1')
    expect((await storedToken(cluster))?.uses).toBeUndefined()
  })
})

describe('approved by hand', () => {
  const byHand = [{ type: 'Approved', status: 'True', reason: 'ByHand' }]
  const now = () => new Date().toISOString()
  const approvedNow = () => byHand.map((each) => ({ ...each, lastUpdateTime: now() }))

  test.each([
    ['a token that is gone is no hindrance', { expiresAt: 1 }, ['Approved:ByHand']],
    [
      'a bound name is still enforced',
      { boundNodeName: 'n2' },
      ['Approved:ByHand', 'Failed:TokenBoundToNode'],
    ],
    [
      'a used up token is still refused',
      { maxUses: 1, uses: 1 },
      ['Approved:ByHand', 'Failed:TokenUsedUp'],
    ],
  ])('[DISC-S10] %s', async (_name, token, said) => {
    const cluster = await startCluster(token)
    const requester = bearerOf(id)
    await submit(cluster, {
      name: 'a',
      pem: nodeCsr('n1'),
      requester,
      conditions: approvedNow(),
    })
    expect((await untilAnswered(cluster, 'a')).said).toEqual(said)
  })

  test('[DISC-S11] the name of a node that is Ready by now is still its own', async () => {
    const cluster = await startCluster({ maxUses: 1 })
    await addNode(cluster, 'n1', 'True')
    const order = { name: 'a', pem: nodeCsr('n1'), requester: bearerOf(id) }
    await submit(cluster, { ...order, conditions: approvedNow() })
    const { said, certificate } = await untilAnswered(cluster, 'a')
    expect([said, certificate]).toEqual([['Approved:ByHand', 'Failed:NodeNameReserved'], ''])
    expect((await storedToken(cluster))?.uses).toBeUndefined()
  })

  test('[DISC-S10] but our own approval ends with the token', async () => {
    const cluster = await startCluster({ expiresAt: 1 })
    const conditions = approvedNow().map((each) => ({ ...each, reason: 'AutoApproved' }))
    const order = { name: 'a', pem: nodeCsr('n1'), requester: bearerOf(id), conditions }
    await submit(cluster, order)
    const { said, certificate } = await untilAnswered(cluster, 'a')
    expect([said.at(-1), certificate]).toEqual(['Failed:TokenGone', ''])
  })

  test('[DISC-S10] what the signer does not sign has failed, and says why', async () => {
    const cluster = await startCluster()
    const subject = distinguishedName([attribute('CN', 'alice')])
    const garbage = labCsr({ subject }).replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA')
    const order = { requester: bearerOf(id), conditions: approvedNow() }
    await submit(cluster, { ...order, name: 'person', pem: labCsr({ subject }) })
    await submit(cluster, { ...order, name: 'garbage', pem: garbage })
    for (const name of ['person', 'garbage']) {
      const { said, certificate } = await untilAnswered(cluster, name)
      expect([said.at(-1), certificate]).toEqual(['Failed:SignerValidationFailure', ''])
    }
  })

  test('[DISC-S10] people and serving certificates are signed', async () => {
    const cluster = await startCluster()
    const order = { requester: nodeUser('n1'), conditions: approvedNow() }
    const alice = labCsr({ subject: distinguishedName([attribute('CN', 'alice')]) })
    await submit(cluster, { ...order, name: 'alice', pem: alice, signer: signers.client })
    const serving = labCsr({
      subject: distinguishedName(
        [attribute('O', 'system:nodes')],
        [attribute('CN', 'system:node:n1')],
      ),
      extensions: [altNames(der(0x82, 'n1.example'))],
    })
    const usages = ['digital signature', 'server auth']
    const signer = signers.kubeletServing
    await submit(cluster, { ...order, name: 'serving', pem: serving, signer, usages })
    const person = new X509Certificate((await untilAnswered(cluster, 'alice')).certificate)
    expect([person.subject, person.keyUsage]).toEqual(['CN=alice', ['1.3.6.1.5.5.7.3.2']])
    const server = new X509Certificate((await untilAnswered(cluster, 'serving')).certificate)
    expect([server.subjectAltName, server.keyUsage]).toEqual([
      'DNS:n1.example',
      ['1.3.6.1.5.5.7.3.1'],
    ])
  })
})

test('[DISC-S10] nobody but people approves serving certificates and those of other signers', async () => {
  const cluster = await startCluster()
  const requester = nodeUser('n1')
  for (const signer of [signers.kubeletServing, signers.client, 'example.com/other'])
    await submit(cluster, {
      name: signer.replaceAll('/', '.'),
      pem: nodeCsr('n1'),
      requester,
      signer,
    })
  await submit(cluster, { name: 'last', pem: nodeCsr('n1'), requester })
  await untilAnswered(cluster, 'last')
  const others = (await cluster.list(requestKind)).filter(
    ({ metadata }) => metadata.name !== 'last',
  )
  expect(others.map((each) => outcomeOf(each).said)).toEqual([[], [], []])
})

test('[DISC-S10, DISC-S11] a node renews its own certificate though it is Ready, and gets no other name', async () => {
  const cluster = await startCluster()
  await addNode(cluster, 'n1', 'True')
  const requester = nodeUser('n1')
  await submit(cluster, { name: 'other', pem: nodeCsr('n2'), requester })
  await submit(cluster, { name: 'own', pem: nodeCsr('n1'), requester })
  expect((await untilAnswered(cluster, 'own')).said).toEqual(['Approved:AutoApproved'])
  const other = await cluster.get(requestKind, { name: 'other' })
  expect(other && outcomeOf(other).said).toEqual([])
})

describe('the life of a certificate', () => {
  test.each([
    ['nothing asked', undefined, 24 * hourMs],
    ['too much asked', 3 * 24 * 3600, 24 * hourMs],
    ['ten hours asked', 36_000, 10 * hourMs],
    ['an hour asked', 3600, hourMs + 5 * 60_000],
    ['ten minutes asked', 600, 15 * 60_000],
  ])('[DISC-S10] %s', async (_name, expirationSeconds, spanMs) => {
    const cluster = await startCluster({}, { maxLifetimeMs: 24 * hourMs })
    await submit(cluster, {
      name: 'a',
      pem: nodeCsr('n1'),
      requester: bearerOf(id),
      ...(expirationSeconds !== undefined && { expirationSeconds }),
    })
    const made = new X509Certificate((await untilAnswered(cluster, 'a')).certificate)
    const [from, to] = [Date.parse(made.validFrom), Date.parse(made.validTo)]
    expect(Math.abs(Date.now() - 5 * 60_000 - from)).toBeLessThan(30_000)
    expect(to - from).toBe(spanMs)
  })
})

test('without the key of the CA requests stay approved', async () => {
  const cluster = await startCluster({}, { ca: () => ({ ...ca, key: undefined }) })
  await join(cluster, 'n1')
  const approved = await cluster.untilObject(
    requestKind,
    { name: 'csr-n1' },
    (request) => outcomeOf(request).said.length > 0,
  )
  expect(outcomeOf(approved)).toEqual({ said: ['Approved:AutoApproved'], certificate: '' })
})

describe('requests that are over are removed', () => {
  const minuteMs = 60_000
  const condition = (type: string, agoMs: number) => [
    {
      type,
      status: 'True',
      reason: 'Test',
      lastUpdateTime: new Date(Date.now() - agoMs).toISOString(),
    },
  ]
  test.each([
    ['Approved', condition('Approved', 61 * minuteMs), hourMs, true],
    ['Approved not long ago', condition('Approved', 59 * minuteMs), hourMs, false],
    ['Denied', condition('Denied', 61 * minuteMs), hourMs, true],
    ['Failed', condition('Failed', 61 * minuteMs), hourMs, true],
    ['pending for a day', [], 24 * hourMs + minuteMs, true],
    ['pending for less than a day', [], 24 * hourMs - minuteMs, false],
  ])('[DISC-S10] %s', async (_name, conditions, ageMs, isRemoved) => {
    const cluster = await startCluster()
    const other = { requester: nodeUser('n1'), signer: 'example.com/other' }
    const createdAtMs = Date.now() - ageMs
    await submit(cluster, { ...other, name: 'old', pem: 'x', conditions, createdAtMs })
    await join(cluster, 'n1', 'later')
    await untilAnswered(cluster, 'later')
    if (isRemoved) await cluster.untilGone(requestKind, { name: 'old' })
    expect((await cluster.get(requestKind, { name: 'old' })) === undefined).toBe(isRemoved)
  })

  test('[DISC-S10] at the moment they are over, without anybody asking', async () => {
    const clock: Clock = { ...systemClock, now: () => Date.now() + 24 * hourMs - 300 }
    const cluster = await startCluster({}, { clock })
    const other = { requester: nodeUser('n1'), signer: 'example.com/other' }
    await submit(cluster, { ...other, name: 'old', pem: 'x', createdAtMs: Date.now() + 1000 })
    await cluster.untilGone(requestKind, { name: 'old' })
    expect(cluster.writes.at(-1)).toBe('delete CertificateSigningRequest old')
  })
})
