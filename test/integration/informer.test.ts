import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import {
  ConnectionFailed,
  createInformer,
  createKubeClient,
  RemoteClusterView,
  type Transport,
  transportFromKubeconfig,
} from '../../src/client/index.ts'
import { type Kind, type KubeObject, silentLogger } from '../../src/core/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

const configMaps: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const rounds = 2
const writers = 8
const backoff = { initialMs: 20, maxMs: 200 }

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

async function transportOf(server: SallyportProcess): Promise<Transport> {
  const config = await parseKubeconfig(await readFile(server.kubeconfig, 'utf8'), server.kubeconfig)
  return transportFromKubeconfig(resolveContext(config))
}

const versionOf = (object: KubeObject) => String(object.metadata.resourceVersion)

/** Updates its own object until told to stop; tells the versions that the server acknowledged. */
async function write(view: RemoteClusterView, name: string, stop: AbortSignal): Promise<string[]> {
  const acknowledged: string[] = []
  const { signal } = new AbortController()
  for (let n = 0; !stop.aborted; n++) {
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      data: { n: String(n) },
    }
    try {
      const there = await view.get(configMaps, { namespace: 'default', name }, signal)
      acknowledged.push(
        versionOf(await view.write(there ? 'update' : 'create', object, {}, signal)),
      )
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error
      await new Promise((resolve) => setTimeout(resolve, backoff.initialMs))
    }
  }
  return acknowledged
}

test('an informer misses and doubles nothing when its server is killed [GND-R85]', async () => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'informer-'))
  cleanups.push(() => rm(dataDirectory, { recursive: true, force: true }))
  const args = ['--secure-port', String(await freePort())]
  let server = await startSallyport({ dataDirectory, args })
  cleanups.push(() => server.stop())
  const transport = await transportOf(server)
  cleanups.push(() => transport.destroy())
  const view = new RemoteClusterView(createKubeClient({ transport, timeoutMs: 5_000 }))

  const seen: string[] = []
  const stop = new AbortController()
  cleanups.push(() => stop.abort())
  const query = { namespace: 'default' }
  const { signal } = stop
  const informer = createInformer({
    view,
    kind: configMaps,
    query,
    log: silentLogger,
    backoff,
    signal,
  })
  informer.onChange(({ after }) => {
    if (after) seen.push(versionOf(after))
  })
  await informer.synced

  const stopWriting = new AbortController()
  const writing = Promise.all(
    Array.from({ length: writers }, (_, i) => write(view, `writer-${i}`, stopWriting.signal)),
  )
  for (let round = 0; round < rounds; round++) {
    const before = seen.length
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(before + 100), { timeout: 15_000 })
    server.process.kill('SIGKILL')
    await once(server.process, 'exit')
    server = await startSallyport({ dataDirectory, args })
  }
  stopWriting.abort()
  const acknowledged = (await writing).flat()

  await vi.waitFor(() => expect(seen).toEqual(expect.arrayContaining(acknowledged)), {
    timeout: 10_000,
  })
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.map(Number)).toEqual(seen.map(Number).toSorted((a, b) => a - b))
}, 60_000)
