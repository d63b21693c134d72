import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { run } from '../../support/kubectl.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'
import { verifiersAreHere } from './outside-verifier.ts'

const script = fileURLToPath(new URL('../../../scripts/bench.mjs', import.meta.url))
const peers = ['load', 'kube-apiserver-1.36', 'etcd-3.6', 'nginx']
const isHere = verifiersAreHere && peers.every((name) => pathOrReason(findPeer(name)) !== undefined)

const tokens = ['ours', 'jose', 'go-oidc, go-jose']
const reviews = ['ours', 'kube-apiserver']
const documents = ['ours', 'kube-apiserver', 'issuer serve', 'nginx']
const of = (names: readonly string[], units: readonly string[], who: readonly string[]) =>
  names.flatMap((name) => units.map((unit) => [`${name}, ${unit}`, who]))
const load = ['per second', 'per CPU second', 'p99, ms']

test.skipIf(!isHere)(
  'the bench has every figure beside the peers that it is about [ISS-I3]',
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'issuer-bench-test-'))
    const file = join(scratch, 'result.json')
    try {
      const args = [script, 'issuer', '--short', '--output', file]
      const ended = await run(process.execPath, args, { timeoutMs: 170_000 })
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      expect(ended.stdout).toMatch(/^- TokenReview, cached, per CPU second: .* kube-apiserver;/m)
      const { figures } = JSON.parse(await readFile(file, 'utf8')) as {
        figures: { name: string; unit: string; values: Record<string, number> }[]
      }
      const found = figures.map(({ name, unit, values }) => [
        `${name}, ${unit}`,
        Object.keys(values),
      ])
      expect(found).toEqual([
        ...of(
          ['sign RS256', 'verify RS256', 'sign ES256', 'verify ES256'],
          ['per CPU second'],
          tokens,
        ),
        ...of(['TokenReview, cached', 'TokenReview, not cached'], load, reviews),
        ...of(['discovery document', 'key set'], load, documents),
      ])
      for (const { values } of figures)
        for (const value of Object.values(values)) expect(value).toBeGreaterThan(0)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
  180_000,
)
