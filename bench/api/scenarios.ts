import type { Metric } from './figure.ts'

/** The parts of the bench that `--only` can pick. */
export const groups = ['get', 'list', 'create', 'update', 'watch', 'memory', 'start'] as const

/** One part of the bench. */
export type Group = (typeof groups)[number]

/** How much work a run does. */
export interface Scale {
  readonly rounds: number
  readonly seconds: number
  /** Load before the first round, for caches and compilers; 0 for none. */
  readonly settleSeconds: number
  readonly listed: number
  readonly watchers: number
  /** Objects at which memory is looked at. */
  readonly stocks: readonly number[]
  readonly restSeconds: number
}

/** What `npm run bench` does. */
export const fullScale: Scale = {
  rounds: 3,
  seconds: 4,
  settleSeconds: 5,
  listed: 10_000,
  watchers: 1_000,
  stocks: [10_000, 100_000],
  restSeconds: 10,
}

/** What `--short` does: enough to see that everything works. */
export const shortScale: Scale = {
  rounds: 1,
  seconds: 1,
  settleSeconds: 0,
  listed: 1_000,
  watchers: 200,
  stocks: [1_000],
  restSeconds: 1,
}

/** One kind of load and what is reported of it. */
export interface Scenario {
  readonly group: Group
  readonly name: string
  readonly flags: readonly string[]
  /** Whether the bare server can be asked the same. */
  readonly floor?: boolean
  readonly metrics: readonly Metric[]
}

const perSecond: Metric = { of: 'perSecond', label: '', unit: 'per second', better: 'more' }
const perCpu: Metric = { of: 'perCpuSecond', label: '', unit: 'per CPU second', better: 'more' }
const cpu: Metric = { of: 'cpuMicroseconds', label: 'CPU each', unit: 'us', better: 'less' }
const p50: Metric = { of: 'p50Ms', label: 'p50', unit: 'ms', better: 'less' }
const p99: Metric = { of: 'p99Ms', label: 'p99', unit: 'ms', better: 'less' }
const aimed = (metric: Metric, times: number): Metric => ({ ...metric, aim: { times } })
const labelled = (metric: Metric, label: string): Metric => ({ ...metric, label })

const op = (name: string, ...flags: string[]): string[] => ['--op', name, ...flags]
const connections = (count: number): string[] => ['--connections', String(count)]

const gets = (): Scenario[] =>
  [1, 32].map((count) => ({
    group: 'get',
    name: `get, ${count === 1 ? 'one connection' : `${count} connections`}`,
    flags: op('get', '--namespace', 'gets', '--objects', '100', ...connections(count)),
    floor: true,
    metrics: [perSecond, aimed(perCpu, 5), cpu, p50, p99],
  }))

function lists({ listed }: Scale): Scenario[] {
  const flags = op('list', '--namespace', 'lists', '--objects', String(listed), ...connections(1))
  const name = `list of ${listed.toLocaleString('en')}`
  return [
    { group: 'list', name, flags, metrics: [aimed(perCpu, 10), p50] },
    { group: 'list', name: `${name}, gzip`, flags: [...flags, '--gzip'], metrics: [perCpu, p50] },
    {
      group: 'list',
      name: `pages of 500 of these`,
      flags: [...flags, '--limit', '500'],
      metrics: [perCpu, p50],
    },
  ]
}

const writes = (): Scenario[] =>
  (['create', 'update'] as const).map((name) => ({
    group: name,
    name: `${name}, 32 connections`,
    flags: op(name, '--namespace', 'writes', ...connections(32)),
    metrics: [perSecond, name === 'create' ? aimed(perCpu, 3) : perCpu, cpu, p50, p99],
  }))

const pacedWrites = 5

function watches({ watchers }: Scale): Scenario[] {
  // Not over HTTP/2: no Node.js so far passes the probe by which it is offered (`src/http/http2-probe.ts`).
  const shapes = [['HTTP/1.1', connections(watchers)]] as const
  return shapes.flatMap(([protocol, shape]): Scenario[] => {
    const flags = op('watch', '--namespace', 'watches', ...shape)
    const name = `${watchers.toLocaleString('en')} watchers, ${protocol}`
    return [
      {
        group: 'watch',
        name,
        flags,
        metrics: [perSecond, perCpu].map((metric) => labelled(aimed(metric, 1), 'events')),
      },
      {
        group: 'watch',
        name: `${name}, ${pacedWrites} writes/s`,
        flags: [...flags, '--rate', String(pacedWrites)],
        metrics: [p50, aimed(p99, 1)].map((metric) => labelled(metric, `${metric.label} delay`)),
      },
    ]
  })
}

/** Every load of a run, in the order of the table. */
export const scenariosOf = (scale: Scale): Scenario[] => [
  ...gets(),
  ...lists(scale),
  ...writes(),
  ...watches(scale),
]
