import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import type * as fsPromises from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { acquireFileLock, pause, systemClock } from './index.ts'

let removals = 0

/** Processes are interrupted at any point: removals take place some time after they were decided. */
vi.mock('node:fs/promises', async (importOriginal) => {
  const real = await importOriginal<typeof fsPromises>()
  return {
    ...real,
    rm: async (...args: Parameters<typeof real.rm>) => {
      await pause((removals++ % 4) * 15, new AbortController().signal)
      await real.rm(...args)
    },
  }
})

const directory = mkdtempSync(join(tmpdir(), 'file-lock-'))
const path = join(directory, 'lock')
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('a stale lock gets one owner at a time, however many find it', async () => {
  writeFileSync(path, 'of a process that died')
  let owners = 0
  const mostAtOnce: number[] = []
  const contend = async (): Promise<void> => {
    const release = await acquireFileLock(path, {
      waitMs: 60_000,
      staleMs: 300,
      clock: systemClock,
    })
    mostAtOnce.push(++owners)
    await pause(30, new AbortController().signal)
    owners--
    await release?.()
  }
  await Promise.all(Array.from({ length: 16 }, contend))
  expect(mostAtOnce).toEqual(Array.from({ length: 16 }, () => 1))
  expect(readdirSync(directory)).toEqual([])
})
