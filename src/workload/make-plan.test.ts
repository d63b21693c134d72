import { expect, test } from 'vitest'
import type { KubeClient } from '../client/index.ts'
import { makePlan, requireMachine } from './run-workload.ts'
import type { WorkloadOptions } from './workload.ts'

const options: WorkloadOptions = {
  namespace: 'shop',
  serviceAccount: 'default',
  service: 'web',
  ports: [{ port: 8080 }],
  audiences: [],
  ip: '10.0.0.1',
  labels: { app: 'other', tier: 'front' },
  tokenLifetimeMs: 3_600_000,
  leaseMs: 40_000,
  graceMs: 30_000,
  inCluster: true,
  command: ['node'],
}

test('labels of ours do not take away those that the Service selects', async () => {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { selector: { app: 'web' }, ports: [{ port: 8080 }] },
  }
  const client = { get: async () => Promise.resolve(service) } satisfies Pick<KubeClient, 'get'>
  const host = { client, server: new URL('https://10.0.0.2'), drain: new AbortController().signal }
  const plan = await makePlan('laptop', options, host)
  expect(plan.labels).toEqual({ app: 'web', tier: 'front' })
})

test('whoever is no machine is told both ways to become one', async () => {
  const review = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
    metadata: { name: '' },
    status: { userInfo: { username: 'jane', groups: [] } },
  }
  const client = { review: async () => Promise.resolve(review) } satisfies Pick<
    KubeClient,
    'review'
  >
  const asked = requireMachine(client, new AbortController().signal)
  await expect(asked).rejects.toMatchObject({
    code: 'NOT_A_MACHINE',
    message: expect.stringContaining('jane'),
    hint: expect.stringMatching(
      /`sallyport user create NAME --machine .*`sallyport join .*--as machine NAME`/,
    ),
  })
})
