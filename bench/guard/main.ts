import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Aim, type Figure, figureOf } from '../credentials/figures.ts'
import { readOrder, report } from '../credentials/report.ts'
import { inTurn } from '../in-turn.ts'
import { startSallyport } from '../sallyport.ts'
import {
  type Contestant,
  type Ground,
  memoryOf,
  startBackend,
  startBareProxy,
  startGuard,
  startKubeRbacProxy,
  startNginxProxy,
  startOauth2Proxy,
} from './contestants.ts'
import { type LoadResult, runLoad } from './load.ts'

/** The guard beside a proxy of ours that checks nothing, nginx, kube-rbac-proxy and oauth2-proxy. */

const ours = 'sallyport guard'
const metrics = [
  { of: 'perSecond', unit: 'requests per second', better: 'more' },
  { of: 'cpuMicroseconds', unit: 'CPU each, us', better: 'less' },
  { of: 'p50Ms', unit: 'p50, ms', better: 'less' },
  { of: 'p99Ms', unit: 'p99, ms', better: 'less' },
] as const

/** At most so much of the peer's CPU per request, and within a tenth of a proxy that checks nothing. */
const aimsOf = (connections: number): Aim[] => [
  { of: ours, than: 'kube-rbac-proxy', times: connections === 1 ? 1 / 0.8 : 1 / 0.4 },
  { of: ours, than: 'bare proxy', times: 1 / 1.1 },
]

async function measure(
  contestants: readonly Contestant[],
  connections: number,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<Figure[]> {
  const results = await inTurn<LoadResult>(
    new Map(
      contestants.map(({ name, pid, port, token }) => [
        name,
        () => runLoad({ pid, port, token, connections, seconds }),
      ]),
    ),
    rounds,
  )
  return metrics.map(({ of, unit, better }) => {
    const all = [...results].map(([name, each]) => [name, each.map((result) => result[of])])
    const name = `${connections} connection${connections === 1 ? '' : 's'}`
    const aims = of === 'cpuMicroseconds' ? aimsOf(connections) : []
    return figureOf({ name, unit, better, aims, rounds: Object.fromEntries(all) })
  })
}

async function memory(contestants: readonly Contestant[]): Promise<Figure> {
  const rounds: Record<string, number[]> = {}
  for (const { name, pid } of contestants) rounds[name] = [await memoryOf(pid)]
  const aims = [{ of: ours, than: 'bare proxy', times: 1 }]
  return figureOf({ name: 'memory after that', unit: 'MB', better: 'less', aims, rounds })
}

const order = readOrder('guard')
const directory = await mkdtemp(join(tmpdir(), 'bench-guard-'))
const stops: (() => Promise<unknown>)[] = []
try {
  const sallyport = await startSallyport(directory)
  stops.push(() => sallyport.stop())
  const { nodeFlags } = order
  const ground: Ground = { directory, sallyport, nodeFlags, stops, backendPort: 0 }
  const behind: Ground = { ...ground, backendPort: await startBackend(ground) }
  const contestants = [
    await startGuard(behind),
    await startBareProxy(behind),
    await startNginxProxy(behind),
    await startKubeRbacProxy(behind),
    await startOauth2Proxy(behind),
  ].filter((each) => each !== undefined)
  // Code that has run often is fast code, in Node more than elsewhere.
  await measure(contestants, 16, { rounds: 1, seconds: order.seconds })
  const figures = [
    ...(await measure(contestants, 1, order)),
    ...(await measure(contestants, 64, order)),
    await memory(contestants),
  ]
  await report(figures, order)
} finally {
  for (const stop of stops.reverse()) await stop()
  await rm(directory, { recursive: true, force: true })
}
