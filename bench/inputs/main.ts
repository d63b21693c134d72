import { readFileSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createEndpointsController } from '../../src/api/controllers/index.ts'
import { runController } from '../../src/api/controllers/run-controller.ts'
import { kindDefinitions, pod } from '../../src/api/kinds/index.ts'
import { createObject } from '../../src/api/registry/create.ts'
import { LocalClusterView, serverUser } from '../../src/api/registry/local-cluster-view.ts'
import { openRegistry } from '../../src/api/registry/open-registry.ts'
import { RequestBodies } from '../../src/api/serving/request-bodies.ts'
import { type KubeObject, silentLogger, systemClock } from '../../src/core/index.ts'
import { openMemoryStore } from '../../src/storage/index.ts'
import { costlyBodies, costlyPatches, type InputKind, schemaBodies } from './corpus.ts'

/** How long one input holds the event loop, from its bytes to the store: prints the costliest. */

const isShort = process.argv.includes('--short')
const sizes = isShort ? [2_000, 60_000] : [2_000, 16_000, 60_000, 250_000, 3_000_000]
const rowsShown = 12
const { signal } = new AbortController()

const context = openRegistry({
  store: openMemoryStore(),
  clock: systemClock,
  serviceCidrs: ['10.96.0.0/16'],
  admissions: [],
})
const view = new LocalClusterView(context, async (_kind, object) => object)
const bodies = new RequestBodies({
  read: () => Promise.reject(new Error('not used')),
  cpu: { charge: () => {} },
})
const by = { owner: 'bench', signal }

interface Held {
  readonly name: string
  readonly bytes: number
  readonly ms: number
  readonly outcome: string
}

/**
 * CPU time of this thread so far: unlike the clock it stands still while others have the machine.
 * Where the system does not say it, the clock has to do.
 */
function threadMs(): number {
  try {
    const [ns = ''] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')
    return Number(ns) / 1e6
  } catch {
    return performance.now()
  }
}

/** The most work between two turns of the event loop while something runs. */
async function longestTurn(run: () => Promise<string>): Promise<{ ms: number; outcome: string }> {
  let running = true
  let ms = 0
  const watching = (async () => {
    let at = threadMs()
    while (running) {
      await nextTurn()
      const now = threadMs()
      ms = Math.max(ms, now - at)
      at = now
    }
  })()
  await nextTurn()
  const outcome = await run().catch((error: unknown) => String(error).slice(0, 60))
  running = false
  await watching
  return { ms, outcome }
}

/** The better of two, because the first one also compiles. */
async function held(name: string, bytes: number, run: () => Promise<string>): Promise<Held> {
  const first = await longestTurn(run)
  const second = await longestTurn(run)
  return { name, bytes, ...(first.ms < second.ms ? first : second) }
}

async function store(kind: InputKind, decoded: Record<string, unknown>): Promise<string> {
  const definition = kindDefinitions.find((each) => each.kind.kind === kind.kind)
  if (definition === undefined) return 'decoded'
  const metadata = { ...(decoded['metadata'] as object), name: 'a', namespace: 'default' }
  const draft = { ...decoded, metadata } as KubeObject
  await createObject(context, definition, draft, { user: serverUser, dryRun: true, signal })
  return 'valid'
}

function print(title: string, rows: Held[]): void {
  console.log(`\n${title} (${rows.length} inputs, the ${rowsShown} costliest)\n`)
  console.log('| input | bytes | longest turn, ms | ms per KB | outcome |\n|---|--:|--:|--:|---|')
  for (const { name, bytes, ms, outcome } of rows
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, rowsShown))
    console.log(
      `| ${name} | ${bytes} | ${ms.toFixed(1)} | ${((ms * 1024) / Math.max(bytes, 1024)).toFixed(1)} | ${outcome} |`,
    )
}

async function measureBodies(): Promise<Held[]> {
  const rows: Held[] = []
  const kinds = kindDefinitions.map(({ kind: { group, version, kind } }) => ({
    group,
    version,
    kind,
  }))
  const inputs = isShort ? costlyBodies : [...costlyBodies, ...schemaBodies(kinds)]
  for (const { name, encoding: contentType, kind: expected, make } of inputs)
    for (const size of sizes) {
      const bytes = make(size)
      const job = { type: 'object', bytes, contentType, expected, fieldValidation: 'Warn' } as const
      const short = contentType.replace(/^application\/(vnd\.kubernetes\.)?/, '')
      rows.push(
        await held(`${short}: ${name}`, bytes.length, async () =>
          store(expected, (await bodies.decode(job, by)).object),
        ),
      )
    }
  return rows
}

async function measurePatches(): Promise<Held[]> {
  const rows: Held[] = []
  for (const { name, type, kind, original, make } of costlyPatches)
    for (const size of sizes) {
      const bytes = make(size)
      rows.push(
        await held(`${type}: ${name}`, bytes.length, async () => {
          const patch = bodies.openPatch(type, bytes, 'Warn')
          const stored = original as unknown as KubeObject
          return store(kind, (await bodies.patch(patch, stored, kind, by)).object)
        }),
      )
    }
  return rows
}

const named = (kind: string, name: string, labels: Record<string, string>, more: object) =>
  ({
    apiVersion: 'v1',
    kind,
    metadata: { name, ...(kind !== 'Namespace' && { namespace: 'team' }), labels },
    ...more,
  }) as KubeObject

/** 200 Services that select the same label, and 20 Pods that get it, one after the other. */
async function measureRelabelling(): Promise<Held> {
  await view.write('create', named('Namespace', 'team', {}, {}), {}, signal)
  const stop = new AbortController()
  const options = { view, log: silentLogger, clock: systemClock }
  const running = runController(createEndpointsController(view), options, stop.signal)
  for (let i = 0; i < 200; i++) {
    const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] }
    await view.write('create', named('Service', `s${i}`, {}, { spec }), {}, signal)
  }
  for (let i = 0; i < 20; i++) {
    const spec = { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] }
    const status = {
      phase: 'Running',
      podIP: `10.0.0.${i + 1}`,
      podIPs: [{ ip: `10.0.0.${i + 1}` }],
    }
    const made = await view.write('create', named('Pod', `p${i}`, {}, { spec }), {}, signal)
    await view.write('update', { ...made, status }, { subresource: 'status' }, signal)
  }
  const row = await longestTurn(async () => {
    for (let i = 0; i < 20; i++) {
      const found = await view.get(pod.kind, { namespace: 'team', name: `p${i}` }, signal)
      if (!found) throw new Error('no pod')
      found.metadata.labels = { app: 'web' }
      await view.write('update', found, {}, signal)
    }
    const slices = kindDefinitions.find(({ kind }) => kind.kind === 'EndpointSlice')
    if (!slices) throw new Error('no slices')
    for (;;) {
      const { items } = await view.list(slices.kind, { namespace: 'team' }, signal)
      const isDone = items.every(
        ({ endpoints }) => Array.isArray(endpoints) && endpoints.length === 20,
      )
      if (items.length === 200 && isDone) return 'settled'
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })
  stop.abort()
  await running
  return { name: 'relabelling 20 Pods in a namespace with 200 Services', bytes: 20 * 50, ...row }
}

await view.write('create', named('Namespace', 'default', {}, {}), {}, signal)
print('Bodies', await measureBodies())
print('Patches', await measurePatches())
print('Controllers', [await measureRelabelling()])
await bodies.close()
