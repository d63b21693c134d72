import { execFileSync } from 'node:child_process'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { root } from '../root.ts'

/** Where and of what a run was made. */
export interface Surroundings {
  readonly commit: string
  /** Whether sources differed from that commit. */
  readonly changed: boolean
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly node: string
  readonly kernel: string
}

const git = (...args: string[]): string => {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

/** Looks around. */
export function lookAround(): Surroundings {
  const all = cpus()
  return {
    commit: git('rev-parse', '--short', 'HEAD'),
    changed: git('status', '--porcelain', '--', 'src', 'bench') !== '',
    cpu: all[0]?.model ?? 'unknown',
    cores: all.length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
    kernel: release(),
  }
}

/** How many processes wanted a core during the last minute; above the cores, times are not to be trusted. */
export const load = (): number => Math.round((loadavg()[0] ?? 0) * 10) / 10
