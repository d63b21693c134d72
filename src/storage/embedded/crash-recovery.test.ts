import { describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import type { Store, StoreEvent } from '../store.ts'
import { checkStore } from './check.ts'
import { openEmbeddedStore, realSystem } from './open-store.ts'
import { SimulatedDisk, seededRandom } from './simulated-disk.suite.ts'

const directory = '/data/store'
const writers = 3
const stepsPerWriter = 14

/** A checkpoint for every few commits, so that crashes fall into all parts of it. */
const openOn = (files: SimulatedDisk): Promise<Store> => {
  let commits = 0
  return openEmbeddedStore(
    { directory, clock: systemClock, log: silentLogger },
    { ...realSystem, files, checkpointRule: () => ++commits % 4 === 0 },
  )
}

/**
 * Each writer walks its own key through the same life: made, changed, changed, deleted, made again
 * and so on. Returns how many steps of each writer were acknowledged before the disk stopped.
 */
async function runWriters(store: Store): Promise<number[]> {
  const write = async (id: number): Promise<number> => {
    const key = `/k/${id}`
    let revision = 0
    for (let step = 1; step <= stepsPerWriter; step++) {
      try {
        revision = await takeStep(store, key, step, revision)
      } catch {
        return step - 1
      }
    }
    return stepsPerWriter
  }
  return Promise.all(Array.from({ length: writers }, (_, id) => write(id)))
}

async function takeStep(store: Store, key: string, step: number, revision: number) {
  // Large enough that commits span sectors and the file has to grow.
  const value = Buffer.alloc(3000, `step ${step};`)
  if (step % 4 === 1) return (await store.create(key, value)).revision
  if (step % 4 === 0) return store.delete(key, revision)
  return (await store.update(key, value, revision)).revision
}

/** What a writer's key holds after a step. */
const valueAfter = (step: number): string | undefined =>
  step % 4 === 0 ? undefined : Buffer.alloc(3000, `step ${step};`).toString()

async function crashAt(
  operation: number,
  seed: number,
): Promise<{ disk: SimulatedDisk; acknowledged: number[] }> {
  const disk = new SimulatedDisk(seededRandom(seed))
  disk.stopAt = operation
  try {
    const store = await openOn(disk)
    return { disk, acknowledged: await runWriters(store) }
  } catch {
    return { disk, acknowledged: Array.from({ length: writers }, () => 0) }
  }
}

/** In words, what of the acknowledged steps or of their history is not there. */
function lossesIn(store: Store, acknowledged: readonly number[]): string[] {
  const losses: string[] = []
  for (const [id, steps] of acknowledged.entries()) {
    // The step under way may have made it to disk without its writer having heard of it.
    const held = store.get(`/k/${id}`)?.value.toString()
    if (held !== valueAfter(steps) && held !== valueAfter(steps + 1)) {
      losses.push(`writer ${id} was told of ${steps} steps, found ${held}`)
    }
  }
  const events: StoreEvent[] = []
  store.watch('', store.oldestRevision, (more) => events.push(...more))
  let expected = store.oldestRevision
  for (const { record } of events) {
    if (record.revision !== ++expected) losses.push(`revision ${expected} is missing`)
  }
  if (store.revision !== expected) losses.push(`revision ${store.revision} has no event`)
  return losses
}

const crashes = [
  ['the process is killed', (disk: SimulatedDisk) => disk.afterKill()],
  ['the power fails', (disk: SimulatedDisk) => disk.afterPowerLoss()],
] as const

describe.each(crashes)('when %s', (_, restart) => {
  test('nothing acknowledged is lost, whichever operation of the disk it strikes [GND-R24] [GND-R25]', async () => {
    const whole = await crashAt(Number.POSITIVE_INFINITY, 1)
    expect(new Set(whole.acknowledged)).toEqual(new Set([stepsPerWriter]))
    for (let operation = 1; operation <= whole.disk.operations; operation++) {
      const { disk, acknowledged } = await crashAt(operation, operation)
      const after = restart(disk)
      const store = await openOn(after)
      expect(lossesIn(store, acknowledged)).toEqual([])
      await store.create('/after', Buffer.from('works'))
      await store.close()
      expect((await checkStore(directory, after)).problems).toEqual([])
      const again = await openOn(after)
      expect(again.get('/after')?.value.toString()).toBe('works')
      await again.close()
    }
  })

  test('a second crash while it recovers from the first loses nothing either', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed)
      const { disk, acknowledged } = await crashAt(40 + Math.floor(random() * 150), seed)
      const first = restart(disk)
      first.stopAt = 1 + Math.floor(random() * 25)
      await openOn(first).then(
        (store) => store.close(),
        () => {},
      )
      const store = await openOn(restart(first))
      expect(lossesIn(store, acknowledged)).toEqual([])
      await store.close()
    }
  })
})

test('what was served after a restart survives a loss of power', async () => {
  const whole = await crashAt(Number.POSITIVE_INFINITY, 1)
  for (let operation = 2; operation <= whole.disk.operations; operation += 3) {
    const { disk } = await crashAt(operation, operation)
    const restarted = disk.afterKill()
    const served = await openOn(restarted)
    const again = await openOn(restarted.afterPowerLoss())
    expect(again.range('').runs.flat()).toEqual(served.range('').runs.flat())
    expect(again.revision).toBe(served.revision)
  }
})
