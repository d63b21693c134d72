import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { names } from '../../../bench/tunnel/pairs-contestants.ts'
import { fullScale, groups, scenariosOf } from '../../../bench/tunnel/pairs-scenarios.ts'
import { run } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'
import { tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const isHere = tunnelPeersAreHere && pathOrReason(findPeer('chisel-1.11')) !== undefined
const script = fileURLToPath(new URL('../../../scripts/bench.mjs', import.meta.url))
const soak = fileURLToPath(new URL('../../../scripts/soak.mjs', import.meta.url))

test('the bench has bulk each way over 1 and 50 connections, echoes idle and beside bulk, dials and memory [TUN-I18]', () => {
  const figures = scenariosOf(fullScale).flatMap(({ name, metrics }) =>
    metrics.map(({ label, unit }) => [name, label, unit].filter(Boolean).join(', ')),
  )
  expect(figures).toEqual([
    'upload, 1 connection, MB/s',
    'upload, 1 connection, CPU, s per GB',
    'download, 1 connection, MB/s',
    'download, 1 connection, CPU, s per GB',
    'upload, 50 connections, MB/s',
    'upload, 50 connections, CPU, s per GB',
    'download, 50 connections, MB/s',
    'download, 50 connections, CPU, s per GB',
    'download, 50 connections beside one that nobody reads, MB/s',
    'echo of 1 KB, idle, p50, us',
    'echo of 1 KB, idle, p99, us',
    'echo of 1 KB beside a download, p50, us',
    'echo of 1 KB beside a download, p99, us',
    'dials to the first byte, 16 at a time, per s',
    'memory of both ends afterwards, MiB',
  ])
  expect(new Set(scenariosOf(fullScale).map(({ group }) => group))).toEqual(new Set(groups))
})

test.skipIf(!isHere)(
  'it prints each figure beside the others, and writes JSON [TUN-I18]',
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'tunnel-bench-test-'))
    const file = join(scratch, 'result.json')
    try {
      const flags = ['tunnel', '--short', '--only', 'dials,memory', '--output', file]
      const bench = await run(process.execPath, [script, ...flags], { timeoutMs: 110_000 })
      expect({ code: bench.code, said: bench.code === 0 ? '' : bench.stdout }).toEqual({
        code: 0,
        said: '',
      })
      expect(bench.stdout).toMatch(
        /^dials to the first byte, 16 at a time, per s( +[\d,.]+){6} .*x/m,
      )
      const { figures } = JSON.parse(await readFile(file, 'utf8'))
      expect(figures).toHaveLength(2)
      for (const { values } of figures)
        expect(Object.keys(values).sort()).toEqual([...names].sort())
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
)

test.skipIf(!isHere)(
  'idle tunnels of several processes stand, and thousands of dials leave neither memory nor handles behind [TUN-I16]',
  async () => {
    const flags = ['tunnel', '--tunnels', '400', '--dials', '8000']
    const { code, stdout } = await run(process.execPath, [soak, ...flags], { timeoutMs: 170_000 })
    expect({ code, problems: stdout.match(/^PROBLEM .*$/gm) }).toEqual({ code: 0, problems: null })
    expect(stdout).toMatch(/400 idle tunnels from 4 processes/)
    expect(stdout).toMatch(/8000 dials/)
  },
  180_000,
)
