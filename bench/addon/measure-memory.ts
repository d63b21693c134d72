import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { loadContext } from '../../src/kubeconfig/index.ts'
import { type Aim, type Figure, figureOf } from '../credentials/figures.ts'
import {
  type Contestant,
  type Ground,
  startGuard,
  startKubeRbacProxy,
  startOauth2Proxy,
} from '../guard/contestants.ts'
import { inTurn } from '../in-turn.ts'
import { outwardAddress, startWebSocketBackend } from './backend.ts'
import { type IdleOrder, memoryOfEach } from './idle-web-sockets.ts'
import { proxyPath, publish } from './publish.ts'
import { ours, type ProxyServer, theirs } from './servers.ts'

const service = 'sockets'

/** How often and how much is opened. */
export interface MemoryOrder extends IdleOrder {
  readonly rounds: number
}

type Start = (directory: string) => Promise<ProxyServer>

/** Idle WebSockets through the service proxy of servers that are started for them, each time in `directory`. */
export async function measureProxyMemory(
  starts: ReadonlyMap<string, Start>,
  directory: string,
  order: MemoryOrder,
): Promise<Figure> {
  const stops: Ground['stops'] = []
  const place = await startWebSocketBackend({ stops }, outwardAddress())
  const measure = async (start: Start): Promise<number> => {
    const server = await start(await mkdtemp(join(directory, 'sockets-')))
    try {
      await publish(server.kubeconfig, service, place)
      const { cluster, user } = await loadContext({ explicitPath: server.kubeconfig, home: '' })
      const target = {
        port: Number(new URL(cluster.server).port),
        path: proxyPath(service, ''),
        token: user.token?.reveal() ?? '',
        ca: cluster.certificateAuthorityData ?? '',
      }
      return await memoryOfEach(server.pid, target, order)
    } finally {
      await server.stop()
    }
  }
  try {
    const measured = new Map([...starts].map(([name, start]) => [name, () => measure(start)]))
    const aims = [{ of: ours, than: theirs, times: 1 }]
    return await inRounds(measured, 'through the service proxy', aims, order)
  } finally {
    for (const stop of stops) await stop()
  }
}

/** The same through the guard and the sidecars that it is compared with, all of them without TLS. */
export async function measureGuardMemory(
  ground: Omit<Ground, 'stops' | 'backendPort'>,
  order: MemoryOrder,
): Promise<Figure> {
  const stops: Ground['stops'] = []
  const { port: backendPort } = await startWebSocketBackend({ stops }, '127.0.0.1')
  const starts = new Map([
    ['sallyport guard', startGuard],
    ['kube-rbac-proxy', startKubeRbacProxy],
    ['oauth2-proxy', startOauth2Proxy],
  ])
  const measure = async (
    start: (ground: Ground) => Promise<Contestant | undefined>,
  ): Promise<number | undefined> => {
    const own: Ground = { ...ground, backendPort, stops: [] }
    try {
      const running = await start(own)
      if (!running) return undefined
      const { pid, port, token = '' } = running
      return await memoryOfEach(pid, { port, path: '/', token }, order)
    } finally {
      for (const stop of own.stops.reverse()) await stop()
    }
  }
  try {
    const measured = new Map([...starts].map(([name, start]) => [name, () => measure(start)]))
    const aims = [{ of: 'sallyport guard', than: 'kube-rbac-proxy', times: 1 }]
    return await inRounds(measured, 'through the guard', aims, order)
  } finally {
    for (const stop of stops) await stop()
  }
}

async function inRounds(
  measured: ReadonlyMap<string, () => Promise<number | undefined>>,
  where: string,
  aims: readonly Aim[],
  { count, rounds }: MemoryOrder,
): Promise<Figure> {
  const results = await inTurn(measured, rounds)
  const found = [...results].map(([name, each]) => {
    return [name, each.filter((value) => value !== undefined)] as const
  })
  return figureOf({
    name: `${count.toLocaleString('en')} idle WebSockets ${where}`,
    unit: 'KiB each',
    better: 'less',
    aims,
    rounds: Object.fromEntries(found.filter(([, values]) => values.length > 0)),
  })
}
