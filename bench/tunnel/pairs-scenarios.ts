import type { LoadResult } from './pairs-load.ts'

/** How much of everything. */
export interface Scale {
  readonly rounds: number
  /** Bytes that go through a contestant each way, over one and over many connections, before anything is measured. */
  readonly warmUpBytes: number
  readonly warmUpDials: number
  readonly bytes: number
  readonly echoes: number
  readonly dials: number
}

/** What a whole run measures. */
export const fullScale: Scale = {
  rounds: 3,
  warmUpBytes: 600e6,
  warmUpDials: 10_000,
  bytes: 500e6,
  echoes: 2000,
  dials: 2000,
}

/** The same in little: shows that it works, and roughly how things stand. */
export const shortScale: Scale = {
  rounds: 1,
  warmUpBytes: 10e6,
  warmUpDials: 200,
  bytes: 50e6,
  echoes: 100,
  dials: 200,
}

/** One number of a scenario's result. */
export interface Metric {
  readonly label: string
  readonly unit: string
  readonly better: 'more' | 'less'
  /** How many times better than Konnectivity's, as it comes, it is meant to be. */
  readonly aim?: number
  readonly of: (result: LoadResult) => number
}

/** One run of `tunnel-load` and what it says. */
export interface Scenario {
  readonly name: string
  readonly group: Group
  readonly flags: readonly string[]
  readonly metrics: readonly Metric[]
  /** Some cannot do it at all: after so long that is what the table says. */
  readonly giveUpMs?: number
}

/** What `--only` chooses from. */
export const groups = ['bulk', 'echo', 'dials', 'memory'] as const

/** A group of scenarios. */
export type Group = (typeof groups)[number]

const bulkMetrics: readonly Metric[] = [
  { label: '', unit: 'MB/s', better: 'more', aim: 3, of: ({ mbPerSecond }) => mbPerSecond },
  {
    label: 'CPU',
    unit: 's per GB',
    better: 'less',
    aim: 2.5,
    of: ({ cpuSeconds, bytes }) => (cpuSeconds * 1e9) / bytes,
  },
]

const echoMetrics = (aim?: number): readonly Metric[] => [
  { label: 'p50', unit: 'us', better: 'less', ...(aim && { aim }), of: ({ p50Us }) => p50Us },
  { label: 'p99', unit: 'us', better: 'less', of: ({ p99Us }) => p99Us },
]

/** The same as the download before it, if a stopped reader costs nobody else anything. */
export const besideStopped = 'download, 50 connections beside one that nobody reads'

/** All scenarios; memory comes last, when everything else has been through the processes. */
export function scenariosOf({ bytes, echoes, dials }: Scale): Scenario[] {
  const bulk = (mode: 'upload' | 'download', connections: number): Scenario => ({
    name: `${mode}, ${connections} connection${connections > 1 ? 's' : ''}`,
    group: 'bulk',
    flags: [mode, '--connections', String(connections), '--bytes', String(bytes)],
    metrics: bulkMetrics,
  })
  const echo = ['echo', '--size', '1024', '--count', String(echoes)]
  return [
    bulk('upload', 1),
    bulk('download', 1),
    bulk('upload', 50),
    bulk('download', 50),
    {
      ...bulk('download', 50),
      name: besideStopped,
      flags: [...bulk('download', 50).flags, '--stopped', '1'],
      metrics: [{ label: '', unit: 'MB/s', better: 'more', of: ({ mbPerSecond }) => mbPerSecond }],
      giveUpMs: 30_000,
    },
    { name: 'echo of 1 KB, idle', group: 'echo', flags: echo, metrics: echoMetrics(1 / 0.7) },
    {
      name: 'echo of 1 KB beside a download',
      group: 'echo',
      flags: [...echo, '--bulk', '1'],
      metrics: echoMetrics(),
    },
    {
      name: 'dials to the first byte, 16 at a time',
      group: 'dials',
      flags: ['dials', '--first-byte', '--connections', '16', '--count', String(dials)],
      metrics: [
        { label: '', unit: 'per s', better: 'more', aim: 3, of: ({ perSecond }) => perSecond },
      ],
    },
    {
      name: 'memory of both ends afterwards',
      group: 'memory',
      flags: ['echo', '--count', '1'],
      metrics: [
        { label: '', unit: 'MiB', better: 'less', of: ({ rssBytes }) => rssBytes / 1024 ** 2 },
      ],
    },
  ]
}
