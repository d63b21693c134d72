import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { everyChangeOnce, type ObjectLedger, type ObservedEvent } from '../../bench/soak/ledger.ts'
import type { ClusterView, KubeObject } from '../../src/core/index.ts'
import { openCluster } from '../support/cluster-client.ts'
import { findPeer, pathOrReason } from '../support/peers.ts'
import { type SallyportProcess, startSallyport } from '../support/sallyport-process.ts'

const informerPath = pathOrReason(findPeer('informer'))
const namespace = 'followed'
const signal = new AbortController().signal

/** client-go's shared informer in a process of its own. */
async function startInformer(program: string, kubeconfig: string) {
  const child = spawn(program, ['--kubeconfig', kubeconfig, '--namespace', namespace], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const events = new Map<string, ObservedEvent[]>()
  const waiting = new Set<() => void>()
  let isSynced = false
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { type, name, resourceVersion, relisted } = JSON.parse(line)
    if (type === 'SYNCED') isSynced = true
    else {
      const event = { type, version: resourceVersion, relisted: relisted === true }
      events.set(name, [...(events.get(name) ?? []), event])
    }
    for (const check of waiting) check()
  })
  const until = (isTrue: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const check = () => {
        if (!isTrue()) return
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
    })
  await until(() => isSynced)
  return {
    eventsOf: (name: string) => events.get(name) ?? [],
    /** Resolves when it has been told of as many changes of each object as there were, or more. */
    hasSeen: (ledgers: readonly ObjectLedger[]) =>
      until(() =>
        ledgers.every(({ name, changes }) => (events.get(name)?.length ?? 0) >= changes.length),
      ),
    async stop() {
      const gone = once(child, 'exit')
      child.stdin.end()
      await gone
    },
  }
}

/** Passes TCP connections on, and cuts them on demand. */
async function startRelay(to: number) {
  const open = new Set<Socket>()
  let cuts = 0
  const relay = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        into.destroy()
      })
      from.pipe(into)
    }
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: (relay.address() as AddressInfo).port,
    cuts: () => cuts,
    /** Ends every connection without a word. */
    cut(): void {
      cuts += open.size
      for (const socket of open) socket.resetAndDestroy()
    },
    close: () => {
      relay.close()
      for (const socket of open) socket.destroy()
    },
  }
}

/** Writes to a few objects and keeps account of it. */
class Writer {
  readonly ledgers: ObjectLedger[]
  #turn = 0

  constructor(count: number) {
    this.ledgers = Array.from({ length: count }, (_, index) => ({
      name: `object-${index}`,
      changes: [],
      now: undefined,
    }))
  }

  /** Creates, updates four times, deletes, and begins anew: object by object in turn. */
  async write(view: ClusterView, times: number): Promise<void> {
    for (let count = 0; count < times; count++) {
      const ledger = this.ledgers[this.#turn++ % this.ledgers.length]!
      const age = ledger.changes.length % 6
      const op = age === 0 ? 'create' : age === 5 ? 'delete' : 'update'
      const written = await view.write(op, this.#object(ledger.name), {}, signal)
      const version = written.metadata.resourceVersion ?? ''
      ledger.changes.push(op === 'delete' ? { deleted: true } : { put: version })
    }
  }

  #object(name: string): KubeObject {
    const metadata = { name, namespace }
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { turn: String(this.#turn) } }
  }
}

const portOf = (server: string): number => Number(new URL(server).port)

describe.skipIf(informerPath === undefined)('a client-go informer on our server', () => {
  let directory: string
  let server: SallyportProcess
  let view: ClusterView
  const ends: (() => unknown)[] = []

  async function up(port = 0): Promise<void> {
    const args = ['--secure-port', String(port)]
    server = await startSallyport({ dataDirectory: join(directory, 'data'), args })
    ;({ view } = await openCluster(server.kubeconfig))
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sallyport-informer-'))
    await up()
    const metadata = { name: namespace }
    await view.write('create', { apiVersion: 'v1', kind: 'Namespace', metadata }, {}, signal)
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })

  async function follow(kubeconfig = server.kubeconfig) {
    const informer = await startInformer(informerPath!, kubeconfig)
    ends.push(() => informer.stop())
    return informer
  }

  const problems = (writer: Writer, informer: Awaited<ReturnType<typeof follow>>): string[] =>
    writer.ledgers.flatMap((ledger) => everyChangeOnce(ledger, informer.eventsOf(ledger.name)))

  test('whose connections are cut misses and doubles nothing [GND-R91]', async () => {
    const relay = await startRelay(portOf(server.server))
    ends.push(() => relay.close())
    const kubeconfig = join(directory, 'through-relay.kubeconfig')
    const text = await readFile(server.kubeconfig, 'utf8')
    await writeFile(kubeconfig, text.replaceAll(`:${portOf(server.server)}`, `:${relay.port}`))
    const informer = await follow(kubeconfig)
    const writer = new Writer(8)
    for (let round = 0; round < 10; round++) {
      await writer.write(view, 17)
      relay.cut()
      await writer.write(view, 17)
      await informer.hasSeen(writer.ledgers)
    }
    expect(relay.cuts()).toBeGreaterThanOrEqual(10)
    expect(problems(writer, informer)).toEqual([])
  })

  test('whose server restarts misses and doubles nothing [GND-R91]', async () => {
    const informer = await follow()
    const writer = new Writer(8)
    for (const end of ['SIGTERM', 'SIGKILL'] as const) {
      await writer.write(view, 50)
      const gone = once(server.process, 'exit')
      server.process.kill(end)
      await gone
      await up(portOf(server.server))
      await writer.write(view, 50)
      await informer.hasSeen(writer.ledgers)
    }
    expect(problems(writer, informer)).toEqual([])
  })
})

test('an informer that is told of a change twice, late or never would be noticed', () => {
  const put = (version: number) => ({ put: String(version) })
  const ledger = { name: 'x', changes: [put(1), put(2), put(4)], now: undefined }
  const seen = (...versions: number[]): ObservedEvent[] =>
    versions.map((version, at) => ({
      type: at === 0 ? 'ADDED' : 'MODIFIED',
      version: String(version),
    }))
  expect(everyChangeOnce(ledger, seen(1, 2, 4))).toEqual([])
  for (const wrong of [seen(1, 2), seen(1, 2, 2, 4), seen(1, 4, 2), seen(1, 2, 4, 5), seen()])
    expect(everyChangeOnce(ledger, wrong)).toHaveLength(1)
})
