import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { type StoreEvent, StoreWriteFailed } from '../store.ts'
import { checkStore } from './check.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'
import { type DiskOperation, SimulatedDisk } from './simulated-disk.suite.ts'

const directory = '/data/store'
const value = Buffer.from('value')

const openOn = (files: SimulatedDisk, checkpointRule = () => false) =>
  openEmbeddedStore(
    { directory, clock: systemClock, log: silentLogger },
    { ...realSystem, files, checkpointRule },
  )

const isCommit = ({ name, path }: DiskOperation): boolean =>
  name === 'write' && path.includes('segment-')

describe('group commit', () => {
  test('writers of one moment share one write to disk [GND-R24]', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    let commits = 0
    disk.fault = (operation) => {
      if (isCommit(operation)) commits++
      return undefined
    }
    await Promise.all(Array.from({ length: 64 }, (_, i) => store.create(`/${i}`, value)))
    expect(commits).toBe(1)
  })

  test('nothing is visible, delivered or answered before it is on disk [GND-R24]', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    const events: StoreEvent[] = []
    store.watch('/', store.revision, (more) => events.push(...more))
    let answered = false
    const seenAtCommit: unknown[] = []
    disk.fault = (operation) => {
      if (isCommit(operation)) seenAtCommit.push(answered, events.length, store.get('/a'))
      return undefined
    }
    await store.create('/a', value).then(() => {
      answered = true
    })
    expect(seenAtCommit).toEqual([false, 0, undefined])
    expect(events).toHaveLength(1)
  })

  test('a refusal that rests on a write of the same commit waits for that commit', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    disk.fault = (operation) => (isCommit(operation) ? 'ENOSPC' : undefined)
    const outcomes = await Promise.allSettled([
      store.create('/a', value),
      store.create('/a', value),
    ])
    // Neither may hear of a key "/a" that never came to be.
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ reason: { code: 'STORE_WRITE_FAILED' } })
    }
  })
})

describe.each([
  ['ENOSPC', 'disk is full'],
  ['EDQUOT', 'quota'],
  ['EIO', 'disk reports an error'],
  ['EROFS', 'read-only'],
])('a commit that fails with %s', (code, words) => {
  test('is refused in words, changes nothing and tells no watcher [GND-R30]', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    const kept = await store.create('/kept', value)
    const events: StoreEvent[] = []
    store.watch('/', store.revision, (more) => events.push(...more))
    disk.fault = (operation) => (isCommit(operation) ? code : undefined)
    const attempt = store.update('/kept', Buffer.from('lost'), kept.revision)
    await expect(attempt).rejects.toThrow(StoreWriteFailed)
    await expect(attempt).rejects.toThrow(words)
    expect(store.get('/kept')).toEqual(kept)
    expect(store.revision).toBe(kept.revision)
    expect(events).toEqual([])
    expect(store.failure).toBeDefined()
  })

  test('is over once the disk works again, in a new segment, with nothing lost [GND-R30]', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    const kept = await store.create('/kept', value)
    disk.fault = (operation) => (isCommit(operation) ? code : undefined)
    await expect(store.create('/lost', value)).rejects.toThrow(StoreWriteFailed)
    await expect(store.create('/lost', value)).rejects.toThrow(StoreWriteFailed)
    disk.fault = () => undefined
    const after = await store.create('/after', value)
    expect(after.revision).toBe(kept.revision + 1)
    expect(store.failure).toBeUndefined()
    await store.close()
    expect((await checkStore(directory, disk)).problems).toEqual([])
    const again = await openOn(disk)
    expect(again.range('/').runs.flat()).toEqual([after, kept])
  })

  test('does not come back after a restart, even if its bytes are in the file', async () => {
    const everyByteGoesThrough = () => 0.999999
    const disk = new SimulatedDisk(everyByteGoesThrough)
    const store = await openOn(disk)
    let failed = false
    disk.fault = (operation) => {
      if (failed || !isCommit(operation)) return undefined
      failed = true
      return code
    }
    await expect(store.create('/lost', value)).rejects.toThrow(StoreWriteFailed)
    await store.create('/after', value)
    await store.close()
    const again = await openOn(disk)
    expect(again.get('/lost')).toBeUndefined()
    expect(again.get('/after')?.value).toEqual(value)
  })
})

