import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import { defaultHistoryLimits } from '../mvcc/history.ts'
import { RevisionCompacted, StoreDamaged, StoreEndUnknown } from '../store.ts'
import { backupStore, restoreStore } from './backup.ts'
import { checkStore } from './check.ts'
import { EmbeddedStore, openEmbeddedStore, realSystem } from './open-store.ts'
import { readStore } from './read-store.ts'
import { repairStore } from './repair.ts'
import { SimulatedDisk } from './simulated-disk.suite.ts'

const directory = '/data/store'
const segment = `${directory}/segment-0000000001.log`
const marker = `${directory}/synced`
const acknowledged = { '/a': 'value of a', '/b': 'value of b', '/c': 'the last value' } as const

const openOn = (files: SimulatedDisk) =>
  openEmbeddedStore(
    { directory, clock: systemClock, log: silentLogger },
    { ...realSystem, files, checkpointRule: () => false },
  )

/** A store with three commits in two runs, and the marker as it was after each of them. */
async function history() {
  const disk = new SimulatedDisk(() => 0.999999)
  const markers: Buffer[] = []
  const remember = () => markers.push(Buffer.from(disk.content(marker)))
  const first = await openOn(disk)
  remember()
  await first.create('/a', Buffer.from(acknowledged['/a']))
  remember()
  await first.close()
  remember()
  const second = await openOn(disk)
  remember()
  await second.create('/b', Buffer.from(acknowledged['/b']))
  const lastBatch = usedLength(disk.content(segment))
  const olderSegment = Buffer.from(disk.content(segment))
  remember()
  await second.create('/c', Buffer.from(acknowledged['/c']))
  const end = usedLength(disk.content(segment))
  return { disk, store: second, markers, lastBatch, end, olderSegment }
}

/** Has the first read from `position` meet the beginning of a write: it sees only its later bytes. */
function readWithinWrite(disk: SimulatedDisk, position: number): void {
  const open = disk.open.bind(disk)
  let isFirst = true
  disk.open = async (path, mode) => {
    const file = await open(path, mode)
    const read = file.read.bind(file)
    file.read = async (target, from) => {
      const length = await read(target, from)
      if (path === segment && from === position && isFirst) {
        isFirst = false
        target.fill(0, 0, 8)
      }
      return length
    }
    return file
  }
}

test('a commit that is being written is not taken for damage by a reader beside the server [SEC-R1001]', async () => {
  const { disk, markers, lastBatch, end } = await history()
  const busy = trimmed(disk.afterKill(), end)
  busy.content(segment).fill(0, end - 8)
  busy.put(marker, Buffer.from(markers[4] ?? ''))
  readWithinWrite(busy, lastBatch)
  const { mirror } = await readStore({
    files: busy,
    directory,
    limits: defaultHistoryLimits,
    onSinkFailure: () => {},
    onLostValue: () => {},
  })
  expect(
    mirror
      .range('')
      .runs.flat()
      .map(({ key }) => key),
  ).toEqual(['/a', '/b'])
})

function usedLength(content: Buffer): number {
  let length = content.length
  while (length > 0 && content[length - 1] === 0) length--
  return length
}

/** Thousands of stores are opened. */
const slow = { timeout: 120_000 }

type Damage = readonly [string, (disk: SimulatedDisk) => void]

interface Scene {
  readonly disk: SimulatedDisk
  readonly markers: readonly Buffer[]
  readonly lastBatch: number
  readonly end: number
  readonly olderSegment: Buffer
}

/** Without most of the zeros that the segment grows by, so that thousands of copies are fast. */
function trimmed(disk: SimulatedDisk, end: number): SimulatedDisk {
  const copy = disk.copy()
  copy.put(segment, Buffer.from(disk.content(segment).subarray(0, end + 1200)))
  return copy
}

const ends: Record<string, () => Promise<Scene>> = {
  'was closed': async () => {
    const scene = await history()
    await scene.store.close()
    return { ...scene, disk: trimmed(scene.disk, scene.end) }
  },
  'was killed': async () => {
    const scene = await history()
    return { ...scene, disk: trimmed(scene.disk.afterKill(), scene.end) }
  },
  'lost power': async () => {
    const scene = await history()
    return { ...scene, disk: trimmed(scene.disk.afterPowerLoss(), scene.end) }
  },
}

