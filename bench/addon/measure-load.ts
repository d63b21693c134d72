import { type LoadResult, runLoad } from '../api/load.ts'
import { type Aim, type Figure, figureOf } from '../credentials/figures.ts'
import type { Order } from '../credentials/report.ts'
import { cpuOf } from '../guard/load.ts'
import { inTurn } from '../in-turn.ts'
import { sizes } from './backend.ts'
import { ours, theirs } from './servers.ts'

/** Someone who is asked for the same answer as all others. */
export interface Asked {
  readonly name: string
  readonly kubeconfig: string
  readonly pid: number
  /** The process that keeps its data: its CPU time is a figure of its own. */
  readonly storePid?: number
  readonly path: string
}

/** What one run found. */
interface Result extends LoadResult {
  /** Of the data's keeper, if that is another process; the CPU time of the rest is without it. */
  readonly storeMicroseconds: number | undefined
}

/** A column of its own: the same Service, asked with `add-auth=true`. */
export const withIdentity = `${ours}, add-auth`

interface Metric {
  readonly of: (result: Result) => number | undefined
  readonly unit: string
  readonly better: Figure['better']
  readonly aims?: readonly Aim[]
}

const noWorseThanTheirs = { of: ours, than: theirs, times: 1 }
const largeInMegabytes = sizes.large / 1e6

const metricsOf: Readonly<Record<keyof typeof sizes, readonly Metric[]>> = {
  small: [
    { of: ({ perSecond }) => perSecond, unit: 'requests per second', better: 'more' },
    {
      of: ({ cpuMicroseconds }) => cpuMicroseconds,
      unit: 'CPU each, us',
      better: 'less',
      aims: [noWorseThanTheirs, { of: withIdentity, than: ours, times: 0.9 }],
    },
    { of: (each) => each.storeMicroseconds, unit: "etcd's CPU each, us", better: 'less' },
    { of: ({ p50Ms }) => p50Ms, unit: 'p50, ms', better: 'less' },
    { of: ({ p99Ms }) => p99Ms, unit: 'p99, ms', better: 'less' },
  ],
  large: [
    { of: ({ perSecond }) => perSecond * largeInMegabytes, unit: 'MB per second', better: 'more' },
    {
      // Microseconds per megabyte are milliseconds per gigabyte.
      of: ({ cpuMicroseconds }) => cpuMicroseconds / largeInMegabytes / 1000,
      unit: 'CPU seconds per GB',
      better: 'less',
      aims: [noWorseThanTheirs],
    },
  ],
}

/** Runs the load and shares out the CPU time; the warm-up, too, counts for the shares. */
async function loadOn(asked: Asked, flags: readonly string[]): Promise<Result> {
  const { kubeconfig, pid, storePid, path } = asked
  const all = ['--op', 'request', '--path', path, ...flags]
  if (storePid === undefined)
    return { ...(await runLoad({ kubeconfig, pids: [pid] }, all)), storeMicroseconds: undefined }
  const before = [await cpuOf(pid), await cpuOf(storePid)] as const
  const result = await runLoad({ kubeconfig, pids: [pid, storePid] }, all)
  const [own, store] = [(await cpuOf(pid)) - before[0], (await cpuOf(storePid)) - before[1]]
  const storeMicroseconds = (result.cpuMicroseconds * store) / (own + store)
  const cpuMicroseconds = result.cpuMicroseconds - storeMicroseconds
  return { ...result, cpuMicroseconds, storeMicroseconds }
}

/** By count and not by time: on a busy machine a second is no promise that code has run often enough to be fast. */
const warmUpRequests = { small: 3_000, large: 300 } as const

/** Lets all of them answer often before anything is measured. */
export async function warmUp(all: readonly Asked[], size: keyof typeof sizes): Promise<void> {
  for (const asked of all)
    await loadOn(asked, ['--connections', '16', '--count', `${warmUpRequests[size]}`])
}

/** Asks all of them for answers of one size, in turn, by so many connections. */
export async function measureLoad(
  all: readonly Asked[],
  size: keyof typeof sizes,
  connections: number,
  { rounds, seconds }: Pick<Order, 'rounds' | 'seconds'>,
): Promise<Figure[]> {
  const flags = ['--connections', `${connections}`, '--warmup', '0.5', '--seconds', `${seconds}`]
  const results = await inTurn(
    new Map(all.map((asked) => [asked.name, () => loadOn(asked, flags)])),
    rounds,
  )
  const what = size === 'small' ? '1 KB' : '1 MiB'
  const name = `${what}, ${connections} connection${connections === 1 ? '' : 's'}`
  return metricsOf[size].map(({ of, unit, better, aims = [] }) => {
    const found = [...results].map(([who, each]) => {
      const values = each.map(of).filter((value) => value !== undefined)
      return [who, values] as const
    })
    const rounds = Object.fromEntries(found.filter(([, values]) => values.length > 0))
    return figureOf({ name, unit, better, aims, rounds })
  })
}