test('while a new segment cannot be made either, writes are refused and reads go on [GND-R30]', async () => {
  const disk = new SimulatedDisk()
  const store = await openOn(disk)
  const kept = await store.create('/kept', value)
  disk.fault = ({ name }) => (name === 'write' || name === 'open' ? 'ENOSPC' : undefined)
  for (let i = 0; i < 5; i++) {
    await expect(store.create('/lost', value)).rejects.toThrow('disk is full')
  }
  expect(store.get('/kept')).toEqual(kept)
  disk.fault = () => undefined
  await store.create('/after', value)
  await store.close()
  expect(disk.paths().filter((path) => path.includes('segment-')).length).toBeLessThanOrEqual(2)
})

test('segments that never held a commit do not pile up while the disk is nearly full', async () => {
  const disk = new SimulatedDisk()
  const store = await openOn(disk)
  await store.create('/kept', value)
  disk.fault = (operation) =>
    isCommit(operation) && disk.content(operation.path).length > 0 ? 'ENOSPC' : undefined
  for (let i = 0; i < 10; i++)
    await expect(store.create('/lost', value)).rejects.toThrow('disk is full')
  expect(disk.paths().filter((path) => path.includes('segment-')).length).toBeLessThanOrEqual(2)
  await store.close()
})

type Match = (operation: DiskOperation, before: DiskOperation | undefined) => boolean

test.each<[string, Match]>([
  ['the segment is made', ({ name, path }) => name === 'open' && path.includes('segment-')],
  ['the segment is synced', ({ name, path }) => name === 'sync' && path.includes('segment-')],
  ['its name is synced', ({ name }) => name === 'syncDirectory'],
  ['the manifest is written', ({ name, path }) => name === 'sync' && path.endsWith('MANIFEST.new')],
  ['the manifest is renamed', ({ name }) => name === 'rename'],
  ['that is synced', ({ name }, before) => name === 'syncDirectory' && before?.name === 'rename'],
])('a rotation that fails when %s loses nothing', async (_, matches) => {
  const disk = new SimulatedDisk()
  let commits = 0
  const store = await openOn(disk, () => ++commits % 3 === 0)
  const acknowledged: string[] = []
  for (let i = 0; i < 20; i++) {
    let failures = i % 2
    let before: DiskOperation | undefined
    disk.fault = (operation) => {
      const matched = matches(operation, before)
      before = operation
      return matched && failures-- > 0 ? 'EIO' : undefined
    }
    const write = store.create(`/${i}`, value)
    await write.then(
      ({ key }) => acknowledged.push(key),
      () => {},
    )
    const restarted = await openOn(disk.copy())
    const found = restarted.range('/').runs.flat()
    expect(found.map(({ key }) => key)).toEqual(acknowledged.toSorted())
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(10)
})

test('a checkpoint that fails is given up and tried again later; commits go on', async () => {
  const disk = new SimulatedDisk()
  const store = await openOn(disk, () => true)
  disk.fault = ({ path }) => (path.includes('checkpoint-') ? 'ENOSPC' : undefined)
  for (let i = 0; i < 30; i++) await store.create(`/${i}`, Buffer.alloc(500))
  expect(disk.paths().some((path) => path.includes('checkpoint-'))).toBe(false)
  disk.fault = () => undefined
  for (let i = 30; i < 90; i++) await store.create(`/${i}`, Buffer.alloc(500))
  await store.close()
  expect(disk.paths().some((path) => path.includes('checkpoint-'))).toBe(true)
  expect((await openOn(disk)).range('/').runs.flat()).toHaveLength(90)
})

test.each([
  ['EROFS', 'read-only'],
  ['EACCES', 'permission denied'],
  ['ENOSPC', 'disk is full'],
  ['ENOTDIR', 'not a directory'],
])(
  'a directory that cannot be written to (%s) is refused in words [GND-R30]',
  async (code, words) => {
    const disk = new SimulatedDisk()
    disk.fault = ({ name }) => (name === 'makeDirectory' || name === 'open' ? code : undefined)
    const attempt = openOn(disk)
    await expect(attempt).rejects.toThrow(StoreWriteFailed)
    await expect(attempt).rejects.toThrow(words)
    await expect(attempt).rejects.toThrow(directory)
  },
)
