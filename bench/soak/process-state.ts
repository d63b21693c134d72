import { readdirSync, readFileSync } from 'node:fs'

/** What a process holds. */
export interface ProcessState {
  readonly rssMiB: number
  readonly handles: number
}

/** Reads it from the kernel. */
export function stateOf(pid: number): ProcessState {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kib = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
  return { rssMiB: Math.round(kib / 1024), handles: readdirSync(`/proc/${pid}/fd`).length }
}
