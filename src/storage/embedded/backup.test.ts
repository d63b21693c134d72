import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { RecordDamaged, RevisionCompacted, type Store, StoreDamaged } from '../store.ts'
import { backupStore, restoreStore } from './backup.ts'
import { checkStore } from './check.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'

let parent: string
let directory: string
let file: string

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'sallyport-backup-'))
  directory = join(parent, 'store')
  file = join(parent, 'backup')
  return () => rm(parent, { recursive: true })
})

const open = (path = directory, checkpointRule = () => false) =>
  openEmbeddedStore(
    { directory: path, clock: systemClock, log: silentLogger },
    { ...realSystem, checkpointRule },
  )

const fill = (store: Store, count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, i) => store.create(`/k/${i}`, Buffer.from(`v${i}`))),
  )

const contentOf = (store: Store) =>
  store
    .range('')
    .runs.flat()
    .map(({ key, value, revision }) => `${key}=${value.toString()}@${revision}`)

/** Runs something while the store keeps changing, with a checkpoint whenever one can begin. */
async function whileBusy(run: (store: Store) => Promise<void>): Promise<void> {
  const store = await open(directory, () => true)
  const counters = await fill(store, 50)
  let running = true
  const work = Promise.all(
    counters.map(async (record) => {
      let held = record
      while (running)
        held = await store.update(held.key, Buffer.alloc(300, held.key), held.revision)
    }),
  )
  try {
    await run(store)
  } finally {
    running = false
    await work
    await store.close()
  }
}

describe('backup and restore', () => {
  test('bring every record back [GND-R28]', async () => {
    const store = await open()
    await fill(store, 300)
    const content = contentOf(store)
    expect(await backupStore(directory, file)).toEqual({ revision: store.revision, records: 300 })
    await store.close()
    const restored = await restoreStore(file, join(parent, 'other'))
    expect(restored).toEqual({ revision: store.revision + 1_000_000, records: 300 })
    const again = await open(join(parent, 'other'))
    expect(contentOf(again)).toEqual(content)
    expect(await checkStore(join(parent, 'other'))).toMatchObject({ ok: true, records: 300 })
    await again.close()
  })

  test('make every revision from before a compacted one, so that clients list again [GND-R28]', async () => {
    const store = await open()
    await fill(store, 3)
    await backupStore(directory, file)
    // The clients see more than the backup has.
    const { revision } = await store.create('/later', Buffer.from('lost'))
    await store.close()
    await restoreStore(file, join(parent, 'other'))
    const again = await open(join(parent, 'other'))
    expect(() => again.watch('', revision, () => {})).toThrow(RevisionCompacted)
    expect(() => again.range('', { revision })).toThrow(RevisionCompacted)
    expect(again.oldestRevision).toBe(again.revision)
    expect((await again.create('/new', Buffer.from('v'))).revision).toBeGreaterThan(revision)
    await again.close()
  })

  test('a backup is private and never overwrites a file [GND-R28]', async () => {
    await (await open()).close()
    await backupStore(directory, file)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const before = await readFile(file)
    await expect(backupStore(directory, file)).rejects.toMatchObject({ code: 'BACKUP_FILE_EXISTS' })
    expect(await readFile(file)).toEqual(before)
    expect((await readdir(parent)).toSorted()).toEqual(['backup', 'store'])
  })

  test('a backup that cannot be written leaves nothing behind', async () => {
    await (await open()).close()
    const target = join(parent, 'missing', 'backup')
    await expect(backupStore(directory, target)).rejects.toMatchObject({ code: 'BACKUP_FAILED' })
    await expect(backupStore(directory, target)).rejects.toThrow('no such directory')
    expect(await readdir(parent)).toEqual(['store'])
  })

  test('a damaged record is not left out of a backup in silence', async () => {
    const store = await open()
    await store.create('/a', Buffer.from('a value to damage'))
    await store.close()
    const segment = join(directory, 'segment-0000000001.log')
    const bytes = await readFile(segment)
    bytes.write('A', bytes.indexOf('a value'))
    await writeFile(segment, bytes)
    await expect(backupStore(directory, file)).rejects.toThrow(RecordDamaged)
    expect(await readdir(parent)).toEqual(['store'])
  })

  test('a restore refuses a directory that is not empty [GND-R28]', async () => {
    await (await open()).close()
    await backupStore(directory, file)
    await expect(restoreStore(file, directory)).rejects.toMatchObject({
      code: 'RESTORE_TARGET_NOT_EMPTY',
    })
  })

  test('a restore refuses a backup with any byte flipped or missing [GND-R28]', async () => {
    const store = await open()
    await fill(store, 3)
    await backupStore(directory, file)
    await store.close()
    const intact = await readFile(file)
    for (let at = 0; at < intact.length; at += 3) {
      const flipped = Buffer.from(intact)
      flipped.writeUInt8(intact.readUInt8(at) ^ 4, at)
      for (const bytes of [flipped, intact.subarray(0, at)]) {
        await writeFile(file, bytes)
        await expect(restoreStore(file, join(parent, 'other'))).rejects.toThrow(StoreDamaged)
      }
    }
    await expect(restoreStore(join(parent, 'none'), join(parent, 'other'))).rejects.toThrow(
      /backup .*none cannot be used.*missing/,
    )
  })

  test('a check or backup of a directory without a store says so', async () => {
    await expect(backupStore(parent, file)).rejects.toThrow(`there is no store in ${parent}`)
    expect(await checkStore(parent)).toMatchObject({
      ok: false,
      problems: [{ what: `there is no store in ${parent}` }],
    })
  })
})

describe('while a server writes and makes checkpoints', () => {
  test('every check is clean and changes nothing [GND-R28]', () =>
    whileBusy(async (store) => {
      let last = 0
      for (let i = 0; i < 15; i++) {
        const before = store.revision
        const report = await checkStore(directory)
        expect(report.problems).toEqual([])
        expect(report.records).toBe(50)
        expect(report.revision).toBeGreaterThanOrEqual(Math.max(before, last))
        last = report.revision
      }
    }))

  test('a backup is one consistent state that the store had [GND-R28]', () =>
    whileBusy(async (store) => {
      for (let i = 0; i < 5; i++) {
        const target = join(parent, `backup-${i}`)
        const { revision } = await backupStore(directory, target)
        const expected = store.range('', { revision }).runs.flat()
        await restoreStore(target, join(parent, `restored-${i}`))
        const restored = await open(join(parent, `restored-${i}`))
        expect(restored.range('').runs.flat()).toEqual(expected)
        await restored.close()
      }
    }))
})