const markersOf = ({ markers }: Scene): readonly Damage[] => [
  ['an intact marker', () => {}],
  ['no marker', (disk) => disk.forget(marker)],
  ['an empty marker', (disk) => disk.put(marker, Buffer.alloc(0))],
  ['a marker of zeros', (disk) => disk.put(marker, Buffer.alloc(64))],
  ['half a marker', (disk) => disk.put(marker, Buffer.from(disk.content(marker).subarray(0, 32)))],
  ...[5, 16, 63].map(
    (at): Damage => [`a marker with byte ${at} flipped`, (disk) => flip(disk.content(marker), at)],
  ),
  ...markers.map(
    (content, age): Damage => [
      `the marker number ${age} of its history`,
      (disk) => disk.put(marker, Buffer.from(content)),
    ],
  ),
]

/** Damage that changes bytes: no interrupted write leaves such a thing. */
const changesOf = ({ lastBatch, end }: Scene): readonly Damage[] => [
  ...range(lastBatch, end).map(
    (at): Damage => [`byte ${at} flipped`, (disk) => flip(disk.content(segment), at)],
  ),
  [
    'the last commit twice',
    (disk) => disk.content(segment).copy(disk.content(segment), end, lastBatch, end),
  ],
  ['other bytes after the end', (disk) => disk.content(segment).write('x'.repeat(30), end)],
]

/** Damage that removes bytes: what an interrupted write leaves, if the marker does not know better. */
const removalsOf = ({ lastBatch, end, olderSegment }: Scene): readonly Damage[] => [
  ...range(lastBatch, end, 3).flatMap((at): Damage[] => [
    [
      `cut at byte ${at}`,
      (disk) => disk.put(segment, Buffer.from(disk.content(segment).subarray(0, at))),
    ],
    [`zeros from byte ${at}`, (disk) => disk.content(segment).fill(0, at)],
  ]),
  ['the segment as it was before', (disk) => disk.put(segment, Buffer.from(olderSegment))],
]

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => from + i * step)

function flip(content: Buffer, at: number): void {
  content.writeUInt8(content.readUInt8(at) ^ (1 << (at % 8)), at)
}

/** `refused`, `whole` (all that was acknowledged), or what is missing. */
async function outcomeOf(disk: SimulatedDisk): Promise<string> {
  const report = await checkStore(directory, disk)
  const store = await openOn(disk).catch((error: unknown) => error)
  if (store instanceof StoreDamaged) {
    if (report.ok) return 'refused, but the check finds it sound'
    const unknown = store instanceof StoreEndUnknown
    return unknown === report.isEndUnknown ? 'refused' : 'check and start disagree on the end'
  }
  if (!(store instanceof EmbeddedStore)) return `open failed with ${String(store)}`
  const missing = Object.entries(acknowledged).filter(
    ([key, value]) => store.get(key)?.value.toString() !== value,
  )
  return missing.length === 0 ? 'whole' : `${missing.map(([key]) => key).join()} missing silently`
}

const unexpected = (seen: Iterable<string>, allowed: readonly string[]): string[] =>
  [...seen].filter((each) => !allowed.includes(each))

describe.each(Object.keys(ends))('a store that %s', (how) => {
  const prepare = () => ends[how]?.() ?? Promise.reject(new Error('no such end'))
  const outcomes = async (damages: (scene: Scene) => readonly Damage[]) => {
    const scene = await prepare()
    const found = new Map<string, Set<string>>()
    for (const [markerState, changeMarker] of markersOf(scene)) {
      const seen = new Set<string>()
      for (const [, damage] of damages(scene)) {
        const disk = scene.disk.copy()
        changeMarker(disk)
        damage(disk)
        seen.add(await outcomeOf(disk))
      }
      found.set(markerState, seen)
    }
    return found
  }
  /**
   * Markers with which a missing commit is, bit for bit, what a crash leaves: of the commit before
   * the last readable one or of that one, and after a loss of power every one of an open store.
   */
  const ofCrash = how === 'lost power' ? /number [0134] |intact/ : /number [134] /

  test(
    'no changed byte at its end is lost in silence, whatever the marker says [SEC-R1001]',
    slow,
    async () => {
      for (const [state, seen] of await outcomes(changesOf)) {
        expect([state, unexpected(seen, ['refused', 'whole'])]).toEqual([state, []])
      }
    },
  )

  test(
    'no removed byte at its end is lost in silence unless the marker is the one of a crash there [SEC-R1002]',
    slow,
    async () => {
      for (const [state, seen] of await outcomes(removalsOf)) {
        const allowed = [
          'refused',
          'whole',
          ...(ofCrash.test(state) ? ['/c missing silently'] : []),
        ]
        expect([state, unexpected(seen, allowed)]).toEqual([state, []])
      }
    },
  )

  test('without a usable marker it does not open, even if nothing else is damaged [SEC-R1003]', async () => {
    const scene = await prepare()
    for (const [state, change] of markersOf(scene)) {
      const disk = scene.disk.copy()
      change(disk)
      const outcome = await outcomeOf(disk)
      const isValid = state.includes('history') || state.includes('intact')
      const allowed = isValid ? ['whole', 'refused'] : ['refused']
      expect([state, unexpected([outcome], allowed)]).toEqual([state, []])
    }
  })
})

