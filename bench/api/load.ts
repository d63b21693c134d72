import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { requirePeer } from '../peers.ts'
import type { Contestant } from './contestant.ts'

/** What one run of the load generator found. */
export interface LoadResult {
  readonly perSecond: number
  readonly perCpuSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicroseconds: number
}

const longestRunMs = 20 * 60_000

/** Runs `interop/go/load` against a server; fails when any request of it failed. */
export async function runLoad(
  server: Pick<Contestant, 'kubeconfig' | 'pids'>,
  flags: readonly string[],
): Promise<LoadResult> {
  const to = ['--kubeconfig', server.kubeconfig, '--cpu-of', server.pids.join(',')]
  const { stdout } = await promisify(execFile)(requirePeer('load'), [...to, ...flags], {
    timeout: longestRunMs,
  })
  const line = recordOf(JSON.parse(stdout))
  const errors = Object.entries(recordOf(line['errors']))
  if (errors.length > 0) {
    const list = errors.map(([cause, count]) => `${String(count)} x ${cause}`).join(', ')
    throw new Error(`load ${flags.join(' ')} had errors: ${list}`)
  }
  if (line['watch'] && numberIn(recordOf(line['watch']), 'missingEvents') > 0) {
    throw new Error(`load ${flags.join(' ')}: watch events are missing`)
  }
  const perCpuSecond = numberIn(recordOf(line['server']), 'opsPerCpuSecond')
  return {
    perSecond: numberIn(line, 'opsPerSecond'),
    perCpuSecond,
    p50Ms: numberIn(line, 'p50Ms'),
    p99Ms: numberIn(line, 'p99Ms'),
    cpuMicroseconds: 1e6 / perCpuSecond,
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return value instanceof Object ? Object.fromEntries(Object.entries(value)) : {}
}

function numberIn(record: Record<string, unknown>, key: string): number {
  const value = record[key]
  if (typeof value !== 'number') throw new Error(`the load generator reported no ${key}`)
  return value
}
