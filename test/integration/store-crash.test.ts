import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { silentLogger, systemClock } from '../../src/core/index.ts'
import { checkStore, openEmbeddedStore, type StoreEvent } from '../../src/storage/index.ts'
import { buildOnce } from '../build-once.ts'

const writers = 64
const kills = Number(process.env['SALLYPORT_CRASH_KILLS'] ?? 20)
const writerScript = fileURLToPath(new URL('../fixtures/store-writer.mjs', import.meta.url))

interface Acknowledged {
  readonly id: number
  readonly step: number
  readonly revision: number
}

/** Lets writers run on the store and kills them at a random moment, sometimes while they open it. */
async function runAndKill(directory: string, steps: readonly number[]): Promise<Acknowledged[]> {
  const args = [writerScript, await buildOnce(), directory, JSON.stringify(steps)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  if (Math.random() < 0.8) await once(child.stdout, 'data')
  setTimeout(() => child.kill('SIGKILL'), Math.random() * 300)
  const [, signal] = await once(child, 'close')
  expect(signal).toBe('SIGKILL')
  return output
    .split('\n')
    .slice(0, -1) // the last line may be cut off
    .filter((line) => line !== 'ready')
    .map((line) => line.split(' ').map(Number))
    .map(([id = -1, step = -1, revision = -1]) => ({ id, step, revision }))
}

/** The step that a key's value says it is at; `undefined` when the key is not there. */
const stepOf = (value: Buffer | undefined): number | undefined =>
  value && Number(value.toString().split(';')[0])

/** What a key must show after `step` steps, or after one more that was under way. */
const possible = (step: number): (number | undefined)[] =>
  [step, step + 1].map((each) => (each % 10 === 0 ? undefined : each))

test(`after ${kills} random kill -9 under ${writers} writers every acknowledged write is there, and a watch has seen each change once [GND-R29]`, {
  timeout: 60_000 + kills * 5000,
}, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sallyport-crash-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const steps = Array.from({ length: writers }, () => 0)
  let seenUpTo = 1
  let acknowledgedInAll = 0
  for (let round = 0; round < kills; round++) {
    const acknowledged = await runAndKill(directory, steps)
    acknowledgedInAll += acknowledged.length
    for (const { id, step } of acknowledged) steps[id] = step

    const report = await checkStore(directory)
    expect(report.problems.filter(({ what }) => !what.includes('there is no store'))).toEqual([])

    const store = await openEmbeddedStore({ directory, clock: systemClock, log: silentLogger })
    const byRevision = new Map<number, StoreEvent>()
    const revisions: number[] = []
    store.watch('', seenUpTo, (events) => {
      for (const event of events) {
        revisions.push(event.record.revision)
        byRevision.set(event.record.revision, event)
      }
    })
    const expected = Array.from({ length: store.revision - seenUpTo }, (_, i) => seenUpTo + 1 + i)
    expect(revisions).toEqual(expected)
    for (const { id, step, revision } of acknowledged) {
      const event = byRevision.get(revision)
      expect(event?.record.key).toBe(`/k/${id}`)
      expect(event?.type === 'delete' ? 0 : stepOf(event?.record.value)).toBe(step % 10 && step)
    }
    for (const [id, step] of steps.entries()) {
      const found = stepOf(store.get(`/k/${id}`)?.value)
      expect(possible(step)).toContain(found)
      steps[id] = step + possible(step).indexOf(found)
    }
    seenUpTo = store.revision
    await store.close()
  }
  expect(acknowledgedInAll).toBeGreaterThan(kills * writers)
})
