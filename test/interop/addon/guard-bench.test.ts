import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../../scripts/bench.mjs', import.meta.url))

test('the bench measures the guard beside a bare proxy and the peers that are here, and writes JSON [ADDON-I5]', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'guard-bench-test-'))
  try {
    const file = join(scratch, 'result.json')
    const args = [script, 'guard', '--short', '--output', file]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 110_000 })
    expect(stdout).toMatch(/^\| figure \| sallyport guard \| bare proxy \|/m)
    expect(stdout).toMatch(/^\| 64 connections, CPU each, us( \| [\d,.]+){2,} \|$/m)
    expect(stdout).toMatch(/times as good as bare proxy; aim [\d.]+: (met|missed)$/m)
    const { figures } = JSON.parse(await readFile(file, 'utf8')) as { figures: unknown[] }
    expect(figures.length).toBe(9)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
})
