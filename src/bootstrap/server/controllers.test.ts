import { describe, expect, onTestFinished, test } from 'vitest'
import { LocalCluster } from '../../api/controllers/local-cluster.suite.ts'
import { startController } from '../../api/controllers/started-controller.suite.ts'
import {
  isRecord,
  type KubeObject,
  longestTimerMs,
  systemClock,
  wellKnownKinds,
} from '../../core/index.ts'
import { clusterInfoKey } from '../cluster-info/cluster-info.ts'
import { parseBootstrapToken } from '../tokens/bootstrap-token.ts'
import { signWithToken } from '../tokens/signature.ts'
import { type StoredToken, tokenSecret } from '../tokens/stored-token.ts'
import { createSigner } from './signer.ts'
import { createTokenCleaner } from './token-cleaner.ts'

const tokenOf = (id: string, changes: Partial<StoredToken> = {}): StoredToken => ({
  token: parseBootstrapToken(`${id}.0123456789abcdef`),
  usages: new Set(['signing', 'authentication']),
  extraGroups: [],
  ...changes,
})
const secretKey = (id: string) => ({ namespace: 'kube-system', name: `bootstrap-token-${id}` })

async function openCluster(...tokens: readonly StoredToken[]): Promise<LocalCluster> {
  const cluster = await LocalCluster.open('kube-system', 'kube-public')
  await cluster.create({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { ...clusterInfoKey },
    data: { kubeconfig: 'hello', other: 'stays', 'jws-kubeconfig-zzzzzz': 'old' },
  })
  for (const token of tokens) await cluster.create(tokenSecret(token))
  return cluster
}

const dataOf = (object: KubeObject | undefined): Record<string, unknown> =>
  isRecord(object?.['data']) ? object['data'] : {}
const signersIn = (object: KubeObject): string =>
  Object.keys(dataOf(object))
    .filter((name) => name.startsWith('jws-kubeconfig-'))
    .map((name) => name.slice(-6))
    .sort()
    .join()

const untilSignedBy = (cluster: LocalCluster, ids: string) =>
  cluster.untilObject(
    wellKnownKinds.configMap,
    clusterInfoKey,
    (object) => signersIn(object) === ids,
  )

describe('the signer', () => {
  test('[DISC-S6, DISC-S8] signs with every token that may sign, and with no other', async () => {
    const cluster = await openCluster(
      tokenOf('aaaaaa'),
      tokenOf('bbbbbb', { usages: new Set(['authentication']) }),
      tokenOf('cccccc', { expiresAt: 1 }),
    )
    cluster.run(createSigner(cluster.view, systemClock))
    expect(dataOf(await untilSignedBy(cluster, 'aaaaaa'))).toEqual({
      kubeconfig: 'hello',
      other: 'stays',
      'jws-kubeconfig-aaaaaa': signWithToken('hello', tokenOf('aaaaaa').token),
    })
  })

  test('[DISC-S6] signs anew what has changed, and follows tokens that come and go', async () => {
    const cluster = await openCluster(tokenOf('aaaaaa'))
    cluster.run(createSigner(cluster.view, systemClock))
    await untilSignedBy(cluster, 'aaaaaa')
    await cluster.change(wellKnownKinds.configMap, clusterInfoKey, (object) =>
      Object.assign(object, { data: { kubeconfig: 'moved' } }),
    )
    const signature = signWithToken('moved', tokenOf('aaaaaa').token)
    await cluster.untilObject(
      wellKnownKinds.configMap,
      clusterInfoKey,
      (object) => dataOf(object)['jws-kubeconfig-aaaaaa'] === signature,
    )
    await cluster.create(tokenSecret(tokenOf('dddddd')))
    await untilSignedBy(cluster, 'aaaaaa,dddddd')
    await cluster.view.write('delete', tokenSecret(tokenOf('aaaaaa')), {}, cluster.signal)
    expect(signersIn(await untilSignedBy(cluster, 'dddddd'))).toBe('dddddd')
  })

  test('[DISC-S6] writes nothing where all is right', async () => {
    const cluster = await openCluster(tokenOf('aaaaaa'))
    cluster.run(createSigner(cluster.view, systemClock))
    await untilSignedBy(cluster, 'aaaaaa')
    await cluster.change(wellKnownKinds.secret, secretKey('aaaaaa'), ({ metadata }) => {
      metadata.labels = { touched: 'yes' }
    })
    await cluster.create(tokenSecret(tokenOf('bbbbbb')))
    await untilSignedBy(cluster, 'aaaaaa,bbbbbb')
    const written = cluster.writes.filter((write) => write === 'update ConfigMap cluster-info')
    expect(written).toHaveLength(2)
  })

  test('[DISC-S6] three servers write what one would, once', async () => {
    const cluster = await openCluster(tokenOf('aaaaaa'), tokenOf('bbbbbb'))
    for (let server = 0; server < 3; server++) cluster.run(createSigner(cluster.view, systemClock))
    const signed = await untilSignedBy(cluster, 'aaaaaa,bbbbbb')
    // A later token is the last thing that each of them has to do.
    await cluster.create(tokenSecret(tokenOf('cccccc')))
    await untilSignedBy(cluster, 'aaaaaa,bbbbbb,cccccc')
    const { items } = await cluster.view.list(wellKnownKinds.configMap, {}, cluster.signal)
    const last = items.find(({ metadata }) => metadata.name === clusterInfoKey.name)
    expect(dataOf(last)['jws-kubeconfig-aaaaaa']).toBe(dataOf(signed)['jws-kubeconfig-aaaaaa'])
    const versions = [signed, last].map((object) => Number(object?.metadata.resourceVersion))
    // One write of the Secret and one of the signatures lie between the two, and no fight.
    expect((versions[1] ?? 0) - (versions[0] ?? 0)).toBe(2)
  })

  test('[DISC-T6] an expiry takes the signature along though nobody deletes the token', async () => {
    const cluster = await openCluster(tokenOf('aaaaaa', { expiresAt: Date.now() + 1_500 }))
    cluster.run(createSigner(cluster.view, systemClock))
    await untilSignedBy(cluster, 'aaaaaa')
    expect(signersIn(await untilSignedBy(cluster, ''))).toBe('')
    expect(await cluster.get(wellKnownKinds.secret, secretKey('aaaaaa'))).toBeDefined()
  })
})

