import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { StoreDamaged } from '../store.ts'
import { backupStore, restoreStore } from './backup.ts'
import { checkStore } from './check.ts'
import type { FileOps } from './file-system.ts'
import { readWholeFile, writeWholeFile } from './file-system.ts'
import type { UpgradeStep } from './open-store.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'
import { SimulatedDisk } from './simulated-disk.suite.ts'

const directory = '/data/store'
const options = { directory, clock: systemClock, log: silentLogger }

const openOn = (files: FileOps, upgrades: ReadonlyMap<number, UpgradeStep> = new Map()) =>
  openEmbeddedStore(options, { ...realSystem, files, upgrades })

function manifestOf(fields: object): Buffer {
  const line = JSON.stringify({ format: 'sallyport-store', ...fields })
  return Buffer.from(`${line}\ncrc32 ${crc32(line).toString(16).padStart(8, '0')}\n`)
}

/** A format that never was: all records as JSON in one file that a backup is made of. */
const fromVersion0: UpgradeStep = async (files, path) => {
  const old = JSON.parse((await readWholeFile(files, join(path, 'records.json'))).toString())
  const other = new SimulatedDisk()
  const store = await openOn(other)
  for (const [key, value] of Object.entries(old))
    await store.create(key, Buffer.from(String(value)))
  await store.close()
  await backupStore(directory, '/backup', other)
  await restoreStore('/backup', '/new', other)
  for (const name of await other.list('/new')) {
    const target = name === 'MANIFEST' ? 'MANIFEST.new' : name
    await writeWholeFile(files, join(path, target), other.content(join('/new', name)))
  }
  await files.rename(join(path, 'MANIFEST.new'), join(path, 'MANIFEST'))
  await files.syncDirectory(path)
}

describe('the format version', () => {
  const disk0 = (): SimulatedDisk => {
    const disk = new SimulatedDisk()
    disk.put(join(directory, 'MANIFEST'), manifestOf({ version: 0 }))
    disk.put(join(directory, 'records.json'), Buffer.from('{"/a":"one","/b":"two"}'))
    return disk
  }

  test('of an older store is upgraded [GND-R27]', async () => {
    const disk = disk0()
    const store = await openOn(disk, new Map([[0, fromVersion0]]))
    const found = store.range('').runs.flat()
    expect(found.map(({ key, value }) => `${key}=${value.toString()}`)).toEqual([
      '/a=one',
      '/b=two',
    ])
    await store.close()
    expect(await checkStore(directory, disk)).toMatchObject({ ok: true, records: 2 })
  })

  test('that no step leads away from is refused [GND-R27]', async () => {
    await expect(openOn(disk0())).rejects.toThrow(/format version 0.*older release/)
    const report = await checkStore(directory, disk0())
    expect(report.problems[0]?.what).toMatch(/older format version 0.*start the server once/)
  })

  test('of a newer store is refused and nothing is touched [GND-R27]', async () => {
    const disk = new SimulatedDisk()
    disk.put(join(directory, 'MANIFEST'), manifestOf({ version: 3, more: 'things' }))
    await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
    await expect(openOn(disk)).rejects.toThrow(/format version 3.*knows up to 2.*newer Sallyport/)
    expect(disk.paths()).toEqual([join(directory, 'MANIFEST')])
  })
})

describe('a directory', () => {
  test.each([
    ['a file of something else', 'notes.txt', /holds files of something else/],
    ['the files of another database', 'data.mdb', /holds files of something else/],
    ['data files without a manifest', 'checkpoint-0000000001.dat', /no manifest/],
    ['a manifest that is not ours', 'MANIFEST', /no manifest of ours/],
  ])('with %s is refused and left alone [GND-R27] [GND-R30]', async (_, name, words) => {
    const disk = new SimulatedDisk()
    disk.put(join(directory, name), Buffer.from('precious'))
    await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
    await expect(openOn(disk)).rejects.toThrow(words)
    expect(disk.content(join(directory, name)).toString()).toBe('precious')
    expect(disk.paths()).toHaveLength(1)
  })

  test('with a first segment that holds data but no manifest is refused', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    await store.create('/a', Buffer.from('value'))
    await store.close()
    await disk.remove(join(directory, 'MANIFEST'))
    await expect(openOn(disk)).rejects.toThrow(/no manifest/)
  })

  test('that a file system has just made may be used', async () => {
    const disk = new SimulatedDisk()
    disk.put(join(directory, 'lost+found'), Buffer.alloc(0))
    const store = await openOn(disk)
    expect((await store.create('/a', Buffer.from('value'))).revision).toBe(2)
  })

  test('and its files are for their owner only', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'sallyport-store-'))
    onTestFinished(() => rm(parent, { recursive: true }))
    const path = join(parent, 'deep', 'store')
    const store = await openEmbeddedStore({ ...options, directory: path })
    await store.create('/a', Buffer.from('value'))
    await store.close()
    expect((await stat(path)).mode & 0o777).toBe(0o700)
    for (const name of ['MANIFEST', 'synced', 'segment-0000000001.log']) {
      expect((await stat(join(path, name))).mode & 0o777).toBe(0o600)
    }
  })
})

test('revisions and history go on where they were after a restart [GND-R25]', async () => {
  const disk = new SimulatedDisk()
  const store = await openOn(disk)
  const { revision } = await store.create('/a', Buffer.from('1'))
  const updated = await store.update('/a', Buffer.from('2'), revision)
  await store.close()
  const again = await openOn(disk)
  expect(again.revision).toBe(updated.revision)
  expect(again.oldestRevision).toBe(store.oldestRevision)
  const texts: string[] = []
  again.watch('', revision, (events) => {
    for (const { record, previous } of events)
      texts.push(`${previous?.value.toString()} to ${record.value.toString()}`)
  })
  expect(texts).toEqual(['1 to 2'])
  expect((await again.create('/b', Buffer.from('1'))).revision).toBe(updated.revision + 1)
})
