import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

const script = fileURLToPath(new URL('../../../scripts/bench.mjs', import.meta.url))
const peers = ['load', 'kube-apiserver-1.36', 'etcd-3.6', 'kubeadm-1.36']
const isHere = peers.every((name) => pathOrReason(findPeer(name)) !== undefined)

const joiners = ['sallyport join', 'sallyport join --discovery-only', "kubeadm's discovery"]
const readers = [
  'ours, plain',
  'ours, anonymous',
  'ours, JWT and signature',
  'kube-apiserver, plain',
]

test.skipIf(!isHere)(
  '[DISC-T15] the bench has joining beside kubeadm and the signed read beside the plain one',
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'discovery-bench-test-'))
    const file = join(scratch, 'result.json')
    try {
      const args = [script, 'discovery', '--short', '--output', file]
      const ended = await run(process.execPath, args, { timeoutMs: 170_000 })
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      const { figures } = JSON.parse(await readFile(file, 'utf8')) as {
        figures: { name: string; unit: string; values: Record<string, number> }[]
      }
      const found = figures.map(({ name, unit, values }) => [
        `${name}, ${unit}`,
        Object.keys(values),
      ])
      expect(found).toEqual([
        ...['ms', 'requests'].map((unit) => [`from nothing to a kubeconfig, ${unit}`, joiners]),
        ...['per second', 'per CPU second', 'CPU each, us', 'p99, ms'].map((unit) => [
          `cluster-info, ${unit}`,
          readers,
        ]),
      ])
      for (const { values } of figures)
        for (const value of Object.values(values)) expect(value).toBeGreaterThan(0)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
)
