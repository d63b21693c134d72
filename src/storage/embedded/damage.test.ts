import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { RecordDamaged, type Store, StoreDamaged, StoreWriteFailed } from '../store.ts'
import { checkStore } from './check.ts'
import { EmbeddedStore, openEmbeddedStore, realSystem } from './open-store.ts'
import { SimulatedDisk } from './simulated-disk.suite.ts'

const directory = '/data/store'
const segment = `${directory}/segment-0000000001.log`

const openOn = (files: SimulatedDisk, checkpointRule = () => false) =>
  openEmbeddedStore(
    { directory, clock: systemClock, log: silentLogger },
    { ...realSystem, files, checkpointRule },
  )

/** Three keys, one of them changed once, in a journal and, if wanted, partly in a checkpoint. */
async function filledDisk(withCheckpoint: boolean): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk()
  let commits = 0
  const store = await openOn(disk, () => withCheckpoint && ++commits === 4)
  await store.create('/a', Buffer.from('value of a'))
  const { revision } = await store.create('/b', Buffer.from('first value of b'))
  await store.update('/b', Buffer.from('second value of b'), revision)
  await store.create('/c', Buffer.from('value of c'))
  // Only a store that closes after its checkpoint has ended keeps it.
  while (withCheckpoint && !disk.paths().some((path) => path.includes('checkpoint-'))) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  while (withCheckpoint && disk.paths().some((path) => path.includes('segment-0000000001'))) {
    await new Promise((resolve) => setImmediate(resolve))
  }
  await store.close()
  return disk
}

function flip(content: Buffer, at: number): void {
  content.writeUInt8(content.readUInt8(at) ^ (1 << (at % 8)), at)
}

function damageText(disk: SimulatedDisk, path: string, text: string): number {
  const offset = disk.content(path).indexOf(text)
  expect(offset).toBeGreaterThan(0)
  flip(disk.content(path), offset + text.length - 1)
  return offset
}

const valuesOf = (store: Store): Record<string, string> =>
  Object.fromEntries(
    store
      .range('')
      .runs.flat()
      .map(({ key, value }) => [key, value.toString()]),
  )

describe('a flipped byte in a live value', () => {
  test('is named and never served; all else is [GND-R26]', async () => {
    const disk = await filledDisk(false)
    damageText(disk, segment, 'value of a')
    const store = await openOn(disk)
    expect(() => store.get('/a')).toThrow(RecordDamaged)
    expect(() => store.get('/a')).toThrow(/\/a is damaged.*segment-0000000001\.log, byte \d+/)
    expect(() => store.range('')).toThrow(RecordDamaged)
    expect(() => store.range('/', { limit: 1 })).toThrow(RecordDamaged)
    expect(() => store.watch('/a', store.oldestRevision, () => {})).toThrow(RecordDamaged)
    expect(store.get('/b')?.value.toString()).toBe('second value of b')
    expect(store.range('/b').runs.flat()).toHaveLength(1)
  })

  test('is found by a check, which names file, place and key [GND-R26]', async () => {
    const disk = await filledDisk(false)
    const offset = damageText(disk, segment, 'value of a')
    const report = await checkStore(directory, disk)
    expect(report).toMatchObject({ ok: false, records: 3, revision: 5 })
    expect(report.problems).toMatchObject([{ file: segment, key: '/a' }])
    expect(report.problems[0]?.offset).toBeLessThan(offset)
    expect(report.problems[0]?.what).toMatch(/value of \/a at revision 2 fails its checksum/)
  })

  test.each<[string, (store: Store, revision: number) => Promise<unknown>]>([
    ['replaced', (store, revision) => store.update('/a', Buffer.from('new'), revision)],
    ['deleted', (store, revision) => store.delete('/a', revision)],
  ])('is mended when the record is %s', async (_, mend) => {
    const disk = await filledDisk(false)
    damageText(disk, segment, 'value of a')
    const store = await openOn(disk)
    const damage = catchDamage(() => store.get('/a'))
    await mend(store, damage.revision)
    expect(() => store.range('')).not.toThrow()
    // The past still holds what is lost; the present can be watched.
    expect(() => store.range('', { revision: damage.revision })).toThrow(RecordDamaged)
    expect(() => store.watch('', damage.revision, () => {})).toThrow(RecordDamaged)
    expect(() => store.watch('', store.revision, () => {})).not.toThrow()
    await store.close()
    const again = await openOn(disk)
    expect(() => again.range('')).not.toThrow()
    expect(() => again.watch('', damage.revision, () => {})).toThrow(RecordDamaged)
  })

  test('a stale write to it does not show the value either', async () => {
    const disk = await filledDisk(false)
    damageText(disk, segment, 'value of a')
    const store = await openOn(disk)
    await expect(store.update('/a', Buffer.from('new'), 1)).rejects.toThrow(RecordDamaged)
  })

  test('stays known through checkpoints and restarts', async () => {
    const disk = await filledDisk(false)
    damageText(disk, segment, 'value of a')
    const store = await openOn(disk, () => true)
    for (let i = 0; i < 20; i++) await store.create(`/more/${i}`, Buffer.from('value'))
    await store.close()
    expect(disk.paths()).not.toContain(segment)
    const again = await openOn(disk)
    expect(() => again.get('/a')).toThrow(RecordDamaged)
    expect(again.range('/more/').runs.flat()).toHaveLength(20)
    expect(await checkStore(directory, disk)).toMatchObject({
      ok: false,
      problems: [{ key: '/a' }],
    })
  })
})

