import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  type ClusterView,
  type KubeObject,
  type SealedValues,
  silentLogger,
  systemClock,
  wellKnownKinds,
} from '../../core/index.ts'
import { signingKey } from '../../jose/index.ts'
import { openMemoryStore, RevisionCompacted, SealedStore, type Store } from '../../storage/index.ts'
import { LocalCluster } from '../backend/local.ts'
import { migrateSecrets } from './sealed-values.ts'

const { signal } = new AbortController()
const base64 = (text: string): string => Buffer.from(text).toString('base64')

function newKey() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { privateKey, pem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) }
}

function ringText(): string {
  const { privateKey, pem } = newKey()
  const times = { publishedAt: 1, signsFrom: 1, tokensUntil: 1 }
  return JSON.stringify({ version: 1, keys: [{ kid: signingKey(privateKey).kid, ...times, pem }] })
}

const secretOf = (name: string, type: string, data: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { namespace: 'kube-system', name },
  type,
  data,
})
const ringSecret = (text: string) =>
  secretOf('sallyport-signing-keys', 'sallyport.dev/signing-keys', { 'keys.json': base64(text) })
const addonSecret = (pem: string) =>
  secretOf('sallyport-addon-token-key', 'sallyport.dev/addon-token-key', { 'key.pem': base64(pem) })

interface Scene {
  readonly store: Store
  readonly view: ClusterView
  readonly values: SealedValues
}

/** A cluster as an earlier version has left it. */
async function oldCluster(...secrets: readonly KubeObject[]): Promise<Scene> {
  const store = openMemoryStore()
  const cluster = new LocalCluster({
    store,
    clock: systemClock,
    log: silentLogger,
    serviceCidrs: ['10.0.0.0/24'],
  })
  cluster.acceptWrites({ admissions: [], authenticateToken: async () => undefined })
  const { view } = cluster
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } }
  await view.write('create', namespace, {}, signal)
  for (const secret of secrets) await view.write('create', secret, {}, signal)
  return { store, view, values: new SealedStore(store, randomBytes(32), silentLogger) }
}

const migrate = async ({ store, view, values }: Scene): Promise<void> => {
  const removeSecrets = await migrateSecrets({ store, view, log: silentLogger }, values, signal)
  await removeSecrets()
}

const textOf = async ({ values }: Scene, name: string): Promise<string | undefined> =>
  (await values.get(name, signal))?.value.toString()

const secretsIn = async ({ view }: Scene): Promise<string[]> =>
  (await view.list(wellKnownKinds.secret, {}, signal)).items.map(({ metadata }) => metadata.name)

/** The scene with a crash before or after one of its operations. */
function crashing(
  scene: Scene,
  at: number,
): { readonly scene: Scene; readonly ended: () => boolean } {
  let operations = 0
  const step = async <T>(run: () => Promise<T>): Promise<T> => {
    if (++operations === at) throw new Error('crashed before')
    const done = await run()
    if (++operations === at) throw new Error('crashed after')
    return done
  }
  const { store, view, values } = scene
  const watchedStore: Store = Object.create(store, {
    compact: { value: () => step(() => store.compact()) },
    watch: { value: store.watch.bind(store) },
    revision: { get: () => store.revision },
    oldestRevision: { get: () => store.oldestRevision },
  })
  return {
    ended: () => operations < at,
    scene: {
      store: watchedStore,
      view: Object.assign(Object.create(view) as ClusterView, {
        get: view.get.bind(view),
        write: (...args: Parameters<ClusterView['write']>) => step(() => view.write(...args)),
      }),
      values: {
        get: values.get.bind(values),
        watch: values.watch.bind(values),
        change: (...args) => step(() => values.change(...args)),
      },
    },
  }
}

test('keys move from Secrets to sealed values, whatever operation is interrupted [SEC-R906]', async () => {
  for (let at = 1; ; at++) {
    const ring = ringText()
    const { pem } = newKey()
    const scene = await oldCluster(ringSecret(ring), addonSecret(pem))
    const { revision } = scene.store
    const crash = crashing(scene, at)
    await migrate(crash.scene).catch(() => {})
    await migrate(scene)
    expect(await textOf(scene, 'signing-keys')).toBe(ring)
    expect(JSON.parse((await textOf(scene, 'addon-token-key')) ?? '')).toEqual({
      version: 1,
      key: pem,
    })
    expect(await secretsIn(scene)).toEqual([])
    // Nor can they be read from the past.
    expect(() => scene.store.range('', { revision })).toThrow(RevisionCompacted)
    expect(() => scene.store.watch('', revision, () => {})).toThrow(RevisionCompacted)
    if (crash.ended()) break
  }
})

test('with both a sealed value and a Secret the sealed one wins and the Secret goes [SEC-R906]', async () => {
  const scene = await oldCluster(ringSecret(ringText()))
  const sealed = ringText()
  await scene.values.change('signing-keys', () => Buffer.from(sealed), signal)
  await migrate(scene)
  expect([await textOf(scene, 'signing-keys'), await secretsIn(scene)]).toEqual([sealed, []])
})

test('a Secret that is written after the first start is never read, even without a ring [SEC-R907]', async () => {
  const scene = await oldCluster()
  await migrate(scene)
  await scene.view.write('create', ringSecret(ringText()), {}, signal)
  await scene.view.write('create', addonSecret(newKey().pem), {}, signal)
  await migrate(scene)
  expect(await textOf(scene, 'signing-keys')).toBeUndefined()
  expect(await textOf(scene, 'addon-token-key')).toBeUndefined()
  expect(await secretsIn(scene)).toEqual([])
})

test('a Secret of that name and another type is neither read nor deleted [SEC-R907]', async () => {
  const scene = await oldCluster(
    secretOf('sallyport-signing-keys', 'Opaque', { 'keys.json': base64(ringText()) }),
  )
  await migrate(scene)
  expect(await textOf(scene, 'signing-keys')).toBeUndefined()
  expect(await secretsIn(scene)).toEqual(['sallyport-signing-keys'])
})

test('keys that cannot be used stop the start, and the Secret stays [SEC-R906]', async () => {
  const scene = await oldCluster(ringSecret('rubbish'))
  await expect(migrate(scene)).rejects.toMatchObject({ code: 'SIGNING_KEYS_INVALID' })
  expect(await secretsIn(scene)).toEqual(['sallyport-signing-keys'])
})

test('a new cluster keeps its history [SEC-R908]', async () => {
  const scene = await oldCluster()
  const { revision } = scene.store
  await migrate(scene)
  expect(() => scene.store.range('', { revision })).not.toThrow()
})
