import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { sealedPrefix } from '../sealed-store.ts'
import { RecordDamaged, type Store, StoreDamaged, StoreWriteFailed } from '../store.ts'
import { checkStore } from './check.ts'
import { EmbeddedStore, openEmbeddedStore, realSystem } from './open-store.ts'
import { repairStore } from './repair.ts'
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

describe('a flipped byte in the value of a current object', () => {
  test.each([
    ['in the journal', false, segment],
    ['in a checkpoint', true, `${directory}/checkpoint-0000000002.dat`],
  ])(
    '%s stops the start; check and repair name it [GND-R26, SEC-R1007]',
    async (_, withCheckpoint, file) => {
      const disk = await filledDisk(withCheckpoint)
      const offset = damageText(disk, file, 'value of a')
      await expect(openOn(disk)).rejects.toMatchObject({ code: 'STORE_DAMAGED', file })
      await expect(openOn(disk)).rejects.toThrow(
        /byte \d+: the value of \/a fails its checksum; restore.*store repair --data-dir \/data/,
      )
      const report = await checkStore(directory, disk)
      expect(report).toMatchObject({ ok: false, records: 3, revision: 5 })
      expect(report.problems).toMatchObject([{ file, key: '/a' }])
      expect(report.problems[0]?.offset).toBeLessThan(offset)
      expect(report.problems[0]?.what).toMatch(/value of \/a at revision 2 fails its checksum/)
      expect(await repairStore(directory, { apply: false }, disk)).toMatchObject({
        records: 2,
        end: undefined,
        removed: [{ key: '/a', file }],
      })
      await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
    },
  )

  test('is kept in a file by repair, which removes the object and no other [SEC-R1005, SEC-R1007]', async () => {
    const disk = await filledDisk(false)
    damageText(disk, segment, 'value of a')
    const damaged = Buffer.from(disk.content(segment))
    const plan = await repairStore(directory, { apply: true }, disk)
    const [hurt] = plan?.removed ?? []
    if (hurt?.keptIn === undefined) throw new Error('nothing was kept')
    const record = damaged.subarray(hurt.offset, hurt.offset + hurt.bytes)
    expect(disk.content(hurt.keptIn)).toEqual(record)
    const store = await openOn(disk)
    expect(valuesOf(store)).toEqual({ '/b': 'second value of b', '/c': 'value of c' })
    await store.create('/a', Buffer.from('made again'))
    await store.close()
    expect(await checkStore(directory, disk)).toMatchObject({ ok: true, records: 3 })
    expect(await repairStore(directory, { apply: true }, disk)).toBeUndefined()
    expect(disk.paths()).not.toContain(segment)
  })

  test('of a sealed value is not given up by repair: keys come from a backup [SEC-R1007]', async () => {
    const disk = new SimulatedDisk()
    const store = await openOn(disk)
    await store.create(`${sealedPrefix}signing-keys`, Buffer.from('the sealed keys'))
    await store.close()
    damageText(disk, segment, 'the sealed keys')
    await expect(openOn(disk)).rejects.toThrow(StoreDamaged)
    await expect(repairStore(directory, { apply: true }, disk)).rejects.toThrow(
      /signing keys in .*signing-keys fail their checksum.*restore the latest backup/,
    )
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
  await store.close()
  const again = await openOn(disk, () => true)
  for (let i = 0; i < 20; i++) await again.create(`/more/${i}`, Buffer.from('value'))
  await again.close()
  expect(disk.paths()).not.toContain(segment)
  const report = await checkStore(directory, disk)
  expect(report.problems[0]?.what).toMatch(/earlier value of \/b.*no current object is affected/)
  expect(await repairStore(directory, { apply: true }, disk)).toMatchObject({
    records: 23,
    removed: [],
    lostHistory: 1,
  })
  expect(await checkStore(directory, disk)).toMatchObject({ ok: true, records: 23 })
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
    // The earlier value of /b, which only the past needs.
    const past = withCheckpoint ? 'checkpoint' : 'segment'
    const expected = ['MANIFEST: refused', 'segment: refused', 'synced: refused']
    if (withCheckpoint) expected.push('checkpoint: refused')
    expected.push(`${past}: opened whole, check names an earlier value`)
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

/** Up to the last byte that is not part of the zeros that a segment grows by. */
function usedLength(content: Buffer): number {
  let length = content.length
  while (length > 0 && content[length - 1] === 0) length--
  return length
}

/** What a damage leads to: `refused`, or opened with every value; anything else must not happen. */
async function outcomeOf(disk: SimulatedDisk, whole: Record<string, string>): Promise<string> {
  const { ok } = await checkStore(directory, disk)
  const store = await openOn(disk).catch((error: unknown) => error)
  if (store instanceof StoreDamaged) return ok ? 'refused, but the check saw nothing' : 'refused'
  if (!(store instanceof EmbeddedStore)) return `open failed with ${String(store)}`
  const held = JSON.stringify(valuesOf(store))
  if (held !== JSON.stringify(whole)) return `opened with ${held}`
  return ok ? 'opened whole, check saw nothing' : 'opened whole, check names an earlier value'
}
