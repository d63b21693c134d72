import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { parseCsr } from '../../pki/index.ts'
import { certificateRequest } from './certificate-request.ts'
import { FakeSigner } from './fake-signer.suite.ts'
import { joinCluster, joinedKubeconfig } from './join-cluster.ts'
import { bootstrapCredential } from './request-certificate.ts'
import type { JoinOrder, JoinParts, JoinProgress } from './requested-certificate.ts'
import { problemOfIdentity } from './requested-certificate.ts'

const node = { kind: 'node', name: 'n1' } as const
const credential = bootstrapCredential('abcdef.q7w8e9r0t1y2u3i4')

let signer: FakeSigner
beforeEach(async () => {
  signer = await FakeSigner.open()
})
afterEach(() => signer.close())

const join = (order: Partial<JoinOrder> = {}, parts: JoinParts = {}) =>
  joinCluster({ cluster: signer.cluster, credential, as: node, timeoutMs: 0, ...order }, parts)

/** Waits no time at all. */
const impatient: JoinParts = { pause: () => Promise.resolve() }

describe('a request for a certificate', () => {
  test.each([
    ['system:node:n1', ['system:nodes']],
    ['jane', []],
    ['jürgen + co, ltd', ['a', 'b=c', `${'long'.repeat(40)}`]],
  ])('names %s', (commonName, organizations) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const csr = parseCsr(certificateRequest(privateKey, { commonName, organizations }))
    expect(csr.subject).toEqual({ commonName, organizations, otherTypes: [] })
    expect(csr.publicKey.export({ format: 'jwk' })).toMatchObject({ crv: 'P-256' })
  })

  test('is of the form that the signer of kubelets takes', async () => {
    await join({ lifetimeMs: 3_600_000 })
    const [request] = signer.stored.values()
    expect(request).toMatchObject({
      metadata: { name: expect.stringMatching(/^node-csr-[0-9a-f]{32}$/) },
      spec: {
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
        expirationSeconds: 3600,
      },
    })
  })

  test('goes with the token, which nothing else shows', async () => {
    await join()
    expect(new Set(signer.seen.map(({ bearer }) => bearer))).toEqual(
      new Set(['Bearer abcdef.q7w8e9r0t1y2u3i4']),
    )
  })
})

describe('an answer', () => {
  test('is the certificate of the key that was kept before', async () => {
    const kept: Secret[] = []
    const joined = await join(
      {},
      {
        keepKey: (key) => {
          expect(signer.seen).toEqual([])
          kept.push(key)
          return Promise.resolve()
        },
      },
    )
    expect(kept.map((key) => key.reveal())).toEqual([joined.keyPem.reveal()])
    expect(joined).toMatchObject({ username: 'system:node:n1', expiresAt: expect.any(Number) })
    expect(createPrivateKey(joined.keyPem.reveal()).asymmetricKeyType).toBe('ec')
  })

  test('is waited for, and each state is told once', async () => {
    const told: JoinProgress[] = []
    signer.decide = () => Promise.resolve({})
    const joined = await join(
      {},
      {
        onJoinProgress: (progress) => {
          told.push(progress)
          if (progress.step !== 'pending') return
          const { request } = progress
          if (!progress.approved) {
            setImmediate(() => signer.settle(request, { conditions: [{ type: 'Approved' }] }))
            return
          }
          const object = signer.stored.get(request)
          if (object) void signer.sign(object).then((status) => signer.settle(request, status))
        },
        ...impatient,
      },
    )
    const { request } = joined
    expect(told).toEqual([
      { step: 'requested', request, resumed: false },
      { step: 'pending', request, approved: false },
      { step: 'pending', request, approved: true },
    ])
  })

  test.each([
    [
      'that may not be watched',
      () => {
        signer.watchable = false
      },
    ],
    ['whose watch is cut', () => signer.cut()],
  ])('to a request %s is found all the same', async (_name, disturb) => {
    signer.decide = () => Promise.resolve({})
    const joined = await join(
      {},
      {
        onJoinProgress: ({ step, request }) => {
          if (step !== 'pending') return
          disturb()
          const object = signer.stored.get(request)
          if (object) void signer.sign(object).then((status) => signer.settle(request, status))
        },
        pause: () => new Promise((resolve) => setImmediate(resolve)),
      },
    )
    expect(joined.username).toBe('system:node:n1')
  })

  test('to the request of an earlier run is found by its key', async () => {
    const first = await join()
    const told: JoinProgress[] = []
    const second = await join(
      { keyPem: first.keyPem },
      { onJoinProgress: (progress) => told.push(progress) },
    )
    expect(second.certificatePem).toBe(first.certificatePem)
    expect(told).toEqual([{ step: 'requested', request: first.request, resumed: true }])
  })

  test('is asked for with a new key if the kept one cannot be used', async () => {
    const joined = await join({ keyPem: new Secret('garbage') })
    expect(joined.keyPem.reveal()).toContain('PRIVATE KEY')
  })
})

