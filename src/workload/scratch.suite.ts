import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A directory that is gone after the test. */
export async function scratchDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'workload-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}
