import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { requirePeer } from '../peers.ts'
import type { Contestant } from './pairs-contestants.ts'

/** What `tunnel-load` prints, as far as it is used here. */
export interface LoadResult {
  readonly bytes: number
  readonly perSecond: number
  readonly mbPerSecond: number
  readonly p50Us: number
  readonly p99Us: number
  readonly cpuSeconds: number
  readonly rssBytes: number
}

const fields: readonly (keyof LoadResult)[] = [
  'bytes',
  'perSecond',
  'mbPerSecond',
  'p50Us',
  'p99Us',
  'cpuSeconds',
  'rssBytes',
]
const run = promisify(execFile)

/** Runs `tunnel-load` through a contestant; a field that a mode does not measure is 0. */
export async function runLoad(
  { front, pids }: Contestant,
  [mode = '', ...flags]: readonly string[],
  timeoutMs = 120_000,
): Promise<LoadResult> {
  const args = [mode, ...front, ...flags, '--cpu-of', pids.join(',')]
  const { stdout } = await run(requirePeer('tunnel-load'), args, { timeout: timeoutMs })
  const said: unknown = JSON.parse(stdout)
  if (!(said instanceof Object)) throw new Error(`tunnel-load said ${stdout}`)
  const found = new Map<string, unknown>(Object.entries(said))
  const failures = found.get('failures')
  if (failures instanceof Object) throw new Error(`dials failed: ${JSON.stringify(failures)}`)
  const read = (name: string): number => {
    const value = found.get(name) ?? 0
    return typeof value === 'number' ? value : Number.NaN
  }
  const [bytes, perSecond, mbPerSecond, p50Us, p99Us, cpuSeconds, rssBytes] = fields.map(read)
  const complete = { bytes, perSecond, mbPerSecond, p50Us, p99Us, cpuSeconds, rssBytes }
  return complete as LoadResult
}
