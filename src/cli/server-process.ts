import { readdirSync } from 'node:fs'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import type { ApiServerDeps } from '../apiserver/index.ts'
import { systemErrorCode } from '../core/index.ts'

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
export function serverProcess(): ApiServerDeps['process'] {
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

/** How far beyond what lives the heap may grow before all of it is marked, in percent of what lives. */
const growingPercent = 600

/**
 * For processes that only pass bytes on. Every chunk that is read is an ArrayBuffer, which V8 counts as growth of a heap
 * that is ten megabytes small, and it marks that heap ten times a second, on every core: over a third of all the work.
 * With room to grow the young generation's own collections free the chunks, at a hundredth of the price.
 */
export function giveHeapHeadroom(): void {
  setFlagsFromString(`--heap-growing-percent=${growingPercent}`)
}
