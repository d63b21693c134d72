import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoadResult, runLoad } from '../api/load.ts'
import { type Child, startChild } from '../child.ts'
import { type Figure, figureOf } from '../credentials/figures.ts'
import { openGround } from '../credentials/ground.ts'
import { type Order, readOrder, report } from '../credentials/report.ts'
import { findPeer } from '../peers.ts'
import { command } from '../sallyport.ts'

/** `sallyport proxy` beside `kubectl proxy`, before the same server and with the same exec plugin. */

const ours = 'sallyport proxy'
const kubectl = 'kubectl proxy'
/** A proxy under measurement. */
interface Contestant {
  readonly name: string
  readonly kubeconfig: string
  readonly pids: readonly number[]
}

const metrics = [
  { of: 'perSecond', unit: 'requests per second', better: 'more' },
  { of: 'cpuMicroseconds', unit: 'CPU each, us', better: 'less' },
  { of: 'p50Ms', unit: 'p50, ms', better: 'less' },
  { of: 'p99Ms', unit: 'p99, ms', better: 'less' },
] as const

const directory = await mkdtemp(join(tmpdir(), 'bench-proxy-'))
const children: Child[] = []

async function startProxy(name: string, program: string, args: string[]): Promise<Contestant> {
  const child = await startChild(program, [...args, 'proxy', '--port', '0'], {
    env: { ...process.env, KUBECONFIG: join(directory, 'kubeconfig') },
  })
  children.push(child)
  const address = child.firstLine.split(' ').at(-1)
  const kubeconfig = join(directory, `${name.replaceAll(' ', '-')}.kubeconfig`)
  const config = {
    clusters: [{ name: 'c', cluster: { server: `http://${address}` } }],
    contexts: [{ name: 'x', context: { cluster: 'c' } }],
    'current-context': 'x',
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  return { name, kubeconfig, pids: [child.pid] }
}

async function measure(
  contestants: readonly Contestant[],
  connections: number,
  { rounds, seconds }: Order,
): Promise<Figure[]> {
  const results = new Map<string, LoadResult[]>()
  const flags = ['--op', 'get', '--connections', String(connections), '--seconds', String(seconds)]
  for (let round = 0; round < rounds; round++) {
    for (const contestant of round % 2 === 0 ? contestants : [...contestants].reverse()) {
      const result = await runLoad(contestant, flags)
      results.set(contestant.name, [...(results.get(contestant.name) ?? []), result])
    }
  }
  return metrics.map(({ of, unit, better }) => {
    const all = [...results].map(([name, each]) => [name, each.map((result) => result[of])])
    const aims = of === 'cpuMicroseconds' ? [{ of: ours, than: kubectl, times: 1 }] : []
    const name = `get, ${connections} connection${connections === 1 ? '' : 's'}`
    return figureOf({ name, unit, better, aims, rounds: Object.fromEntries(all) })
  })
}

const order = readOrder('proxy')
const ground = await openGround(directory)
try {
  const contestants = [await startProxy(ours, process.execPath, [...order.nodeFlags, command])]
  const peer = findPeer('kubectl-1.36')
  if ('path' in peer) contestants.push(await startProxy(kubectl, peer.path, []))
  else console.error(peer.missing)
  const figures = [
    ...(await measure(contestants, 1, order)),
    ...(await measure(contestants, 64, order)),
  ]
  await report(figures, order)
} finally {
  for (const child of children) await child.stop()
  await ground.stop()
  await rm(directory, { recursive: true, force: true })
}
