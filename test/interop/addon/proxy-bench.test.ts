import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findPeer, pathOrReason } from '../../support/peers.ts'
import { outwardAddress } from '../../support/service-proxy-lab.ts'

const script = fileURLToPath(new URL('../../../scripts/bench.mjs', import.meta.url))
const isBuilt = (name: string) => pathOrReason(findPeer(name)) !== undefined
const needed = ['load', 'nginx', 'kube-apiserver-1.36', 'etcd-3.6']
const sidecars = [
  'sallyport guard',
  ...(isBuilt('kube-rbac-proxy-0.19') ? ['kube-rbac-proxy'] : []),
  ...(isBuilt('oauth2-proxy-7.15') ? ['oauth2-proxy'] : []),
]
const isHere = outwardAddress !== undefined && needed.every(isBuilt)

test.skipIf(!isHere)(
  "the bench measures the service proxy beside kube-apiserver's, and what idle WebSockets cost there and in sidecars [ADDON-I5]",
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'proxy-bench-test-'))
    try {
      const file = join(scratch, 'result.json')
      const args = [script, 'addon', '--short', '--output', file]
      const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 290_000 })
      const proxies = ['sallyport', 'kube-apiserver', 'sallyport, add-auth', 'backend alone']
      expect(stdout).toContain(`| figure | ${[...proxies, ...sidecars].join(' | ')} |`)
      expect(stdout).toMatch(/^\| 1 KB, 64 connections, p99, ms( \| [\d,.]+){4}( \| -)+ \|$/m)
      expect(stdout).toMatch(/^\| 1 MiB, 64 connections, CPU seconds per GB( \| [\d,.]+){2} \| - /m)
      expect(stdout).toMatch(
        / CPU each, us: .* times as good as kube-apiserver; aim 1: (met|missed)$/m,
      )
      const { figures } = JSON.parse(await readFile(file, 'utf8')) as {
        figures: { name: string; values: Record<string, number> }[]
      }
      const sockets = figures.filter(({ name }) => name.startsWith('100 idle WebSockets'))
      expect(sockets.map(({ values }) => Object.keys(values))).toEqual([
        ['sallyport', 'kube-apiserver'],
        sidecars,
      ])
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
  300_000,
)
