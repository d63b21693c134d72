import { expect, test } from 'vitest'
import { ApiError, type KubeObject } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { AgentRefused } from './agent-registry.ts'
import { createTokenCheck } from './agent-tokens.ts'

const signal = new AbortController().signal
const audience = 'system:konnectivity-server'
const username = 'system:serviceaccount:kube-system:konnectivity-agent'
const good = { authenticated: true, user: { username }, audiences: [audience] }
const authorization = ['Bearer good-token']

function checkWith(status: unknown): {
  readonly check: ReturnType<typeof createTokenCheck>
  readonly asked: KubeObject[]
} {
  const asked: KubeObject[] = []
  const view = new FakeClusterView({
    review: (_kind, object) => {
      asked.push(object)
      if (status instanceof Error) throw status
      return { ...object, status }
    },
  })
  const names = { namespace: 'kube-system', serviceAccount: 'konnectivity-agent', audience }
  return { check: createTokenCheck({ view, ...names }), asked }
}

test('[TUN-F12] the token of the agents is reviewed for our audience and let in', async () => {
  const { check, asked } = checkWith(good)
  await check({ authorization }, signal)
  expect(asked[0]).toMatchObject({
    kind: 'TokenReview',
    apiVersion: 'authentication.k8s.io/v1',
    spec: { token: 'good-token', audiences: [audience] },
  })
})

test.each<[string, Record<string, string[]>]>([
  ['no metadata', {}],
  ['another key', { token: authorization }],
  ['no Bearer prefix', { authorization: ['good-token'] }],
  ['another scheme', { authorization: ['Basic good-token'] }],
  ['an empty token', { authorization: ['Bearer '] }],
  ['two tokens', { authorization: [...authorization, ...authorization] }],
])('[TUN-F12] an agent with %s is refused and nobody is asked', async (_name, metadata) => {
  const { check, asked } = checkWith(good)
  await expect(check(metadata, signal)).rejects.toThrow(AgentRefused)
  expect(asked).toEqual([])
})

test.each<[string, unknown]>([
  ['is not authentic', { ...good, authenticated: false }],
  ['has no status', undefined],
  ['says neither yes nor no', { ...good, authenticated: 'yes' }],
  ['is bad for a stated reason', { ...good, error: 'expired' }],
  ['cannot be reviewed', new ApiError('InternalError', 'no')],
  [
    'is of another namespace',
    { ...good, user: { username: 'system:serviceaccount:default:konnectivity-agent' } },
  ],
  ['is of another account', { ...good, user: { username: 'system:serviceaccount:kube-system:x' } }],
  ['is of a name that begins so', { ...good, user: { username: `${username}-2` } }],
  ['is of nobody', { ...good, user: {} }],
  ['is for another audience', { ...good, audiences: ['https://kubernetes.default.svc'] }],
  ['is for no audience', { authenticated: true, user: { username } }],
])('[TUN-F12] a token that %s is refused, and the agent is not told why', async (_name, status) => {
  const { check } = checkWith(status)
  await expect(check({ authorization }, signal)).rejects.toThrow(
    expect.objectContaining({
      message: 'the agent could not be authenticated',
      detail: expect.not.stringContaining('good-token'),
    }),
  )
})
