import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { aborted, type ClusterView, type KubeObject, silentLogger } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import { LabClock } from '../token/token-lab.suite.ts'
import { ServiceAudiences } from './service-audiences.ts'

const namespace = 'shop'
const pod = (labels: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-1', namespace, labels },
})
const service = (
  name: string,
  selector?: Record<string, string>,
  where = namespace,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: where },
  spec: selector ? { selector } : {},
})

let view: FakeClusterView
let ended: AbortController
beforeEach(() => {
  view = new FakeClusterView({ objects: [pod({ app: 'web', tier: 'front' })] })
  ended = new AbortController()
})
afterEach(() => ended.abort())

async function watched(
  clock = new LabClock(),
  cluster: ClusterView = view,
): Promise<ServiceAudiences> {
  const { signal } = ended
  const options = { view: cluster, namespace, podName: 'web-1', clock, log: silentLogger, signal }
  const audiences = new ServiceAudiences({ ...options, maxAgeMs: 60_000 })
  await audiences.start()
  return audiences
}

const known = (audiences: ServiceAudiences): Promise<unknown> =>
  vi.waitFor(() => expect(audiences.problem).toBeUndefined(), 10_000)

describe('the Services of a Pod [ADDON-R38]', () => {
  test('are those that select it, in its namespace, and several if several do', async () => {
    view.put(service('all', { app: 'web' }))
    view.put(service('narrow', { app: 'web', tier: 'front' }))
    view.put(service('other', { app: 'web', tier: 'back' }))
    view.put(service('without-selector'))
    view.put(service('empty-selector', {}))
    view.put(service('elsewhere', { app: 'web' }, 'bank'))
    const audiences = await watched()
    await known(audiences)
    expect(audiences.names).toEqual(['shop/all', 'shop/narrow'])
    expect([audiences.has('shop/all'), audiences.has('bank/elsewhere')]).toEqual([true, false])
  })

  test('follow Services that come and go, and labels that change', async () => {
    const audiences = await watched()
    await known(audiences)
    expect(audiences.names).toEqual([])
    const late = view.put(service('late', { app: 'web' }))
    await vi.waitFor(() => expect(audiences.names).toEqual(['shop/late']))
    await view.write('delete', late, {}, ended.signal)
    await vi.waitFor(() => expect(audiences.names).toEqual([]))
    view.put(service('other', { app: 'db' }))
    view.put(pod({ app: 'db' }))
    await vi.waitFor(() => expect(audiences.names).toEqual(['shop/other']))
  })

  test('are unknown until they were seen', async () => {
    view.fail(new Error('nobody is there'))
    const audiences = await watched()
    expect(audiences.problem).toBe('audiences-unknown')
    view.fail(undefined)
    await known(audiences)
  })

  test('are unknown while the Pod is gone', async () => {
    const audiences = await watched()
    await known(audiences)
    await view.write('delete', pod({}), {}, ended.signal)
    await vi.waitFor(() => expect(audiences.problem).toBe('audiences-unknown'))
  })

  test('hold for their age while the cluster does not answer, then none does [ADDON-T61]', async () => {
    view.put(service('web', { app: 'web' }))
    const clock = new LabClock()
    const audiences = await watched(clock)
    await known(audiences)
    view.fail(new Error('gone'))
    clock.turn(59_000)
    expect([audiences.problem, audiences.has('shop/web')]).toEqual([undefined, true])
    clock.turn(1_001)
    expect(audiences.problem).toBe('audiences-stale')
    view.fail(undefined)
    view.put(service('web', { app: 'other' }))
    await known(audiences)
    expect(audiences.has('shop/web')).toBe(false)
  })

  test('do not live on by a network that swallows everything [ADDON-T61, ADDON-X18]', async () => {
    view.put(service('web', { app: 'web' }))
    const clock = new LabClock()
    const network = new Network(view)
    const audiences = await watched(clock, network)
    await known(audiences)
    network.isSwallowing = true
    const { asked } = network
    clock.turn(60_001)
    await vi.waitFor(() => expect(network.asked).toBe(asked + 2), 5_000)
    expect(audiences.problem).toBe('audiences-stale')
  })

  test('are replaced when the watch has died and a list shows it, and stale until then [ADDON-T61, ADDON-X18]', async () => {
    view.put(service('web', { app: 'web' }))
    const clock = new LabClock()
    const network = new Network(view)
    const audiences = await watched(clock, network)
    await known(audiences)
    network.isDeaf = true
    view.put(service('web', { app: 'other' }))
    expect([audiences.problem, audiences.has('shop/web')]).toEqual([undefined, true])
    clock.turn(60_001)
    expect(audiences.problem).toBe('audiences-stale')
    await known(audiences)
    expect(audiences.has('shop/web')).toBe(false)
  })

  test('live on through the silence of a cluster that still shows the same [ADDON-X18]', async () => {
    view.put(service('web', { app: 'web' }))
    const clock = new LabClock()
    const audiences = await watched(clock, new Network(view))
    await known(audiences)
    clock.turn(60_001)
    expect(audiences.problem).toBe('audiences-stale')
    await known(audiences)
    expect(audiences.has('shop/web')).toBe(true)
  })
})

/** The way to a cluster, which can break without anybody hearing of it. */
class Network implements ClusterView {
  readonly #view: ClusterView
  asked = 0
  answered = 0
  /** Nothing comes back any more. */
  isSwallowing = false
  /** Events of watches are lost. */
  isDeaf = false

  constructor(view: ClusterView) {
    this.#view = view
  }

  async list(...[kind, query, signal]: Parameters<ClusterView['list']>) {
    this.asked += 1
    if (this.isSwallowing) await aborted(signal)
    const list = await this.#view.list(kind, query, signal)
    this.answered += 1
    return list
  }

  async *watch(...asked: Parameters<ClusterView['watch']>) {
    for await (const event of this.#view.watch(...asked))
      if (!this.isDeaf && !this.isSwallowing) yield event
  }

  get: ClusterView['get'] = (...asked) => this.#view.get(...asked)
  write: ClusterView['write'] = (...asked) => this.#view.write(...asked)
  review: ClusterView['review'] = (...asked) => this.#view.review(...asked)
}
