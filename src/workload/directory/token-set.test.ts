import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ApiError, type Clock, isRecord, type KubeObject, kubeTime } from '../../core/index.ts'
import { scratchDirectory } from '../scratch.suite.ts'
import { ProjectedDirectory } from './projected-directory.ts'
import { ServiceAccountFiles } from './service-account-files.ts'
import { staleAt, TokenSet } from './token-set.ts'

const { signal } = new AbortController()
const start = Date.parse('2026-01-01T00:00:00Z')

/** A cluster that issues numbered tokens and has a CA. */
class FakeCluster {
  now = start
  ca: string | undefined = 'ca 1'
  failure: Error | undefined
  /** What the server makes of a wish. */
  lifetimeSeconds: number | undefined
  readonly asked: KubeObject[] = []
  readonly clock: Clock = { now: () => this.now, monotonic: () => this.now }

  review = async (_kind: string, object: KubeObject): Promise<KubeObject> => {
    if (this.failure) throw this.failure
    this.asked.push(object)
    const spec = isRecord(object['spec']) ? object['spec'] : {}
    const seconds = this.lifetimeSeconds ?? Number(spec['expirationSeconds'])
    const status = {
      token: `token ${this.asked.length} for ${String(spec['audiences'])}`,
      expirationTimestamp: kubeTime(this.now + seconds * 1_000),
    }
    return { ...object, status }
  }

  get = async (): Promise<KubeObject | undefined> =>
    this.ca === undefined
      ? undefined
      : {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'x' },
          data: { 'ca.crt': this.ca },
        }
}

async function filesOf(cluster: FakeCluster, lifetimeMs = 3_600_000) {
  const path = join(await scratchDirectory(), 'serviceaccount')
  const tokens = new TokenSet({
    client: cluster,
    clock: cluster.clock,
    subject: { namespace: 'shop', serviceAccount: 'web', pod: { name: 'web-1', uid: 'u1' } },
    files: [{ file: 'token' }, { file: 'vault', audience: 'https://vault' }],
    lifetimeMs,
  })
  const directory = await ProjectedDirectory.create(path, cluster.clock)
  const files = new ServiceAccountFiles({ client: cluster, namespace: 'shop', directory, tokens })
  return { files, read: (name: string) => readFile(join(path, name), 'utf8') }
}

test.each([
  ['an hour', 3_600, 2_880],
  ['ten minutes', 600, 480],
  ['a week', 7 * 86_400, 86_400],
  ['30 hours', 108_000, 86_400],
  ['29 hours', 104_400, 83_520],
])(
  'a token of %s is replaced at 80 %% of its life, and after a day [ISS-W3]',
  (_life, life, at) => {
    expect(staleAt(start, start + life * 1_000)).toBe(start + at * 1_000)
  },
)

describe('the files of a service account', () => {
  test('are token, ca.crt and namespace, and one for each further audience [ISS-W2]', async () => {
    const cluster = new FakeCluster()
    const { files, read } = await filesOf(cluster)
    await files.refresh(signal)
    expect(await read('token')).toBe('token 1 for ')
    expect(await read('vault')).toBe('token 2 for https://vault')
    expect(await read('ca.crt')).toBe('ca 1')
    expect(await read('namespace')).toBe('shop')
  })

  test('hold tokens that are bound to the very Pod', async () => {
    const cluster = new FakeCluster()
    await (await filesOf(cluster)).files.refresh(signal)
    expect(cluster.asked[0]).toMatchObject({
      metadata: { namespace: 'shop', name: 'web' },
      spec: {
        audiences: [],
        expirationSeconds: 3_600,
        boundObjectRef: { kind: 'Pod', name: 'web-1', uid: 'u1' },
      },
    })
  })

  test('are renewed when 80 % of a token’s life is over, not before [ISS-W3]', async () => {
    const cluster = new FakeCluster()
    const { files, read } = await filesOf(cluster)
    await files.refresh(signal)
    cluster.now = start + 2_879_000
    expect(await files.refresh(signal)).toBe(false)
    cluster.now = start + 2_880_000
    expect(await files.refresh(signal)).toBe(true)
    expect(await read('token')).toBe('token 3 for ')
    expect(await read('vault')).toBe('token 4 for https://vault')
  })

  test('follow the life that the server gave, not the one asked for', async () => {
    const cluster = new FakeCluster()
    cluster.lifetimeSeconds = 600
    const { files } = await filesOf(cluster)
    await files.refresh(signal)
    cluster.now = start + 480_000
    expect(await files.refresh(signal)).toBe(true)
  })

  test('follow the cluster’s CA', async () => {
    const cluster = new FakeCluster()
    const { files, read } = await filesOf(cluster)
    await files.refresh(signal)
    cluster.ca = 'ca 2'
    expect(await files.refresh(signal)).toBe(true)
    expect([await read('ca.crt'), await read('token')]).toEqual(['ca 2', 'token 1 for '])
  })

  test('stay as they are while the server cannot be asked, and are renewed after', async () => {
    const cluster = new FakeCluster()
    const { files, read } = await filesOf(cluster)
    await files.refresh(signal)
    cluster.now = start + 3_000_000
    cluster.failure = new Error('no connection')
    await expect(files.refresh(signal)).rejects.toThrow('no connection')
    expect(await read('token')).toBe('token 1 for ')
    cluster.failure = undefined
    expect(await files.refresh(signal)).toBe(true)
    expect(await read('token')).toBe('token 3 for ')
  })

  test.each([
    ['no service account', { failure: new ApiError('NotFound', 'x') }, 'NO_SERVICE_ACCOUNT'],
    ['no CA', { ca: undefined }, 'NO_ROOT_CA'],
    ['a token that is dead already', { lifetimeSeconds: -1 }, 'NO_TOKEN'],
  ])('%s is told in words', async (_what, state, code) => {
    const cluster = Object.assign(new FakeCluster(), state)
    await expect((await filesOf(cluster)).files.refresh(signal)).rejects.toMatchObject({ code })
  })
})
