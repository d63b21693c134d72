import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ApiError, type KubeObject, silentLogger, systemClock } from '../../core/index.ts'
import { type EmbeddedStore, openEmbeddedStore, RecordDamaged } from '../../storage/index.ts'
import { configMap, namespace } from '../kinds/index.ts'
import { explainStoreFailure } from '../serving/call.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { listObjects } from './list.ts'
import { LocalClusterView, serverUser } from './local-cluster-view.ts'
import { noLimits, QuotaStore } from './quota.ts'
import type { RegistryContext } from './registry.ts'

const signal = AbortSignal.timeout(20_000)
const writing = { user: serverUser, dryRun: false, signal }
const key = { namespace: 'default', name: 'hurt' }

let directory: string
let store: EmbeddedStore
let context: RegistryContext

const open = () => openEmbeddedStore({ directory, clock: systemClock, log: silentLogger })

const object = (name: string): KubeObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name, namespace: 'default' },
  data: { text: `the-value-of-${name}` },
})

/** Changes one byte of a value on the disk, wherever it stands. */
async function damage(text: string): Promise<void> {
  for (const file of await readdir(directory)) {
    const bytes = await readFile(join(directory, file)).catch(() => Buffer.alloc(0))
    const at = bytes.indexOf(text)
    if (at < 0) continue
    bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at)
    await writeFile(join(directory, file), bytes)
    return
  }
  throw new Error(`${text} is nowhere in ${directory}`)
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-damaged-'))
  store = await open()
  const fresh = (of: EmbeddedStore): RegistryContext => ({
    store: of,
    quota: new QuotaStore(of, noLimits, silentLogger),
    clock: systemClock,
    admissions: [],
    hooks: [],
    newUid: randomUUID,
  })
  context = fresh(store)
  await createObject(
    context,
    namespace,
    { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default' } },
    writing,
  )
  for (const name of ['hurt', 'well']) await createObject(context, configMap, object(name), writing)
  await store.close()
  await damage('the-value-of-hurt')
  store = await open()
  context = fresh(store)
})
afterEach(async () => {
  await store.close()
  await rm(directory, { recursive: true, force: true })
})

test('a damaged record is refused by name, the others are served [GND-R26]', async () => {
  const view = new LocalClusterView(context, async (_kind, review) => review)
  const failure = await view.get(configMap.kind, key, signal).catch(explainStoreFailure)
  expect(failure).toMatchObject({ reason: 'InternalError' })
  expect((failure as ApiError).message).toContain('core/configmaps/default/hurt is damaged')
  expect(await view.get(configMap.kind, { ...key, name: 'well' }, signal)).toMatchObject({
    data: { text: 'the-value-of-well' },
  })
  await expect(listObjects(context, configMap, {}, signal)).rejects.toBeInstanceOf(RecordDamaged)
})

test('a damaged record can be deleted, and watchers are told to list again [GND-R26]', async () => {
  const view = new LocalClusterView(context, async (_kind, review) => review)
  const changes = view.watch(configMap.kind, { from: String(store.revision) }, signal)
  const ended = changes[Symbol.asyncIterator]().next()
  const { gone } = await deleteObject(context, configMap, { ...writing, key })
  expect(gone).toBe(true)
  await expect(ended).rejects.toMatchObject({ reason: 'Expired' })
  await createObject(context, configMap, object('hurt'), writing)
  expect((await view.list(configMap.kind, {}, signal)).items).toHaveLength(2)
})
