import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import {
  CoreV1Api,
  KubeConfig,
  type KubernetesListObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  VersionApi,
  Watch,
} from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

/** Hands connections on to a port of this machine until they are cut. */
async function startProxy(target: number) {
  const open = new Set<Socket>()
  let cuts = 0
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.on('error', () => to.destroy()).on('close', () => open.delete(from))
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    for (const socket of open) {
      socket.destroy()
      cuts++
    }
  }
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts
    },
    cut,
    close() {
      cut()
      server.close()
    },
  }
}

describe('@kubernetes/client-node', () => {
  const namespace = 'client-node'
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  let server: SallyportProcess
  let config: KubeConfig
  let core: CoreV1Api

  beforeAll(async () => {
    server = await startSallyport()
    config = new KubeConfig()
    config.loadFromFile(server.kubeconfig)
    core = config.makeApiClient(CoreV1Api)
    await core.createNamespace({ body: { metadata: { name: namespace } } })
  })
  afterAll(() => server?.stop())

  const create = (name: string, data: Record<string, string>, labels = {}) =>
    core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels }, data } })
  const list = (): Promise<KubernetesListObject<V1ConfigMap>> =>
    core.listNamespacedConfigMap({ namespace })

  test('creates, reads, replaces, lists by label and deletes [GND-R91]', async () => {
    const made = await create('whole', { a: '1' }, { app: 'whole' })
    expect(made.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/)
    expect(made.metadata?.creationTimestamp).toBeInstanceOf(Date)
    const read = await core.readNamespacedConfigMap({ namespace, name: 'whole' })
    expect(read).toEqual(made)
    const body = { metadata: read.metadata ?? {}, data: { a: '2' } }
    await core.replaceNamespacedConfigMap({ namespace, name: 'whole', body })
    const { items } = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=whole' })
    expect(items.map(({ data }) => data)).toEqual([{ a: '2' }])
    await core.deleteNamespacedConfigMap({ namespace, name: 'whole' })
    await expect(core.readNamespacedConfigMap({ namespace, name: 'whole' })).rejects.toMatchObject({
      code: 404,
    })
  })

  test('lists in pages [GND-R91]', async () => {
    for (const name of ['page-1', 'page-2', 'page-3']) await create(name, {}, { app: 'paged' })
    const names: string[] = []
    let token: string | undefined
    do {
      const page = await core.listNamespacedConfigMap({
        namespace,
        labelSelector: 'app=paged',
        limit: 2,
        ...(token && { _continue: token }),
      })
      names.push(...page.items.map(({ metadata }) => metadata?.name ?? ''))
      token = page.metadata?._continue
    } while (token)
    expect(names).toEqual(['page-1', 'page-2', 'page-3'])
  })

  test.each([
    ['a JSON patch', PatchStrategy.JsonPatch, [{ op: 'add', path: '/data/b', value: '2' }]],
    ['a merge patch', PatchStrategy.MergePatch, { data: { b: '2' } }],
    ['a strategic merge patch', PatchStrategy.StrategicMergePatch, { data: { b: '2' } }],
  ])('patches by %s [GND-R91]', async (_, strategy, body) => {
    const name = `patched-${strategy.replaceAll(/[^a-z]/g, '-')}`
    await create(name, { a: '1' })
    const header = setHeaderOptions('Content-Type', strategy)
    const patched = await core.patchNamespacedConfigMap({ namespace, name, body }, header)
    expect(patched.data).toEqual({ a: '1', b: '2' })
  })

  test('understands our refusals [GND-R91]', async () => {
    await create('twice', {})
    await expect(create('twice', {})).rejects.toMatchObject({
      code: 409,
      body: expect.stringContaining('"reason":"AlreadyExists"'),
    })
  })

  test('watches and sees each change once [GND-R91]', async () => {
    const seen: string[] = []
    const { metadata } = await list()
    const query = { resourceVersion: metadata?.resourceVersion, labelSelector: 'app=watched' }
    let ended: unknown = 'open'
    const request = await new Watch(config).watch(
      path,
      query,
      (type, object: V1ConfigMap) => seen.push(`${type} ${object.data?.['n']}`),
      (error) => {
        ended = error
      },
    )
    await create('watched', { n: '1' }, { app: 'watched' })
    const body = { metadata: { name: 'watched', labels: { app: 'watched' } }, data: { n: '2' } }
    await core.replaceNamespacedConfigMap({ namespace, name: 'watched', body })
    await core.deleteNamespacedConfigMap({ namespace, name: 'watched' })
    await vi.waitFor(() => expect(seen).toHaveLength(3))
    expect(seen).toEqual(['ADDED 1', 'MODIFIED 2', 'DELETED 2'])
    expect(ended).toBe('open')
    request.abort()
  })

  test('keeps an informer whole although its connection is cut again and again [GND-R91]', async () => {
    const app = { app: 'informed' }
    const labelSelector = 'app=informed'
    await create('informed', { n: '0' }, app)
    const proxy = await startProxy(Number(new URL(server.server).port))
    const cutConfig = new KubeConfig()
    const text = await readFile(server.kubeconfig, 'utf8')
    cutConfig.loadFromString(text.replace(server.server, `https://127.0.0.1:${proxy.port}`))
    const lister = cutConfig.makeApiClient(CoreV1Api)
    const informer = makeInformer<V1ConfigMap>(
      cutConfig,
      path,
      () => lister.listNamespacedConfigMap({ namespace, labelSelector }),
      labelSelector,
    )
    const seen: string[] = []
    for (const verb of ['add', 'update', 'delete'] as const)
      informer.on(verb, ({ data }) => seen.push(`${verb} ${data?.['n']}`))
    informer.on('error', () => setTimeout(() => void informer.start(), 20))
    await informer.start()
    const expected = ['add 0']
    for (let n = 1; n <= 9; n++) {
      if (n % 3 === 0) proxy.cut()
      const body = { metadata: { name: 'informed', labels: app }, data: { n: String(n) } }
      await core.replaceNamespacedConfigMap({ namespace, name: 'informed', body })
      expected.push(`update ${n}`)
      await vi.waitFor(() => expect(seen).toHaveLength(expected.length), { timeout: 10_000 })
    }
    await core.deleteNamespacedConfigMap({ namespace, name: 'informed' })
    await vi.waitFor(() => expect(seen).toHaveLength(expected.length + 1))
    expect(seen).toEqual([...expected, 'delete 9'])
    expect(informer.list()).toEqual([])
    expect(proxy.cuts).toBeGreaterThanOrEqual(3)
    await informer.stop()
    proxy.close()
  })

  test('reads the version [GND-R91]', async () => {
    const { gitVersion } = await config.makeApiClient(VersionApi).getCode()
    expect(gitVersion).toMatch(/^v1\.\d+\./)
  })
})
