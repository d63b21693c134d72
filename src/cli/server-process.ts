import { readdirSync } from 'node:fs'
import process from 'node:process'
import { systemErrorCode } from '../core/index.ts'
import type { ApiServerParts } from '../server/index.ts'

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not ours to signal, but there.
    return systemErrorCode(error) === 'EPERM'
  }
}

function openFileDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}

/** This process as the server sees it. */
export function serverProcess(): ApiServerParts['process'] {
  return {
    pid: process.pid,
    userId: process.getuid?.(),
    isRunning,
    stdout: process.stdout,
    stats: {
      cpuSeconds: () => {
        const { user, system } = process.cpuUsage()
        return (user + system) / 1e6
      },
      residentBytes: () => process.memoryUsage.rss(),
      heapBytes: () => process.memoryUsage().heapUsed,
      openFileDescriptors,
      startTimeSeconds: Date.now() / 1000 - process.uptime(),
    },
  }
}
