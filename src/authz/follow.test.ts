import { describe, expect, test, vi } from 'vitest'
import { ApiError, type ClusterView, type KubeObject, silentLogger } from '../core/index.ts'
import { FakeClusterView } from '../testing/fake-cluster-view.ts'
import { follow } from './follow.ts'
import { clusterRole } from './policy-objects.suite.ts'
import { rbacKinds } from './rbac-kinds.ts'

function start(view: ClusterView) {
  const heard: string[] = []
  const stop = new AbortController()
  const nameOf = ({ metadata }: KubeObject) => metadata.name
  const following = follow(
    { view, kind: rbacKinds.clusterRole, log: silentLogger },
    {
      put: (object) => heard.push(`put ${nameOf(object)}`),
      remove: (object) => heard.push(`remove ${nameOf(object)}`),
    },
    stop.signal,
  )
  return { heard, stop, ...following }
}

describe('following objects', () => {
  test('hears the list first, then each change once', async () => {
    const view = new FakeClusterView({ objects: [clusterRole('b'), clusterRole('a')] })
    const { heard, synced, stop, ended } = start(view)
    await synced
    expect(heard).toEqual(['put a', 'put b'])
    view.put(clusterRole('c'))
    view.put(clusterRole('a', { verbs: ['get'] }))
    await vi.waitFor(() => expect(heard).toEqual(['put a', 'put b', 'put c', 'put a']))
    stop.abort()
    await ended
    expect(view.openWatches).toBe(0)
  })

  test('takes up a watch that ended where it was, without a second list', async () => {
    const view = new FakeClusterView({ objects: [clusterRole('a')] })
    const list = vi.spyOn(view, 'list')
    const { heard, synced, stop } = start(view)
    await synced
    await vi.waitFor(() => expect(view.openWatches).toBe(1))
    view.cutWatches()
    view.put(clusterRole('b'))
    await vi.waitFor(() => expect(heard).toEqual(['put a', 'put b']))
    expect(list).toHaveBeenCalledOnce()
    stop.abort()
  })

  test('after 410 hears only what differs', async () => {
    const view = new FakeClusterView({
      objects: [clusterRole('same'), clusterRole('gone'), clusterRole('changed')],
    })
    const { heard, synced, stop } = start(view)
    await synced
    await vi.waitFor(() => expect(view.openWatches).toBe(1))
    heard.length = 0
    view.fail(new ApiError('Timeout', 'away'))
    await vi.waitFor(() => expect(view.openWatches).toBe(0))
    view.fail(undefined)
    await view.write('delete', clusterRole('gone'), {}, stop.signal)
    view.put(clusterRole('changed'))
    view.put(clusterRole('new'))
    view.compact()
    await vi.waitFor(() => expect(heard).toEqual(['put changed', 'put new', 'remove gone']))
    stop.abort()
  })

  test('waits for a cluster that cannot be reached yet', async () => {
    const view = new FakeClusterView({ objects: [clusterRole('a')] })
    view.fail(new ApiError('ServiceUnavailable', 'starting'))
    const { heard, synced, stop } = start(view)
    view.fail(undefined)
    await synced
    expect(heard).toEqual(['put a'])
    stop.abort()
  })

  test('goes on from a bookmark', async () => {
    const view = new FakeClusterView()
    const from: string[] = []
    const watched: ClusterView = {
      get: view.get.bind(view),
      list: view.list.bind(view),
      write: view.write.bind(view),
      review: view.review.bind(view),
      async *watch(_kind, query, signal) {
        from.push(query.from)
        if (from.length > 1) return yield* view.watch(rbacKinds.clusterRole, query, signal)
        const { apiVersion, kind } = clusterRole('')
        yield {
          type: 'BOOKMARK',
          object: { apiVersion, kind, metadata: { name: '', resourceVersion: '7' } },
        }
      },
    }
    const { heard, stop } = start(watched)
    await vi.waitFor(() => expect(from).toEqual(['1', '7']))
    expect(heard).toEqual([])
    stop.abort()
  })

  test('that is stopped before the first list says so', async () => {
    const view = new FakeClusterView()
    view.fail(new ApiError('ServiceUnavailable', 'starting'))
    const { synced, stop, ended } = start(view)
    stop.abort(new Error('stopped'))
    await expect(synced).rejects.toThrow('stopped')
    await ended
  })
})
