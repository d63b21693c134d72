import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../free-port.ts'
import { requirePeer } from '../peers.ts'
import { inRoot } from '../root.ts'
import { type Contestant, peerMissing, startFloor, startOurs, startPeer } from './contestant.ts'
import type { Figure } from './figure.ts'
import { measureMemory } from './memory.ts'
import { measureScenario } from './rounds.ts'
import { fullScale, type Group, groups, type Scale, scenariosOf, shortScale } from './scenarios.ts'
import { measureStart } from './start-up.ts'
import { load, lookAround } from './surroundings.ts'
import { renderTable } from './table.ts'

const usage = `usage: npm run bench [-- --short] [-- --only ${groups.join(',')}] [-- --output FILE] [-- --markdown]

Measures Sallyport beside kube-apiserver on etcd, prints a table and writes JSON. A whole run goes to
bench/results/latest.json, anything less to bench/results/part.local.json, unless --output says otherwise.`

interface Run {
  readonly scale: Scale
  readonly wanted: ReadonlySet<Group>
  readonly directory: string
  readonly withPeer: boolean
  readonly figures: Figure[]
  readonly failures: string[]
}

const say = (text: string): void => console.error(`[${performance.now().toFixed(0)} ms] ${text}`)

/** Does one part; what goes wrong is told and does not keep the others from being measured. */
async function part(run: Run, name: string, measure: () => Promise<Figure[]>): Promise<void> {
  say(name)
  try {
    run.figures.push(...(await measure()))
  } catch (error) {
    const text = `${name}: ${error instanceof Error ? error.message : String(error)}`
    run.failures.push(text)
    say(`FAILED ${text}`)
  }
}

async function measureLoads(run: Run): Promise<void> {
  const scenarios = scenariosOf(run.scale).filter(({ group }) => run.wanted.has(group))
  if (scenarios.length === 0) return
  const servers: Contestant[] = []
  const home = join(run.directory, 'ours')
  try {
    servers.push(await startOurs(home))
    if (run.withPeer) servers.push(await startPeer(join(run.directory, 'peer')))
    servers.push(await startFloor(join(run.directory, 'floor'), home))
    for (const scenario of scenarios) {
      await part(run, scenario.name, () => measureScenario(scenario, servers, run.scale))
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

async function measureAll(run: Run): Promise<void> {
  await measureLoads(run)
  if (run.wanted.has('memory')) {
    const port = await freePort() // the same one again, so that no certificate has to be made
    const ours = () => startOurs(join(run.directory, 'memory-ours'), port)
    const peer = () => startPeer(join(run.directory, 'memory-peer'))
    const starters = run.withPeer ? [ours, peer] : [ours]
    await part(run, 'memory', () => measureMemory(starters, run.scale))
  }
  if (run.wanted.has('start')) {
    const { rounds } = run.scale
    const options = { rounds, withPeer: run.withPeer }
    await part(run, 'start', () => measureStart(join(run.directory, 'start'), options))
  }
}

function groupsOf(only: string | undefined): Set<Group> {
  if (only === undefined) return new Set(groups)
  const wanted = new Set<Group>()
  for (const name of only.split(',')) {
    const group = groups.find((each) => each === name)
    if (group === undefined) throw new Error(`--only knows ${groups.join(', ')}, not ${name}`)
    wanted.add(group)
  }
  return wanted
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      output: { type: 'string' },
      markdown: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const { short, only } = values
  const wanted = groupsOf(only)
  requirePeer('load')
  const missing = peerMissing()
  if (missing) say(`measuring ours alone: ${missing}`)
  const scale = short ? shortScale : fullScale
  const directory = await mkdtemp(join(process.env['BENCH_DIR'] ?? tmpdir(), 'sallyport-bench-'))
  const run: Run = {
    scale,
    wanted,
    directory,
    withPeer: missing === undefined,
    figures: [],
    failures: [],
  }
  const before = { date: new Date().toISOString(), loadBefore: load() }
  try {
    await measureAll(run)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
  const { figures, failures } = run
  const isWhole = !short && only === undefined && failures.length === 0
  const name = isWhole ? 'latest.json' : 'part.local.json'
  const file = values.output ? resolve(values.output) : inRoot('bench/results', name)
  const result = {
    ...before,
    loadAfter: load(),
    ...lookAround(),
    short,
    missing,
    scale,
    failures,
    figures,
  }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(result, undefined, 2)}\n`)
  console.log(renderTable(figures, values.markdown ? 'markdown' : 'terminal'))
  console.log(`\nRatios above 1 are in our favour. Load average ${before.loadBefore} to ${load()}.`)
  console.log(`Written to ${file}`)
  for (const failure of failures) console.log(`FAILED ${failure}`)
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  return 1
})
