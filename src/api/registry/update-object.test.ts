import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type KubeObject, silentLogger, systemClock } from '../../core/index.ts'
import { openMemoryStore } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { createObject } from './create.ts'
import { deleteObject } from './delete.ts'
import { serverUser } from './local-cluster-view.ts'
import { noLimits, QuotaStore } from './quota.ts'
import { AdmissionChain, type RegistryContext, type WriteHook } from './registry.ts'
import { updateObject } from './update.ts'

const signal = new AbortController().signal
const writing = { user: serverUser, dryRun: false, signal }

function definitionOf(kind: string): KindDefinition {
  const found = kindDefinitions.find((definition) => definition.kind.kind === kind)
  if (!found) throw new Error(`no kind ${kind}`)
  return found
}
const configMaps = definitionOf('ConfigMap')
const leases = definitionOf('Lease')
const key = { namespace: 'default', name: 'a' }

async function openRegistry(hooks: WriteHook[] = []): Promise<RegistryContext> {
  const store = openMemoryStore()
  const context: RegistryContext = {
    store,
    quota: new QuotaStore(store, noLimits, silentLogger),
    clock: systemClock,
    admissions: new AdmissionChain([]),
    hooks,
    newUid: randomUUID,
  }
  const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default' } }
  await createObject(context, definitionOf('Namespace'), namespace, writing)
  return context
}

const make = (context: RegistryContext, definition: KindDefinition, rest: object = {}) =>
  createObject(
    context,
    definition,
    {
      kind: definition.kind.kind,
      apiVersion: definition.kind.group ? `${definition.kind.group}/v1` : 'v1',
      metadata: { ...key },
      ...rest,
    },
    writing,
  )

test('a patch of a kind that must be updated by version needs to state none [GND-R57]', async () => {
  const context = await openRegistry()
  await make(context, leases)
  const { object } = await updateObject(context, leases, {
    ...writing,
    key,
    mutate: (stored) => ({ ...stored, spec: { holderIdentity: 'me' } }),
  })
  expect(object['spec']).toEqual({ holderIdentity: 'me' })
})

test.each(['', '0', undefined])(
  'an update of a Lease with version %s is refused',
  async (version) => {
    const context = await openRegistry()
    await make(context, leases)
    const sent = (stored: KubeObject): KubeObject => {
      const { resourceVersion: _old, ...metadata } = stored.metadata
      return {
        ...stored,
        metadata: { ...metadata, ...(version !== undefined && { resourceVersion: version }) },
      }
    }
    await expect(updateObject(context, leases, { ...writing, key, mutate: sent })).rejects.toThrow(
      'metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )
  },
)

test('the same object with its fields in another order makes no revision', async () => {
  const context = await openRegistry()
  const { record } = await make(context, configMaps, { data: { a: '1', b: '2' } })
  const result = await updateObject(context, configMaps, {
    ...writing,
    key,
    mutate: ({ metadata, ...rest }) => ({
      ...rest,
      data: { b: '2', a: '1' },
      metadata: Object.fromEntries(
        Object.entries(metadata).reverse(),
      ) as unknown as KubeObject['metadata'],
    }),
  })
  expect(result.record?.revision).toBe(record?.revision)
  expect(context.store.revision).toBe(record?.revision)
})

test.each([
  ['creationTimestamp', '2001-01-01T00:00:00Z'],
  ['generation', 9],
])('a change of %s is forgotten', async (field, value) => {
  const context = await openRegistry()
  const { record } = await make(context, configMaps)
  const result = await updateObject(context, configMaps, {
    ...writing,
    key,
    mutate: (stored) => ({ ...stored, metadata: { ...stored.metadata, [field]: value } }),
  })
  expect(result.record?.revision).toBe(record?.revision)
})

test.each([
  ['uid', 'other'],
  ['deletionTimestamp', '2001-01-01T00:00:00Z'],
])('a change of %s is refused [GND-R62]', async (field, value) => {
  const context = await openRegistry()
  await make(context, configMaps)
  const change = updateObject(context, configMaps, {
    ...writing,
    key,
    mutate: (stored) => ({ ...stored, metadata: { ...stored.metadata, [field]: value } }),
  })
  await expect(change).rejects.toThrow(`metadata.${field}: Invalid value`)
})

test('a dry run takes what it needs and gives it back [GND-R58]', async () => {
  const log: string[] = []
  const hook: WriteHook = {
    kind: configMaps.kind,
    beforeStore: (draft) => {
      log.push('taken')
      draft['data'] = { address: '10.0.0.1' }
      return () => log.push('given back')
    },
    afterStore: () => log.push('kept'),
  }
  const context = await openRegistry([hook])
  const draft = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { ...key } }
  const { object } = await createObject(context, configMaps, draft, { ...writing, dryRun: true })
  expect(object['data']).toEqual({ address: '10.0.0.1' })
  expect(log).toEqual(['taken', 'given back'])
  await make(context, configMaps)
  expect(log.slice(2)).toEqual(['taken', 'kept'])
})

/** Each write that can wait, and ends while it does. */
const writes: Readonly<
  Record<string, (context: RegistryContext, ending: AbortController) => Promise<unknown>>
> = {
  create: (context, { signal }) => {
    const draft = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { ...key, name: 'b' } }
    return createObject(context, configMaps, draft, { ...writing, signal })
  },
  update: (context, { signal }) =>
    updateObject(context, configMaps, {
      ...writing,
      signal,
      key,
      mutate: (stored) => ({ ...stored, data: { x: '1' } }),
    }),
  'patch in a worker': (context, ending) =>
    updateObject(context, configMaps, {
      ...writing,
      signal: ending.signal,
      key,
      mutate: async (stored) => {
        ending.abort(new Error('revoked'))
        return { ...stored, data: { x: '1' } }
      },
    }),
  delete: (context, { signal }) => deleteObject(context, configMaps, { ...writing, signal, key }),
}

test.each(Object.entries(writes))(
  'a request that has ended writes nothing: %s [SEC-R2453]',
  async (_verb, write) => {
    const context = await openRegistry()
    await make(context, configMaps)
    const before = context.store.revision
    const ending = new AbortController()
    const admission = (): Promise<void> =>
      Promise.resolve().then(() => ending.abort(new Error('revoked')))
    const admissions = new AdmissionChain([admission])
    await expect(write({ ...context, admissions }, ending)).rejects.toThrow('revoked')
    expect(context.store.revision).toBe(before)
  },
)