describe('the cleaner', () => {
  test('[DISC-S6, DISC-T6] deletes what has expired, when it expires, on several servers at once', async () => {
    const soon = Math.ceil(Date.now() / 1000) * 1000 + 1_000
    const cluster = await openCluster(
      tokenOf('aaaaaa', { expiresAt: 1 }),
      tokenOf('bbbbbb', { expiresAt: soon }),
      tokenOf('cccccc'),
    )
    for (let server = 0; server < 2; server++)
      cluster.run(createTokenCleaner(cluster.view, systemClock))
    await cluster.untilGone(wellKnownKinds.secret, secretKey('aaaaaa'))
    await cluster.untilGone(wellKnownKinds.secret, secretKey('bbbbbb'))
    expect(Date.now()).toBeGreaterThanOrEqual(soon)
    expect(await cluster.get(wellKnownKinds.secret, secretKey('cccccc'))).toBeDefined()
  })

  test('[DISC-S6] is not kept busy by tokens that live longer than a timer can wait', async () => {
    const cluster = await openCluster(
      tokenOf('aaaaaa', { expiresAt: Date.now() + 90 * 86_400_000 }),
    )
    const controllers = [
      createTokenCleaner(cluster.view, systemClock),
      createSigner(cluster.view, systemClock),
    ]
    const waits: number[] = []
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    for (const controller of controllers) {
      const started = await startController(controller, cluster.view, stop.signal)
      const outcome = await started.reconcile(started.takeKeys()[0] ?? '')
      waits.push(outcome && 'againAfterMs' in outcome ? outcome.againAfterMs : 0)
    }
    expect(waits).toEqual([longestTimerMs, longestTimerMs])
  })

  test('[DISC-S6] deletes a token whose end nobody can read, and none whose end is empty', async () => {
    const cluster = await openCluster()
    for (const [id, expiration] of Object.entries({ aaaaaa: '', bbbbbb: 'tomorrow' })) {
      const secret = tokenSecret(tokenOf(id))
      const data = { ...dataOf(secret), expiration: Buffer.from(expiration).toString('base64') }
      await cluster.create({ ...secret, data })
    }
    cluster.run(createTokenCleaner(cluster.view, systemClock))
    await cluster.untilGone(wellKnownKinds.secret, secretKey('bbbbbb'))
    expect(cluster.writes.filter((write) => write.startsWith('delete'))).toEqual([
      'delete Secret bootstrap-token-bbbbbb',
    ])
  })
})
