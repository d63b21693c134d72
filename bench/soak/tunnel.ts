import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startChild } from '../child.ts'
import { requirePeer } from '../peers.ts'
import { writeTunnelCertificates } from '../tunnel/pairs-certificates.ts'
import { type Contestant, startContestant } from '../tunnel/pairs-contestants.ts'
import { runLoad } from '../tunnel/pairs-load.ts'
import { type ProcessState, stateOf } from './process-state.ts'

const usage = `usage: npm run soak -- tunnel [--short] [--tunnels 10000] [--dials 1000000]

Opens tunnels that nobody uses from several processes and asks each whether it still stands, then dials again and
again. Afterwards both ends must hold as much memory and as many handles as before. --short: 400 and 8,000.`

const holders = 4
const slices = 8
/** What a collector may leave lying about. Of a million dials a leak of 100 bytes each would show, of a few thousand one of a socket each. */
const allowedGrowthMiB = 64
const settleMs = 60_000

interface Plan {
  readonly tunnels: number
  readonly dials: number
}

const began = performance.now()
const say = (text: string): void =>
  console.log(`${((performance.now() - began) / 1000).toFixed(0)} s: ${text}`)

const statesOf = ({ pids }: Contestant): ProcessState[] => pids.map(stateOf)
const show = (states: readonly ProcessState[]): string =>
  states
    .map(
      ({ rssMiB, handles }, at) =>
        `${at === 0 ? 'server' : 'agent'} ${rssMiB} MiB, ${handles} handles`,
    )
    .join('; ')

async function ready(contestant: Contestant): Promise<void> {
  const deadline = performance.now() + 30_000
  for (;;) {
    try {
      await runLoad(contestant, ['echo', '--count', '1'], 5_000)
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
      await delay(100)
    }
  }
}

/** Waits until both ends hold no more handles than before. */
async function settle(contestant: Contestant, before: readonly ProcessState[]): Promise<string[]> {
  const deadline = performance.now() + settleMs
  for (;;) {
    const now = statesOf(contestant)
    const isSettled = now.every(({ handles }, at) => handles <= (before[at]?.handles ?? 0))
    if (isSettled) return []
    if (performance.now() > deadline) return [`handles stay open: ${show(now)}`]
    await delay(200)
  }
}

/** Tunnels that stand idle, and that all still work after a while. */
async function holdIdle(contestant: Contestant, target: string, tunnels: number) {
  const before = statesOf(contestant)
  const uds = contestant.front[contestant.front.indexOf('--uds') + 1] ?? ''
  const program = fileURLToPath(new URL('tunnel-idle.js', import.meta.url))
  const each = Math.ceil(tunnels / holders)
  const started = Array.from({ length: holders }, () => {
    const child = spawn(process.execPath, [program, uds, target, String(each)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    return { child, next: async () => String((await lines.next()).value) }
  })
  const opened = await Promise.all(started.map(({ next }) => next()))
  const problems = opened.every((line) => line === 'open') ? [] : ['not every tunnel was opened']
  say(`${each * holders} idle tunnels from ${holders} processes: ${show(statesOf(contestant))}`)
  await delay(Math.min(30_000, tunnels * 3))
  for (const { child, next } of started) {
    child.stdin.write('\n')
    const good = Number(await next())
    if (good !== each) problems.push(`${each - good} of ${each} idle tunnels had died`)
  }
  const gone = started.map(({ child }) => once(child, 'exit'))
  for (const { child } of started) child.stdin.end()
  await Promise.all(gone)
  return [...problems, ...(await settle(contestant, before))]
}

/** Dials in slices; what the first quarter has warmed up must not grow any more. */
async function dialOften(contestant: Contestant, dials: number): Promise<string[]> {
  const before = statesOf(contestant)
  let warm: ProcessState[] = []
  for (let slice = 1; slice <= slices; slice++) {
    const count = String(Math.ceil(dials / slices))
    const flags = ['dials', '--first-byte', '--connections', '32', '--count', count]
    const { perSecond } = await runLoad(contestant, flags, 3_600_000)
    const states = statesOf(contestant)
    if (slice === slices / 4) warm = states
    say(`${slice * Number(count)} dials, ${perSecond.toFixed(0)}/s: ${show(states)}`)
  }
  const problems = await settle(contestant, before)
  for (const [at, { rssMiB }] of statesOf(contestant).entries()) {
    const then = warm[at]?.rssMiB ?? 0
    if (rssMiB > then + allowedGrowthMiB)
      problems.push(`${at === 0 ? 'the server' : 'the agent'} grew from ${then} to ${rssMiB} MiB`)
  }
  return problems
}

async function soak(directory: string, { tunnels, dials }: Plan): Promise<string[]> {
  const certificates = await writeTunnelCertificates(join(directory, 'pki'))
  const target = await startChild(requirePeer('tunnel-load'), ['target'])
  const ground = { directory, certificates, target: target.firstLine }
  const contestant = await startContestant('ours', ground)
  try {
    await ready(contestant)
    await runLoad(contestant, ['dials', '--first-byte', '--connections', '32', '--count', '500'])
    const idle = await holdIdle(contestant, target.firstLine, tunnels)
    return [...idle, ...(await dialOften(contestant, dials))]
  } finally {
    await contestant.stop()
    await target.stop()
  }
}

async function main(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      short: { type: 'boolean', default: false },
      tunnels: { type: 'string' },
      dials: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const tunnels = Number(values.tunnels ?? (values.short ? 400 : 10_000))
  const dials = Number(values.dials ?? (values.short ? 8_000 : 1_000_000))
  const isPlan = [tunnels, dials].every((count) => Number.isInteger(count) && count > 0)
  if (values.help || !isPlan) {
    console.log(usage)
    return values.help ? 0 : 2
  }
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-soak-tunnel-'))
  const problems = await soak(directory, { tunnels, dials })
  for (const problem of problems) console.log(`PROBLEM ${problem}`)
  if (problems.length > 0) {
    console.log(`What both ends said is kept in ${directory}`)
    return 1
  }
  await rm(directory, { recursive: true, force: true })
  console.log('Every tunnel stood, memory is flat and no handle is left.')
  return 0
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error)
  return 1
})