test('the refusal says what may be lost and what to do [SEC-R1003]', async () => {
  const { disk, store } = await history()
  await store.close()
  disk.forget(marker)
  const attempt = openOn(disk)
  await expect(attempt).rejects.toMatchObject({ code: 'STORE_END_UNKNOWN', file: segment })
  await expect(attempt).rejects.toThrow(
    /cannot tell whether acknowledged commits are missing after revision 4: the file "synced" is missing.*sallyport store restore.*sallyport store repair --data-dir \/data/,
  )
})

test('a commit that the marker cannot cover is not acknowledged [SEC-R1004]', async () => {
  const { disk, store } = await history()
  disk.fault = ({ name }) => (name === 'writeNow' ? 'EIO' : undefined)
  await expect(store.create('/d', Buffer.from('d'))).rejects.toMatchObject({
    code: 'STORE_WRITE_FAILED',
  })
  expect(store.get('/d')).toBeUndefined()
  disk.fault = () => undefined
  await store.create('/e', Buffer.from('e'))
  const after = await openOn(disk.afterKill())
  expect(after.get('/d')).toBeUndefined()
  expect(after.get('/e')?.value.toString()).toBe('e')
})

describe('store repair', () => {
  const damaged = async () => {
    const { disk, store, lastBatch, end } = await history()
    await store.close()
    const tail = Buffer.from(disk.content(segment).subarray(lastBatch, end))
    tail.writeUInt8(tail.readUInt8(30) ^ 1, 30)
    tail.copy(disk.content(segment), lastBatch)
    disk.forget(marker)
    return {
      disk: disk.copy(),
      tail,
      kept: `${directory}/discarded-segment-0000000001-${lastBatch}.bin`,
    }
  }

  test('says what it would discard and changes nothing [SEC-R1005]', async () => {
    const { disk, tail, kept } = await damaged()
    const before = disk.paths().map((path) => disk.content(path).toString('hex'))
    expect(await repairStore(directory, { apply: false }, disk)).toMatchObject({
      revision: 3,
      records: 2,
      end: { bytes: tail.length, keptIn: kept, why: 'the file "synced" is missing' },
      removed: [],
    })
    expect(disk.paths().map((path) => disk.content(path).toString('hex'))).toEqual(before)
  })

  test('keeps the bytes that it removes, and the store opens and goes on [SEC-R1005]', async () => {
    const { disk, tail, kept } = await damaged()
    await repairStore(directory, { apply: true }, disk)
    expect(disk.content(kept)).toEqual(tail)
    const store = await openOn(disk)
    expect(store.get('/b')?.value.toString()).toBe(acknowledged['/b'])
    expect(store.get('/c')).toBeUndefined()
    await store.create('/d', Buffer.from('d'))
    await store.close()
    expect(await checkStore(directory, disk)).toMatchObject({ ok: true, records: 3 })
    expect(disk.content(kept)).toEqual(tail)
    expect(await repairStore(directory, { apply: true }, disk)).toBeUndefined()
  })

  test('can be run again after a crash in any of its operations [SEC-R1005]', async () => {
    for (let operation = 1; ; operation++) {
      const { disk, tail, kept } = await damaged()
      disk.operations = 0
      disk.stopAt = operation
      const outcome = await repairStore(directory, { apply: true }, disk).catch(() => 'crashed')
      const after = disk.afterPowerLoss()
      await repairStore(directory, { apply: true }, after)
      expect((await openOn(after)).get('/b')?.value.toString()).toBe(acknowledged['/b'])
      expect(after.content(kept)).toEqual(tail)
      if (outcome !== 'crashed') break
    }
  })

  test('gives up an acknowledged commit at the end that cannot be read [SEC-R1005]', async () => {
    const { disk, store, lastBatch } = await history()
    await store.close()
    flip(disk.content(segment), lastBatch + 30)
    await expect(openOn(disk)).rejects.toThrow(
      /acknowledged commits after revision 3 are missing.*store repair --data-dir \/data/,
    )
    expect(await checkStore(directory, disk)).toMatchObject({ ok: false })
    expect(await repairStore(directory, { apply: true }, disk)).toMatchObject({
      end: { why: 'an acknowledged commit at its end cannot be read' },
    })
    expect((await openOn(disk)).range('').runs.flat()).toHaveLength(2)
  })

  test('gives out no revision again that a client may remember [SEC-R1008]', async () => {
    const { disk } = await damaged()
    await repairStore(directory, { apply: true }, disk)
    const store = await openOn(disk)
    expect(() => store.watch('', 4, () => {})).toThrow(RevisionCompacted)
    expect((await store.create('/d', Buffer.from('d'))).revision).toBeGreaterThan(1_000_000)
  })

  test('does not touch a sound store, nor one with damage before its end [SEC-R1005]', async () => {
    const { disk, store } = await history()
    await store.close()
    expect(await repairStore(directory, { apply: true }, disk)).toBeUndefined()
    flip(disk.content(segment), 70)
    await expect(repairStore(directory, { apply: true }, disk)).rejects.toThrow(StoreDamaged)
  })
})