test('a damaged earlier value is only missed where it is asked for [GND-R26]', async () => {
  const disk = await filledDisk(false)
  damageText(disk, segment, 'first value of b')
  const store = await openOn(disk)
  expect(valuesOf(store)).toEqual({
    '/a': 'value of a',
    '/b': 'second value of b',
    '/c': 'value of c',
  })
  expect(() => store.range('/b', { revision: 3 })).toThrow(RecordDamaged)
  expect(() => store.watch('/b', 1, () => {})).toThrow(RecordDamaged)
  const report = await checkStore(directory, disk)
  expect(report.problems[0]?.what).toMatch(/earlier value of \/b.*no current object is affected/)
})

describe.each([
  ['a journal', false],
  ['a checkpoint and a journal', true],
])('in a store of %s', (_, withCheckpoint) => {
  const whole = { '/a': 'value of a', '/b': 'second value of b', '/c': 'value of c' }

  test('no flipped bit anywhere gives a wrong answer or a lost write [GND-R26]', async () => {
    const intact = await filledDisk(withCheckpoint)
    const outcomes = new Set<string>()
    for (const path of intact.paths()) {
      for (let at = 0; at < usedLength(intact.content(path)); at++) {
        const disk = intact.copy()
        flip(disk.content(path), at)
        outcomes.add(`${basename(path).replace(/-.*/, '')}: ${await outcomeOf(disk, whole)}`)
      }
    }
    const expected = [
      'MANIFEST: refused',
      'segment: refused',
      'segment: value named',
      'synced: refused',
    ]
    if (withCheckpoint) expected.push('checkpoint: refused', 'checkpoint: value named')
    expect([...outcomes].toSorted()).toEqual(expected.toSorted())
  })

  test('no file can be cut short or go missing without notice [GND-R26]', async () => {
    const intact = await filledDisk(withCheckpoint)
    for (const path of intact.paths()) {
      const used = usedLength(intact.content(path))
      for (let length = 0; length < used; length++) {
        const disk = intact.copy()
        disk.put(path, Buffer.from(intact.content(path).subarray(0, length)))
        await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
      }
      const disk = intact.copy()
      await disk.remove(path)
      await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
    }
  })
})

test('structural damage is refused with file, place and what to do [GND-R26]', async () => {
  const disk = await filledDisk(false)
  damageText(disk, segment, '/b')
  await expect(openOn(disk)).rejects.toMatchObject({ code: 'STORE_DAMAGED', file: segment })
  await expect(openOn(disk)).rejects.toThrow(/byte \d+.*cannot be read.*restore the latest backup/)
  const report = await checkStore(directory, disk)
  expect(report.ok).toBe(false)
  expect(report.problems).toMatchObject([
    { file: segment, what: expect.stringContaining('cannot be read') },
  ])
})

test('a value that contains the bytes of a batch is not taken for one', async () => {
  const disk = await filledDisk(false)
  const forged = Buffer.concat([
    Buffer.from(disk.content(segment).subarray(64, 600)),
    Buffer.from('end'),
  ])
  const store = await openOn(disk)
  await store.create('/forged', forged)
  disk.fault = ({ name }) => (name === 'writeNow' ? 'EIO' : undefined)
  await expect(store.create('/torn', forged)).rejects.toThrow(StoreWriteFailed)
  const killed = disk.afterKill()
  // The last commit loses its second half, and the marker does not cover it: a torn end.
  const end = killed.content(segment).lastIndexOf('end')
  killed.content(segment).fill(0, end - 100, end + 3)
  const again = await openOn(killed)
  expect(again.get('/forged')?.value).toEqual(forged)
  expect(again.get('/torn')).toBeUndefined()
})

test('a torn end is removed with a line in the log', async () => {
  const disk = await filledDisk(false)
  const used = usedLength(disk.content(segment))
  const interrupted = await openOn(disk)
  disk.fault = ({ name }) => (name === 'write' ? 'EIO' : undefined)
  await expect(interrupted.create('/torn', Buffer.from('value'))).rejects.toThrow(StoreWriteFailed)
  const killed = disk.afterKill()
  const warnings: object[] = []
  const log = { ...silentLogger, warn: (fields: object) => warnings.push(fields) }
  const store = await openEmbeddedStore(
    { directory, clock: systemClock, log },
    { ...realSystem, files: killed },
  )
  expect(store.range('').runs.flat()).toHaveLength(3)
  expect(warnings).toMatchObject([{ file: segment, offset: used }])
})

function catchDamage(read: () => unknown): RecordDamaged {
  try {
    read()
  } catch (error) {
    if (error instanceof RecordDamaged) return error
  }
  throw new Error('nothing was found damaged')
}

/** Up to the last byte that is not part of the zeros that a segment grows by. */
function usedLength(content: Buffer): number {
  let length = content.length
  while (length > 0 && content[length - 1] === 0) length--
  return length
}

/** What a damage leads to: `refused`, `value named` or `none`; anything else must not happen. */
async function outcomeOf(disk: SimulatedDisk, whole: Record<string, string>): Promise<string> {
  const { ok } = await checkStore(directory, disk)
  const store = await openOn(disk).catch((error: unknown) => error)
  if (store instanceof StoreDamaged) return ok ? 'refused, but the check saw nothing' : 'refused'
  if (!(store instanceof EmbeddedStore)) return `open failed with ${String(store)}`
  for (const [key, value] of Object.entries(whole)) {
    const held = readOrDamage(store, key)
    if (!(held instanceof RecordDamaged) && held !== value) return `${key} is ${String(held)}`
  }
  return ok ? 'none' : 'value named'
}

function readOrDamage(store: Store, key: string): unknown {
  try {
    return store.get(key)?.value.toString()
  } catch (error) {
    return error
  }
}
