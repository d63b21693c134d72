import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import {
  everyChangeOnce,
  inOrderOnce,
  type ObjectLedger,
  type ObservedEvent,
} from '../../bench/soak/ledger.ts'
import { run } from '../support/kubectl.ts'
import { findPeer, pathOrReason } from '../support/peers.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const needed = ['load', 'informer', 'kube-apiserver-1.36', 'etcd-3.6']
const isThere = needed.every((name) => pathOrReason(findPeer(name)) !== undefined)

const script = (name: string, ...args: string[]) =>
  run(process.execPath, [join(root, 'scripts', name), ...args], { timeoutMs: 110_000 })

test.skipIf(!isThere)(
  "the bench prints each figure beside its peer's and writes JSON [GND-R94]",
  async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'sallyport-bench-test-'))
    const file = join(scratch, 'result.json')
    try {
      const { code, stdout, stderr } = await script(
        'bench.mjs',
        '--short',
        '--only',
        'get,create',
        '--output',
        file,
      )
      expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' })
      expect(stdout).toMatch(/^get, 32 connections, per CPU second +[\d,]+ +[\d,]+ +[\d,]+ .*5x/m)
      expect(stdout).toMatch(/^create, 32 connections, per CPU second +[\d,]+ +[\d,]+ .*3x/m)
      const { figures, cores } = JSON.parse(await readFile(file, 'utf8'))
      expect(cores).toBeGreaterThan(0)
      expect(figures.length).toBeGreaterThan(10)
      for (const figure of figures)
        expect(figure.values).toMatchObject({ ours: expect.any(Number), peer: expect.any(Number) })
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
)

const clients = ['client-load', 'load', 'kubectl-1.36']
const hasClients = clients.every((name) => pathOrReason(findPeer(name)) !== undefined)

test.skipIf(!hasClients).each([
  [
    'the client beside the official one and client-go [CRED-I8, CRED-I9]',
    'credentials',
    [
      /^\| get, 64 in flight, requests per second( \| [\d,.]+){6} \|$/m,
      /^\| get, 64 in flight, p99, ms( \| [\d,.]+){6} \|$/m,
      /^\| import, MiB above bare Node \| [\d.]+ /m,
      /^- get, 64 in flight, requests per second: .*\/client-node; aim 10: (met|missed)$/m,
      /^- get, 64 in flight, requests per CPU second: .* client-go; aim 1: (met|missed)$/m,
      /^- import, ms: .*\/client-node; aim 5: (met|missed)$/m,
      /^- import, MiB above bare Node: .*\/client-node; aim 5: (met|missed)$/m,
    ],
  ],
  [
    'the proxy beside that of kubectl',
    'proxy',
    [
      /^\| get, 64 connections, CPU each, us( \| [\d,.]+){2} \|$/m,
      /kubectl proxy; aim 1: (met|missed)$/m,
    ],
  ],
])(
  'the bench measures %s, says which aims are met, and writes JSON',
  async (_about, name, lines) => {
    const scratch = await mkdtemp(join(tmpdir(), 'sallyport-bench-test-'))
    const file = join(scratch, 'result.json')
    try {
      const { code, stdout, stderr } = await script('bench.mjs', name, '--short', '--output', file)
      expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' })
      for (const line of lines) expect(stdout).toMatch(line)
      const { figures, cores } = JSON.parse(await readFile(file, 'utf8'))
      expect(cores).toBeGreaterThan(0)
      for (const { values } of figures)
        for (const value of Object.values(values)) expect(value).toBeGreaterThan(0)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  },
)

test.skipIf(!isThere)(
  'after kills under 64 writers all that was acknowledged is there, and was seen once [GND-R29]',
  async () => {
    const { code, stdout, stderr } = await script('soak.mjs', '--kills', '3')
    expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' })
    expect(stdout).toContain('3 kills under 64 writers')
    expect(stdout).toContain('Nothing acknowledged was lost')
  },
)

const put = (version: number) => ({ put: String(version) })
const deleted = { deleted: true } as const
const ledger: ObjectLedger = {
  name: 'x',
  changes: [put(1), put(2), deleted, put(5), put(6)],
  now: undefined,
}
const events = (text: string): ObservedEvent[] =>
  text.split(' ').map((part) => ({
    type: { A: 'ADDED', M: 'MODIFIED', D: 'DELETED' }[part[0] ?? ''] ?? '',
    version: part.slice(1),
  }))

test.each([
  ['everything once', 'A1 M2 D4 A5 M6', true, true],
  ['a change less', 'A1 D4 A5 M6', false, true],
  ['the last change missing', 'A1 M2 D4 A5', false, false],
  ['a change twice', 'A1 M2 M2 D4 A5 M6', false, false],
  ['changes in another order', 'A1 D4 M2 A5 M6', false, false],
  ['a change that nobody made', 'A1 M2 M3 D4 A5 M6', false, false],
  ['a second deletion', 'A1 M2 D4 D4 A5 M6', false, false],
  ['a change of the wrong type', 'A1 A2 D4 A5 M6', false, true],
])('the soak judges %s', (_name, seen, strictly, asInformer) => {
  expect(everyChangeOnce(ledger, events(seen)).length === 0).toBe(strictly)
  expect(inOrderOnce(ledger, events(seen)).length === 0).toBe(asInformer)
})