describe('[DISC-C6] each failure has its own reason:', () => {
  test.each([
    ['Denied', 'request-denied', 'was denied: No: not you'],
    ['Failed', 'request-failed', 'the signer refused it: No: not you'],
  ])('a request that is %s', async (type, reason, said) => {
    signer.decide = () =>
      Promise.resolve({
        conditions: [{ type: 'Approved' }, { type, reason: 'No', message: 'not you' }],
      })
    const joining = join()
    await expect(joining).rejects.toMatchObject({ reason })
    await expect(joining).rejects.toThrow(said)
  })

  test.each([
    ['401', [401], 'token-refused'],
    ['403', [404, 403], 'request-forbidden'],
    ['422', [404, 422], 'request-refused'],
  ])('a refusal with %s', async (_name, troubles, reason) => {
    signer.troubles = troubles
    await expect(join()).rejects.toMatchObject({ reason, hint: expect.any(String) })
  })

  test('a request that nobody answers', async () => {
    signer.decide = () => Promise.resolve({})
    const joining = join({ approvalTimeoutMs: 0 })
    await expect(joining).rejects.toMatchObject({
      reason: 'approval-pending',
      hint: expect.stringMatching(/kubectl certificate approve node-csr-/),
    })
  })

  test('a request that is deleted', async () => {
    signer.decide = () => Promise.resolve({})
    const joining = join(
      {},
      {
        onJoinProgress: ({ step, request }) => {
          if (step === 'pending') setImmediate(() => signer.remove(request))
        },
        ...impatient,
      },
    )
    await expect(joining).rejects.toMatchObject({ reason: 'request-gone' })
  })

  test.each([
    ['of another key', (other: string) => other, 'another key'],
    ['that is none', () => 'garbage', 'there is no certificate in it'],
  ])('a certificate %s', async (_name, forge, said) => {
    const { certificatePem } = await join()
    const certificate = Buffer.from(forge(certificatePem)).toString('base64')
    signer.decide = () => Promise.resolve({ certificate })
    const joining = join()
    await expect(joining).rejects.toMatchObject({ reason: 'certificate-wrong' })
    await expect(joining).rejects.toThrow(said)
  })

  test.each([
    ['in the future', 86_400_000, 'clock late'],
    ['in the past', -86_400_000, 'clock ahead'],
  ])('a certificate %s', async (_name, offsetMs, said) => {
    signer.decide = (object) => signer.sign(object, Date.now() + offsetMs)
    const joining = join()
    await expect(joining).rejects.toThrow(said)
  })

  test('a node of that name that is at work', async () => {
    const metadata = { name: 'n1' }
    const status = { conditions: [{ type: 'Ready', status: 'True' }] }
    signer.nodes.set('n1', { apiVersion: 'v1', kind: 'Node', metadata, status })
    await expect(join()).rejects.toMatchObject({ reason: 'node-name-taken' })
    expect(signer.stored.size).toBe(0)
    const idle = { conditions: [{ type: 'Ready', status: 'Unknown' }] }
    signer.nodes.set('n1', { apiVersion: 'v1', kind: 'Node', metadata, status: idle })
    await expect(join()).resolves.toMatchObject({ username: 'system:node:n1' })
  })

  test('trouble that passes does not', async () => {
    signer.troubles = [503, 500, 429]
    await expect(join({ timeoutMs: 60_000 }, impatient)).resolves.toMatchObject({
      username: 'system:node:n1',
    })
  })

  test('being told to end', async () => {
    signer.decide = () => Promise.resolve({})
    const ending = new AbortController()
    const onJoinProgress = ({ step }: JoinProgress): void => {
      if (step === 'pending') ending.abort()
    }
    await expect(join({}, { signal: ending.signal, onJoinProgress })).rejects.toMatchObject({
      reason: 'aborted',
    })
  })
})

describe('who joins', () => {
  test.each([
    [{ kind: 'node', name: 'N1' } as const, 'small letters'],
    [{ kind: 'node', name: '' } as const, 'small letters'],
    [{ kind: 'node', name: 'a..b' } as const, 'small letters'],
    [{ kind: 'machine', name: 'a'.repeat(64) } as const, 'the name of a machine'],
    [{ kind: 'user', name: '', groups: [] } as const, 'cannot be a user name'],
    [{ kind: 'user', name: ' a', groups: [] } as const, 'cannot be a user name'],
    [{ kind: 'user', name: 'system:admin', groups: [] } as const, "cluster's own"],
    [{ kind: 'user', name: 'a', groups: ['system:masters'] } as const, 'system:masters'],
  ])('cannot be %j', (identity, said) => {
    expect(problemOfIdentity(identity)).toContain(said)
  })

  test.each([
    [{ kind: 'node', name: 'node-1.example.com' } as const],
    [{ kind: 'machine', name: 'laptop' } as const],
    [{ kind: 'user', name: 'jane@example.com', groups: ['devs'] } as const],
  ])('can be %j', (identity) => {
    expect(problemOfIdentity(identity)).toBeUndefined()
  })

  test('asks as a user where a person joins', async () => {
    await join({ as: { kind: 'user', name: 'jane', groups: ['devs'] } })
    expect([...signer.stored.values()]).toMatchObject([
      {
        metadata: { name: expect.stringMatching(/^user-csr-/) },
        spec: { signerName: 'kubernetes.io/kube-apiserver-client' },
      },
    ])
    expect(signer.seen.some(({ path }) => path.includes('/nodes/'))).toBe(false)
  })

  test('gets a kubeconfig that is complete', async () => {
    const joined = await join()
    const config = joinedKubeconfig(signer.cluster, joined)
    expect(config.currentContext).toBe('system:node:n1@127.0.0.1')
    expect(config.users.get('system:node:n1')).toEqual({
      clientCertificateData: joined.certificatePem,
      clientKeyData: joined.keyPem,
    })
  })
})
