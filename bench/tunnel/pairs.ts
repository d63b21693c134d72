import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { load, lookAround } from '../api/surroundings.ts'
import { startChild } from '../child.ts'
import { requirePeer } from '../peers.ts'
import { inRoot } from '../root.ts'
import { writeTunnelCertificates } from './pairs-certificates.ts'
import {
  type Contestant,
  type Ground,
  type Name,
  names,
  startContestant,
} from './pairs-contestants.ts'
import { type Figure, figureOf, ownAims, renderTable } from './pairs-figures.ts'
import { type LoadResult, runLoad } from './pairs-load.ts'
import { fullScale, groups, type Scale, scenariosOf, shortScale } from './pairs-scenarios.ts'

const usage = `usage: npm run bench -- tunnel [--short] [--only ${groups.join(',')}] [--of ${names.join(',')}] [--output FILE] [--markdown]

Measures our tunnel beside Konnectivity, chisel and bare relays, prints a table and writes JSON. A whole run goes to
bench/results/tunnel.json, anything less to bench/results/tunnel-part.local.json, unless --output says otherwise.`

const say = (text: string): void => console.error(`[${performance.now().toFixed(0)} ms] ${text}`)
const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Chooses from a list by names separated by commas; everything when nothing is chosen. */
function chosen<T extends string>(flag: string, all: readonly T[], text?: string): readonly T[] {
  const wanted = text?.split(',') ?? all
  const strange = wanted.find((name) => !all.some((each) => each === name))
  if (strange !== undefined) throw new Error(`${flag} knows ${all.join(', ')}, not ${strange}`)
  return all.filter((each) => wanted.some((name) => name === each))
}

/** Starts a contestant and waits until an echo comes through. */
async function startReady(name: Name, ground: Ground): Promise<Contestant> {
  const contestant = await startContestant(name, ground)
  const deadline = performance.now() + 15_000
  for (;;) {
    try {
      await runLoad(contestant, ['echo', '--count', '1'], 2_000)
      return contestant
    } catch (error) {
      if (performance.now() > deadline) {
        await contestant.stop()
        throw new Error(`${name} was not ready in 15 s: ${textOf(error)}`, { cause: error })
      }
      await delay(100)
    }
  }
}

interface Run {
  readonly scale: Scale
  readonly only: ReadonlySet<string>
  readonly of: readonly Name[]
  readonly failures: string[]
}

/** A tunnel runs for weeks: compilers, buffers and windows come to rest before anything is measured. */
async function warmUp(contestant: Contestant, scale: Scale): Promise<void> {
  const bytes = ['--bytes', String(scale.warmUpBytes)]
  const dials = ['--first-byte', '--connections', '16', '--count', String(scale.warmUpDials)]
  for (const mode of ['upload', 'download'])
    for (const connections of ['1', '50'])
      await runLoad(contestant, [mode, '--connections', connections, ...bytes])
  await runLoad(contestant, ['dials', ...dials])
}

async function measure(run: Run, contestants: readonly Contestant[]): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const scenario of scenariosOf(run.scale).filter(({ group }) => run.only.has(group))) {
    say(scenario.name)
    const results: Partial<Record<Name, LoadResult[]>> = {}
    for (let round = 0; round < run.scale.rounds; round++) {
      // Whoever comes first may find the machine in another mood than whoever comes last.
      const order = round % 2 === 0 ? contestants : [...contestants].reverse()
      for (const contestant of order) {
        try {
          const result = await runLoad(contestant, scenario.flags, scenario.giveUpMs)
          results[contestant.name] = [...(results[contestant.name] ?? []), result]
        } catch (error) {
          if (scenario.giveUpMs !== undefined && contestant.name !== 'ours') continue
          run.failures.push(`${contestant.name}, ${scenario.name}: ${textOf(error)}`)
        }
      }
    }
    for (const metric of scenario.metrics) {
      const rounds: Partial<Record<Name, number[]>> = {}
      for (const { name } of contestants) rounds[name] = results[name]?.map(metric.of) ?? []
      figures.push(figureOf(scenario, metric, rounds))
    }
  }
  return figures
}

async function measureAll(run: Run, directory: string): Promise<Figure[]> {
  const certificates = await writeTunnelCertificates(join(directory, 'pki'))
  const target = await startChild(requirePeer('tunnel-load'), ['target'])
  const ground = { directory, certificates, target: target.firstLine }
  const contestants: Contestant[] = []
  try {
    for (const name of run.of) {
      try {
        const contestant = await startReady(name, ground)
        contestants.push(contestant)
        await warmUp(contestant, run.scale)
      } catch (error) {
        run.failures.push(textOf(error))
        say(`without ${name}: ${textOf(error)}`)
      }
    }
    return await measure(run, contestants)
  } finally {
    await Promise.all([target.stop(), ...contestants.map((each) => each.stop())])
  }
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      only: { type: 'string' },
      of: { type: 'string' },
      output: { type: 'string' },
      markdown: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const { short } = values
  const run: Run = {
    scale: short ? shortScale : fullScale,
    only: new Set(chosen('--only', groups, values.only)),
    of: chosen('--of', names, values.of),
    failures: [],
  }
  const before = { date: new Date().toISOString(), loadBefore: load() }
  const directory = await mkdtemp(join(process.env['BENCH_DIR'] ?? tmpdir(), 'tunnel-bench-'))
  let figures: Figure[]
  try {
    figures = await measureAll(run, directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
  const isWhole = !short && !values.only && !values.of && run.failures.length === 0
  const name = isWhole ? 'tunnel.json' : 'tunnel-part.local.json'
  const file = values.output ? resolve(values.output) : inRoot('bench/results', name)
  const { scale, failures } = run
  const surroundings = { ...before, loadAfter: load(), ...lookAround(), short }
  await mkdir(dirname(file), { recursive: true })
  await writeFile(
    file,
    `${JSON.stringify({ ...surroundings, scale, failures, figures }, undefined, 2)}\n`,
  )
  console.log(renderTable(figures, values.markdown ? 'markdown' : 'terminal'))
  for (const line of ownAims(figures)) console.log(`\n${line}`)
  console.log(`\nRatios are against Konnectivity as it comes, above 1 in our favour.`)
  console.log(`Load average ${before.loadBefore} to ${load()}. Written to ${file}`)
  for (const failure of failures) console.log(`FAILED ${failure}`)
  return failures.length === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(textOf(error))
  return 1
})
