import assert from 'node:assert/strict'
import fc from 'fast-check'
import { KeyExists, RevisionMismatch, type Store, type StoreEvent } from './store.ts'
import type { StoreUnderTest } from './store-under-test.suite.ts'

/** One step of a random run. Numbers choose among what exists then. */
type Operation =
  | {
      readonly do: 'create' | 'update' | 'delete' | 'stale'
      readonly key: string
      readonly value: string
    }
  | { readonly do: 'burst'; readonly keys: readonly string[] }
  | { readonly do: 'list'; readonly prefix: string; readonly back: number; readonly limit: number }
  | { readonly do: 'watch'; readonly prefix: string; readonly back: number }
  | { readonly do: 'reopen' }

const key = fc.constantFrom('/a', '/a/1', '/a/2', '/ab', '/b/1', '/b/2', '/b/3', '/ü', '/😀')
const prefix = fc.constantFrom('', '/', '/a', '/a/', '/b/', '/ü', '/none')
const value = fc.string({ maxLength: 20 })
const back = fc.nat({ max: 30 })

/** Random sequences of operations. */
export const storeOperations: fc.Arbitrary<readonly Operation[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), key, value }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('update' as const), key, value }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), key, value }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('stale' as const), key, value }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('burst' as const),
        keys: fc.array(key, { minLength: 2, maxLength: 12 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('list' as const),
        prefix,
        back,
        limit: fc.nat({ max: 6 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('watch' as const), prefix, back }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  ),
  { minLength: 1, maxLength: 80 },
)

interface Change {
  readonly type: 'put' | 'delete'
  readonly key: string
  readonly value: string
  readonly revision: number
  readonly was: string | undefined
}

interface OpenWatch {
  readonly prefix: string
  readonly after: number
  readonly received: Change[]
}

/** Runs the operations on the store and on a list of changes; throws when the two differ. */
export async function runModel(
  underTest: StoreUnderTest,
  operations: readonly Operation[],
): Promise<void> {
  const run = new ModelRun(underTest)
  for (const operation of operations) await run.step(operation)
  run.compareWatches()
}

class ModelRun {
  readonly #underTest: StoreUnderTest
  readonly #changes: Change[] = []
  readonly #watches: OpenWatch[] = []
  readonly #start: number
  #store: Store

  constructor(underTest: StoreUnderTest) {
    this.#underTest = underTest
    this.#store = underTest.store
    this.#start = this.#store.revision
  }

  async step(operation: Operation): Promise<void> {
    switch (operation.do) {
      case 'create':
        return this.#create(operation.key, operation.value)
      case 'update':
        return this.#update(operation.key, operation.value)
      case 'delete':
        return this.#delete(operation.key)
      case 'stale':
        return this.#refused(operation.key, operation.value)
      case 'burst':
        return this.#burst(operation.keys)
      case 'list':
        return this.#list(operation.prefix, this.#revisionBack(operation.back), operation.limit)
      case 'watch':
        return this.#watch(operation.prefix, this.#revisionBack(operation.back))
      case 'reopen':
        return this.#reopen()
    }
  }

  compareWatches(): void {
    for (const { prefix, after, received } of this.#watches) {
      const expected = this.#changes.filter(
        (change) => change.revision > after && change.key.startsWith(prefix),
      )
      assert.deepEqual(received, expected)
    }
  }

  async #create(key: string, value: string): Promise<void> {
    const held = this.#stateAt(Number.POSITIVE_INFINITY).get(key)
    const attempt = this.#store.create(key, Buffer.from(value))
    if (held) {
      await assert.rejects(attempt, KeyExists)
      return
    }
    const { revision } = await attempt
    this.#record({ type: 'put', key, value, revision, was: undefined })
  }

  async #update(key: string, value: string): Promise<void> {
    const held = this.#stateAt(Number.POSITIVE_INFINITY).get(key)
    const attempt = this.#store.update(key, Buffer.from(value), held?.revision ?? 1)
    if (!held) {
      await assert.rejects(attempt, RevisionMismatch)
      return
    }
    const { revision } = await attempt
    this.#record({ type: 'put', key, value, revision, was: held.value })
  }

  async #delete(key: string): Promise<void> {
    const held = this.#stateAt(Number.POSITIVE_INFINITY).get(key)
    const attempt = this.#store.delete(key, held?.revision ?? 1)
    if (!held) {
      await assert.rejects(attempt, RevisionMismatch)
      return
    }
    const revision = await attempt
    this.#record({ type: 'delete', key, value: held.value, revision, was: held.value })
  }

  async #refused(key: string, value: string): Promise<void> {
    const held = this.#stateAt(Number.POSITIVE_INFINITY).get(key)
    const stale = (held?.revision ?? 5) - 1
    await assert.rejects(this.#store.update(key, Buffer.from(value), stale), RevisionMismatch)
  }

  /** Creations at the same time, some of the same key: they share commits in any way they like. */
  async #burst(keys: readonly string[]): Promise<void> {
    const held = this.#stateAt(Number.POSITIVE_INFINITY)
    const attempts = keys.map((key, i) => this.#store.create(key, Buffer.from(String(i))))
    const outcomes = await Promise.allSettled(attempts)
    const made = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    )
    assert.deepEqual(
      made.map((record) => record.key).toSorted(),
      [...new Set(keys)].filter((key) => !held.has(key)).toSorted(),
    )
    for (const { key, value, revision } of made.toSorted((a, b) => a.revision - b.revision)) {
      this.#record({ type: 'put', key, value: value.toString(), revision, was: undefined })
    }
  }

  async #list(prefix: string, revision: number, limit: number): Promise<void> {
    const expected = [...this.#stateAt(revision).values()]
      .filter((record) => record.key.startsWith(prefix))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1))
      .map((record) => `${record.key}=${record.value}@${record.revision}`)
    const options = limit > 0 ? { revision, limit } : { revision }
    const { runs, remaining } = this.#store.range(prefix, options)
    const found = runs
      .flat()
      .map((record) => `${record.key}=${record.value.toString()}@${record.revision}`)
    assert.deepEqual(found, limit > 0 ? expected.slice(0, limit) : expected)
    assert.equal(found.length + remaining, expected.length)
  }

  #watch(prefix: string, after: number): void {
    const watch: OpenWatch = { prefix, after, received: [] }
    this.#watches.push(watch)
    this.#subscribe(watch)
  }

  #subscribe({ prefix, after, received }: OpenWatch): void {
    const from = received.at(-1)?.revision ?? after
    this.#store.watch(prefix, from, (events) => received.push(...events.map(changeOf)))
  }

  async #reopen(): Promise<void> {
    if (!this.#underTest.reopen) return
    this.#store = await this.#underTest.reopen()
    for (const watch of this.#watches) this.#subscribe(watch)
  }

  #record(change: Change): void {
    assert.ok(change.revision > (this.#changes.at(-1)?.revision ?? this.#start))
    this.#changes.push(change)
  }

  #revisionBack(steps: number): number {
    return this.#changes.at(-1 - steps)?.revision ?? this.#start
  }

  #stateAt(revision: number): Map<string, Change> {
    const state = new Map<string, Change>()
    for (const change of this.#changes) {
      if (change.revision > revision) break
      if (change.type === 'put') state.set(change.key, change)
      else state.delete(change.key)
    }
    return state
  }
}

function changeOf({ type, record, previous }: StoreEvent): Change {
  const { key, value, revision } = record
  return { type, key, value: value.toString(), revision, was: previous?.value.toString() }
}
