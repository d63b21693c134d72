import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inTurn } from '../in-turn.ts'
import { findPeer } from '../peers.ts'
import { contestants } from './contestants.ts'
import { type Aim, type Figure, figureOf } from './figures.ts'
import { openGround } from './ground.ts'
import { type Order, readOrder, report } from './report.ts'

/** Requests with the cached credential of an exec plugin, ours beside the official client's and client-go's. */

type Result = Readonly<Record<string, number>>

const official = '@kubernetes/client-node'
const clientGo = 'client-go'
const run = promisify(execFile)
const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

async function resultOf(program: string, args: readonly string[]): Promise<Result> {
  const { stdout } = await run(program, [...args])
  return JSON.parse(stdout) as Result
}

/** Every contestant by its name, each a process of its own. */
function programs(kubeconfig: string, concurrency: number, { seconds, nodeFlags }: Order) {
  const found = new Map<string, () => Promise<Result>>()
  for (const name of Object.keys(contestants)) {
    const args = [here('load.js'), name, kubeconfig, `${concurrency}`, `${seconds}`]
    found.set(name, () => resultOf(process.execPath, [...nodeFlags, ...args]))
  }
  const peer = findPeer('client-load')
  if ('missing' in peer) {
    console.error(peer.missing)
    return found
  }
  const flags = ['--kubeconfig', kubeconfig, '--concurrency', `${concurrency}`]
  return found.set(clientGo, () => resultOf(peer.path, [...flags, '--seconds', `${seconds}`]))
}

const loadMetrics = [
  { of: 'perSecond', unit: 'requests per second', better: 'more', than: official, times: 10 },
  { of: 'perCpuSecond', unit: 'requests per CPU second', better: 'more', than: clientGo, times: 1 },
  { of: 'cpuMicros', unit: 'CPU each, us', better: 'less' },
  { of: 'p50', unit: 'p50, ms', better: 'less' },
  { of: 'p99', unit: 'p99, ms', better: 'less' },
] as const

type Metric = (typeof loadMetrics)[number] | (typeof importMetrics)[number]

function figuresOf(
  name: string,
  results: ReadonlyMap<string, readonly Result[]>,
  metrics: readonly Metric[],
  ours: string,
): Figure[] {
  return metrics.map(({ of, unit, better, ...wanted }) => {
    const rounds: Record<string, number[]> = {}
    for (const [who, all] of results) rounds[who] = all.map((each) => each[of] ?? Number.NaN)
    const aims: Aim[] = 'than' in wanted ? [{ of: ours, ...wanted }] : []
    return figureOf({ name, unit, better, aims, rounds })
  })
}

async function measureLoad(kubeconfig: string, order: Order): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const concurrency of [1, 64]) {
    const all = programs(kubeconfig, concurrency, order)
    const results = await inTurn(all, order.rounds)
    figures.push(...figuresOf(`get, ${concurrency} in flight`, results, loadMetrics, 'client'))
  }
  return figures
}

const importMetrics = [
  { of: 'ms', unit: 'ms', better: 'less', than: official, times: 5 },
  { of: 'mib', unit: 'MiB above bare Node', better: 'less', than: official, times: 5 },
] as const

async function measureImports(rounds: number): Promise<Figure[]> {
  const modules: readonly (readonly [string, string])[] = [
    ['client', new URL('../../src/client/index.js', import.meta.url).href],
    ['createFetch', new URL('../../src/credentials/index.js', import.meta.url).href],
    [official, official],
  ]
  const program = here('import-cost.js')
  const measured = new Map(
    modules.map(([name, module]) => [name, () => resultOf(process.execPath, [program, module])]),
  )
  const bare = 'bare Node'
  measured.set(bare, () => resultOf(process.execPath, [program]))
  const results = await inTurn(measured, rounds + 2)
  const floors = results.get(bare)?.map(({ mib = 0 }) => mib) ?? []
  const floor = Math.min(...floors)
  results.delete(bare)
  for (const [name, all] of results)
    results.set(
      name,
      all.map(({ ms = 0, mib = 0 }) => ({ ms, mib: mib - floor })),
    )
  return figuresOf('import', results, importMetrics, 'client')
}

const order = readOrder('credentials')
const directory = await mkdtemp(join(tmpdir(), 'bench-credentials-'))
const ground = await openGround(directory)
try {
  const figures = await measureLoad(ground.kubeconfig, order)
  figures.push(...(await measureImports(order.rounds)))
  await report(figures, order)
} finally {
  await ground.stop()
  await rm(directory, { recursive: true, force: true })
}
