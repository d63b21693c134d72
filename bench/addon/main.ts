import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerMissing } from '../api/contestant.ts'
import type { Figure } from '../credentials/figures.ts'
import { type Order, readOrder, report } from '../credentials/report.ts'
import { startSallyport } from '../sallyport.ts'
import { outwardAddress, type sizes, startHttpBackend } from './backend.ts'
import { type Asked, measureLoad, warmUp, withIdentity } from './measure-load.ts'
import { type MemoryOrder, measureGuardMemory, measureProxyMemory } from './measure-memory.ts'
import { proxyPath, publish } from './publish.ts'
import { ours, startOurs, startTheirs, theirs } from './servers.ts'

/** The service proxy beside that of kube-apiserver, and what idle WebSockets cost in both and in sidecars. */

const service = 'web'
const order = readOrder('addon')
const isShort = order.rounds === 1
const directory = await mkdtemp(join(tmpdir(), 'bench-addon-'))
const missing = peerMissing()
if (missing !== undefined) console.error(missing)

/** A kubeconfig of the backend itself, so that the same load can be sent straight to it. */
async function plainKubeconfig(server: string): Promise<string> {
  const file = join(directory, 'backend.kubeconfig')
  const config = {
    clusters: [{ name: 'c', cluster: { server } }],
    contexts: [{ name: 'x', context: { cluster: 'c' } }],
    'current-context': 'x',
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

async function measureProxying({ rounds, seconds, nodeFlags }: Order): Promise<Figure[]> {
  const stops: (() => Promise<unknown>)[] = []
  try {
    const backend = await startHttpBackend({ directory, stops }, outwardAddress())
    const own = await startOurs(join(directory, 'ours'), nodeFlags)
    stops.push(() => own.stop())
    const peer = missing === undefined ? await startTheirs(join(directory, 'theirs')) : undefined
    if (peer) stops.push(() => peer.stop())
    const servers = [own, ...(peer ? [peer] : [])]
    for (const { kubeconfig } of servers) await publish(kubeconfig, service, backend)
    const kubeconfig = await plainKubeconfig(`http://${backend.address}:${backend.port}`)
    const askFor = (size: keyof typeof sizes): Asked[] => {
      const path = proxyPath(service, size)
      const asIdentified = { ...own, name: withIdentity, path: `${path}?add-auth=true` }
      return [
        ...servers.map((server) => ({ ...server, path })),
        // A token costs what it costs, however long the answer is.
        ...(size === 'small' ? [asIdentified] : []),
        { name: 'backend alone', kubeconfig, pid: backend.pid, path: `/${size}` },
      ]
    }
    const figures: Figure[] = []
    for (const size of ['small', 'large'] as const) {
      if (!isShort) await warmUp(askFor(size), size)
      for (const connections of [1, 64])
        figures.push(...(await measureLoad(askFor(size), size, connections, { rounds, seconds })))
    }
    return figures
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

async function measureMemory({ rounds }: Order): Promise<Figure[]> {
  const sockets: MemoryOrder = isShort
    ? { rounds, count: 100, settleMs: 1_000 }
    : { rounds, count: 1_000, settleMs: 10_000 }
  const starts = new Map([
    [ours, (place: string) => startOurs(place)],
    ...(missing === undefined ? [[theirs, startTheirs] as const] : []),
  ])
  const through = await measureProxyMemory(starts, directory, sockets)
  const home = join(directory, 'guarded')
  await mkdir(home)
  const sallyport = await startSallyport(home) // kube-rbac-proxy asks it
  try {
    return [
      through,
      await measureGuardMemory({ directory: home, sallyport, nodeFlags: [] }, sockets),
    ]
  } finally {
    await sallyport.stop()
  }
}

try {
  await report([...(await measureProxying(order)), ...(await measureMemory(order))], order)
} finally {
  await rm(directory, { recursive: true, force: true })
}
