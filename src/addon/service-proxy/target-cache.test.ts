import { expect, test } from 'vitest'
import {
  type ClusterView,
  type KubeObject,
  silentLogger,
  type WatchEvent,
  wellKnownKinds,
} from '../../core/index.ts'
import { TargetCache } from './target-cache.ts'

const slice = (name: string, service: string, resourceVersion = '1'): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name,
    namespace: 'n',
    resourceVersion,
    labels: { 'kubernetes.io/service-name': service },
  },
})
const web: KubeObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'n', resourceVersion: '1' },
}

/** A view whose watches a test feeds and breaks. */
function brokenView() {
  const listed: Record<string, KubeObject[]> = {
    services: [web],
    pods: [],
    endpointslices: [slice('a', 'web'), slice('b', 'other')],
  }
  const asked: string[] = []
  const feeds = new Map<string, (event: WatchEvent | Error) => void>()
  const view = {
    get: async (kind: { resource: string }) => {
      asked.push(`get ${kind.resource}`)
      return web
    },
    list: async ({ resource }: { resource: string }, query: { labelSelector?: string }) => {
      if (query.labelSelector !== undefined) asked.push(`list ${resource}`)
      return { items: listed[resource] ?? [], resourceVersion: '1' }
    },
    async *watch({ resource }: { resource: string }, _query: object, signal: AbortSignal) {
      while (!signal.aborted) {
        const event = await new Promise<WatchEvent | Error>((resolve) => {
          feeds.set(resource, resolve)
          signal.addEventListener('abort', () => resolve(new Error('over')), { once: true })
        })
        if (event instanceof Error) throw event
        yield event
      }
    },
  }
  const feed = async (resource: string, event: WatchEvent | Error): Promise<void> => {
    feeds.get(resource)?.(event)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { view: view as unknown as ClusterView, feed, asked }
}

test('what is watched is looked up in memory, and asked for while the watch is lost [ADDON-T52]', async () => {
  const { view, feed, asked } = brokenView()
  const ending = new AbortController()
  const { signal } = ending
  const targets = await TargetCache.open({ view, log: silentLogger, signal })
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  const namesOf = async (): Promise<string[]> =>
    (await targets.slices('n', 'web', signal)).map(({ metadata }) => metadata.name)
  expect(await namesOf()).toEqual(['a'])
  await feed('endpointslices', { type: 'ADDED', object: slice('c', 'web') })
  await feed('endpointslices', { type: 'MODIFIED', object: slice('a', 'other', '2') })
  expect(await namesOf()).toEqual(['c'])
  await feed('endpointslices', { type: 'DELETED', object: slice('c', 'web') })
  expect(await namesOf()).toEqual([])
  expect(await targets.get(wellKnownKinds.service, { namespace: 'n', name: 'web' }, signal)).toBe(
    web,
  )
  expect(
    await targets.get(wellKnownKinds.service, { namespace: 'n', name: 'x' }, signal),
  ).toBeUndefined()
  expect(asked).toEqual([])
  await feed('endpointslices', new Error('lost'))
  await feed('services', new Error('lost'))
  await namesOf()
  await targets.get(wellKnownKinds.service, { namespace: 'n', name: 'x' }, signal)
  expect(asked).toEqual(['list endpointslices', 'get services'])
  ending.abort()
})
