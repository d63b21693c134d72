import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { freePort } from '../free-port.ts'
import { requirePeer } from '../peers.ts'
import { ApiClient } from './api-client.ts'
import type { ObjectLedger } from './ledger.ts'
import { type Observer, startInformer, startWatch } from './observers.ts'
import { checkStore, compareObservers, compareState, compareVersions } from './verdict.ts'
import { Victim } from './victim.ts'
import { collection, type Tally, Writer } from './writer.ts'

const usage = `usage: npm run soak [-- --short] [-- --kills 200] [-- --writers 64]

Kills a server with SIGKILL at random moments while writers write and observers watch. Afterwards every
acknowledged write must be there, and each change must have been seen once. --short: 10 kills.`

const objectsPerWriter = 4
const catchUpMs = 60_000
const shownProblems = 20

interface Plan {
  readonly kills: number
  readonly writers: number
}

const between = (low: number, high: number): number => low + Math.random() * (high - low)

function ledgersFor(writers: number): ObjectLedger[][] {
  return Array.from({ length: writers }, (_, writer) =>
    Array.from({ length: objectsPerWriter }, (__, object) => ({
      name: `object-${writer}-${object}`,
      changes: [],
      now: undefined,
    })),
  )
}

/** The deaths: mostly at work, sometimes while it starts. */
async function killOften(victim: Victim, kills: number, onKill: (count: number) => void) {
  for (let count = 1; count <= kills; count++) {
    await delay(between(100, 3_000))
    await victim.kill()
    onKill(count)
    while (count < kills && Math.random() < 0.2) {
      await victim.killWhileStarting(between(0, 800))
      onKill(++count)
    }
    await victim.start()
  }
}

/** Waits until both observers know the end of every object, or nothing moves any more. */
async function catchUp(ledgers: readonly ObjectLedger[], observers: readonly Observer[]) {
  const isDone = (observer: Observer): boolean =>
    ledgers.every(({ name, now }) => {
      const last = observer.events.get(name)?.at(-1)
      return now ? last?.version === now.version : (last?.type ?? 'DELETED') === 'DELETED'
    })
  const deadline = performance.now() + catchUpMs
  while (!observers.every(isDone) && performance.now() < deadline) await delay(50)
}

async function openNamespace(client: ApiClient): Promise<string> {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'soak' } }
  const { code } = await client.ask('POST', '/api/v1/namespaces', namespace)
  if (code !== 201) throw new Error(`the namespace was answered ${code}`)
  const { body } = await client.ask('GET', `${collection}?limit=1`)
  const text = JSON.stringify(body)
  return /"resourceVersion":"(\d+)"/.exec(text)?.[1] ?? ''
}

async function soak(directory: string, plan: Plan): Promise<string[]> {
  const began = performance.now()
  const victim = new Victim(directory, await freePort())
  const { server, caPem, kubeconfig } = await victim.start()
  const client = new ApiClient(server, caPem)
  const tally: Tally = { acknowledged: 0, madeUnanswered: 0, lostUnanswered: 0, problems: [] }
  const version = await openNamespace(client)
  const watch = startWatch(new ApiClient(server, caPem), version, tally.problems)
  const informer = await startInformer(kubeconfig)
  const ledgers = ledgersFor(plan.writers)
  const over = new AbortController()
  const writing = ledgers.map((own) => new Writer(client, own, tally).run(over.signal))
  const report = (count: number): void => {
    if (count % 10 !== 0 && count !== plan.kills) return
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    const counts = `${tally.acknowledged} writes acknowledged, ${watch.count()} watched`
    const starts = `start ${Math.max(...victim.startMs).toFixed(0)} ms at most`
    const bad = tally.problems.length > 0 ? `, ${tally.problems.length} PROBLEMS` : ''
    console.log(`${seconds} s: ${count} kills, ${counts}, ${starts}${bad}`)
  }
  await killOften(victim, plan.kills, report)
  await delay(500)
  over.abort()
  await Promise.all(writing)
  const all = ledgers.flat()
  await catchUp(all, [watch, informer])
  const problems = [
    ...tally.problems,
    ...(await compareState(client, all)),
    ...compareVersions(all),
    ...compareObservers(all, { watch, informer }),
  ]
  await informer.stop()
  await watch.stop()
  client.close()
  await victim.stop()
  problems.push(...checkStore(directory))
  const changes = all.reduce((sum, { changes: own }) => sum + own.length, 0)
  console.log(`
${plan.kills} kills under ${plan.writers} writers, ${victim.startMs.length} starts
${tally.acknowledged} writes acknowledged; of those without an answer ${tally.madeUnanswered} were made, ${tally.lostUnanswered} were not
${changes} changes in all; the watch, resumed ${watch.resumed()} times, saw ${countOf(watch, all)}, the informer ${countOf(informer, all)}`)
  return problems
}

const countOf = (observer: Observer, ledgers: readonly ObjectLedger[]): number =>
  ledgers.reduce((sum, { name }) => sum + (observer.events.get(name)?.length ?? 0), 0)

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      kills: { type: 'string' },
      writers: { type: 'string', default: '64' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const kills = Number(values.kills ?? (values.short ? 10 : 200))
  const writers = Number(values.writers)
  if (!(Number.isInteger(kills) && kills > 0 && Number.isInteger(writers) && writers > 0)) {
    console.error(usage)
    return 2
  }
  requirePeer('informer')
  const directory = await mkdtemp(join(process.env['BENCH_DIR'] ?? tmpdir(), 'sallyport-soak-'))
  const problems = await soak(directory, { kills, writers })
  if (problems.length === 0) {
    await rm(directory, { recursive: true, force: true })
    console.log('Nothing acknowledged was lost, nothing was seen twice, the store is sound.')
    return 0
  }
  for (const problem of problems.slice(0, shownProblems)) console.log(`PROBLEM ${problem}`)
  console.log(`${problems.length} problems; the data directory is kept in ${directory}`)
  return 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error)
  return 1
})