test('a marker that does not know the newest segment proves nothing, of whatever boot [SEC-R1003]', async () => {
  const { disk, store, markers } = await history()
  await store.compact()
  await store.create('/d', Buffer.from('the value of d'))
  const next = `${directory}/segment-0000000002.log`
  const end = usedLength(disk.content(next))
  for (const after of [disk.afterKill(), disk.afterPowerLoss()]) {
    for (const [age, content] of markers.entries()) {
      const copy = after.copy()
      copy.put(marker, Buffer.from(content))
      copy.content(next).fill(0, end - 5)
      expect([age, await outcomeOf(copy)]).toEqual([age, 'refused'])
    }
  }
})

describe('a store of format version 1', () => {
  const oldMarker = (sequence: number, offset: number): Buffer => {
    const bytes = Buffer.alloc(20)
    bytes.writeUInt32LE(sequence, 0)
    bytes.writeDoubleLE(offset, 8)
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 16)), 16)
    return bytes
  }
  const oldManifest = (fields: object): Buffer => {
    const line = JSON.stringify({ format: 'sallyport-store', version: 1, ...fields })
    return Buffer.from(`${line}\ncrc32 ${crc32(line).toString(16).padStart(8, '0')}\n`)
  }
  const version1 = async () => {
    const { disk, store, end, lastBatch } = await history()
    await store.close()
    disk.put(`${directory}/MANIFEST`, oldManifest({ checkpoint: null, segments: [1] }))
    disk.put(marker, oldMarker(1, end))
    return { disk: trimmed(disk, end), end, lastBatch }
  }

  test('is upgraded, whichever operation of it is interrupted [SEC-R1006]', async () => {
    for (let operation = 1; ; operation++) {
      const { disk } = await version1()
      disk.stopAt = operation
      const store = await openOn(disk).catch(() => undefined)
      expect(await outcomeOf(disk.afterPowerLoss())).toBe('whole')
      if (store) break
    }
  })

  test('with a torn end is repaired as before [SEC-R1006]', async () => {
    const { disk, end, lastBatch } = await version1()
    disk.put(marker, oldMarker(1, lastBatch))
    disk.content(segment).fill(0, end - 5)
    const store = await openOn(disk)
    expect([store.get('/b')?.value.toString(), store.get('/c')]).toEqual(['value of b', undefined])
  })

  test.each([
    ['no marker', (disk: SimulatedDisk) => disk.forget(marker)],
    ['a damaged marker', (disk: SimulatedDisk) => flip(disk.content(marker), 3)],
  ])('with %s is refused until it is repaired [SEC-R1006]', async (_, change) => {
    const { disk } = await version1()
    change(disk)
    await expect(openOn(disk)).rejects.toThrow(StoreEndUnknown)
    await repairStore(directory, { apply: true }, disk)
    expect(await outcomeOf(disk)).toBe('whole')
  })

  test('that was restored or made and never started opens [SEC-R1006]', async () => {
    const { disk, store } = await history()
    await store.close()
    await backupStore(directory, '/backup', disk)
    await restoreStore('/backup', '/restored/store', disk)
    const restored = new SimulatedDisk()
    for (const path of disk.paths().filter((each) => each.startsWith('/restored/')))
      restored.put(path.replace('/restored', '/data'), disk.content(path))
    expect(await outcomeOf(restored.copy())).toBe('whole')
    restored.put(`${directory}/MANIFEST`, oldManifest({ checkpoint: 1, segments: [1] }))
    restored.forget(marker)
    const opened = await openOn(restored)
    expect(opened.range('').runs.flat()).toHaveLength(3)
  })
})
