import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Contestant, Name } from './contestant.ts'
import { type Figure, figureOf } from './figure.ts'
import { runLoad } from './load.ts'
import type { Scale } from './scenarios.ts'

const mebibyte = 1024 ** 2

/** Resident memory of a server's processes together, in MiB. */
async function residentOf(pids: readonly number[]): Promise<number> {
  let kibibytes = 0
  for (const pid of pids) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    kibibytes += Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN)
  }
  return (kibibytes * 1024) / mebibyte
}

/** Fills a fresh server step by step and looks at its memory after a rest. */
async function fillAndLook(server: Contestant, scale: Scale): Promise<number[]> {
  const found: number[] = []
  let there = 0
  for (const stock of scale.stocks) {
    const missing = stock - there
    // Making what it needs to find is all that this load does; one get follows.
    const flags = ['--op', 'get', '--namespace', `stock-${stock}`, '--objects', String(missing)]
    await runLoad(server, [...flags, '--connections', '32', '--count', '1'])
    there = stock
    await delay(scale.restSeconds * 1_000)
    found.push(await residentOf(server.pids))
  }
  return found
}

/** Memory with so many objects of 1 KB, one server after the other. */
export async function measureMemory(
  starters: readonly (() => Promise<Contestant>)[],
  scale: Scale,
): Promise<Figure[]> {
  const filled: Found = {}
  const restarted: Found = {}
  for (const start of starters) {
    const server = await start()
    try {
      filled[server.name] = await fillAndLook(server, scale)
    } finally {
      await server.stop()
    }
    const again = await start()
    try {
      await delay(scale.restSeconds * 1_000)
      restarted[again.name] = [await residentOf(again.pids)]
    } finally {
      await again.stop()
    }
  }
  const last = (scale.stocks.at(-1) ?? 0).toLocaleString('en')
  return [
    ...scale.stocks.map((stock, at) =>
      figureAt(filled, at, `${stock.toLocaleString('en')} objects`),
    ),
    figureAt(restarted, 0, `the ${last} after a restart`),
  ]
}

type Found = Partial<Record<Name, number[]>>

function figureAt(found: Found, at: number, what: string): Figure {
  const rounds: Found = {}
  for (const name of ['ours', 'peer'] as const) {
    const value = found[name]?.[at]
    if (value !== undefined) rounds[name] = [value]
  }
  const name = `memory, ${what}`
  return figureOf({ name, unit: 'MiB', better: 'less', aim: { times: 4 } }, rounds)
}
