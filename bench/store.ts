import { randomBytes } from 'node:crypto'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger, systemClock } from '../src/core/index.ts'
import { openEmbeddedStore, openMemoryStore, type Store } from '../src/storage/index.ts'

/** Rates and times of the embedded store beside what the disk itself can do in the same run. */

const base = process.env['BENCH_DIR'] ?? tmpdir()
const short = process.argv.includes('--short')
const valueBytes = 1024
const writers = 64
const objects = short ? 10_000 : 100_000

interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
}

const figures: Figure[] = []

function report(name: string, value: number, unit: string): void {
  figures.push({ name, value, unit })
  const shown = value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
  console.log(`${name.padEnd(52)} ${shown.padStart(12)} ${unit}`)
}

async function perSecond(count: number, run: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await run()
  return (count / (performance.now() - started)) * 1000
}

async function withDirectory<T>(run: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(base, 'sallyport-bench-'))
  try {
    return await run(directory)
  } finally {
    await rm(directory, { recursive: true })
  }
}

const openStore = (directory: string) =>
  openEmbeddedStore({ directory: join(directory, 'store'), clock: systemClock, log: silentLogger })

const keyOf = (i: number): string =>
  `/registry/configmaps/ns-${i % 50}/item-${String(i).padStart(7, '0')}`

/** What one commit costs at the very least: a write that appends, and fdatasync. */
async function diskFloor(bytes: number, count: number): Promise<number> {
  return withDirectory(async (directory) => {
    const file = await open(join(directory, 'floor'), 'w')
    const data = randomBytes(bytes)
    const rate = await perSecond(count, async () => {
      for (let i = 0; i < count; i++) {
        await file.write(data, 0, data.length, i * bytes)
        await file.datasync()
      }
    })
    await file.close()
    return rate
  })
}

async function createAll(store: Store, from: number, to: number, inFlight: number): Promise<void> {
  let next = from
  const writer = async () => {
    while (next < to) await store.create(keyOf(next++), randomBytes(valueBytes))
  }
  await Promise.all(Array.from({ length: inFlight }, writer))
}

async function updateAll(store: Store, count: number, inFlight: number): Promise<void> {
  const { runs } = store.range('')
  const keys = runs.flat().map((record) => record.key)
  let next = 0
  const writer = async () => {
    while (next < count) {
      const key = keys[(next++ * 7919) % keys.length] ?? ''
      const held = store.get(key)
      if (held) await store.update(key, randomBytes(valueBytes), held.revision)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, writer))
}

async function writeRates(): Promise<void> {
  const alone = short ? 500 : 3000
  const together = short ? 10_000 : 60_000
  report('disk floor, 1.1 KB write + fdatasync, one by one', await diskFloor(1100, alone), '/s')
  report('disk floor, 70 KB write + fdatasync', await diskFloor(70_000, alone / 3), '/s')
  await withDirectory(async (directory) => {
    const store = await openStore(directory)
    const one = await perSecond(alone, () => createAll(store, 0, alone, 1))
    report('create, one by one', one, '/s')
    const many = await perSecond(together, () => {
      return createAll(store, alone, alone + together, writers)
    })
    report(`create, ${writers} in flight`, many, '/s')
    report('update, one by one', await perSecond(alone, () => updateAll(store, alone, 1)), '/s')
    const cpu = process.cpuUsage()
    const updates = await perSecond(together, () => updateAll(store, together, writers))
    report(`update, ${writers} in flight`, updates, '/s')
    const used = process.cpuUsage(cpu)
    report('update, CPU of the process', (used.user + used.system) / together, 'us each')
    await store.close()
  })
}

async function reads(): Promise<void> {
  const store = openMemoryStore()
  await createAll(store, 0, 10_000, writers)
  const gets = 1_000_000
  const rate = await perSecond(gets, async () => {
    for (let i = 0; i < gets; i++) store.get(keyOf(i % 10_000))
  })
  report('get', rate, '/s')
  const ranges = 2000
  const perRange = await perSecond(ranges, async () => {
    for (let i = 0; i < ranges; i++) store.range('/registry/configmaps/')
  })
  report('range over 10,000 records', 1e6 / perRange, 'us')
  const past = store.revision
  await updateAll(store, 5000, writers)
  const perPast = await perSecond(200, async () => {
    for (let i = 0; i < 200; i++) store.range('/registry/configmaps/', { revision: past })
  })
  report('the same, 5,000 changes ago', 1e6 / perPast, 'us')
}

async function size(): Promise<void> {
  await withDirectory(async (directory) => {
    const first = await openStore(directory)
    await createAll(first, 0, objects, 1024)
    await first.close()
    globalThis.gc?.()
    const before = process.memoryUsage.rss()
    const started = performance.now()
    const store = await openStore(directory)
    report(`open ${objects.toLocaleString('en')} records`, performance.now() - started, 'ms')
    globalThis.gc?.()
    report('memory grown by that', (process.memoryUsage.rss() - before) / 1024 ** 2, 'MiB')
    await store.close()
  })
}

await writeRates()
await reads()
await size()
if (process.argv.includes('--json')) console.log(JSON.stringify(figures))
