import { describe, expect, test } from 'vitest'
import type { StoredRecord, StoreEvent } from '../store.ts'
import { History } from './history.ts'

const record = (key: string, revision: number, bytes = 10): StoredRecord => ({
  key,
  revision,
  value: Buffer.alloc(bytes),
})
const created = (key: string, revision: number): StoreEvent => ({
  type: 'put',
  record: record(key, revision),
})
const revisionsOf = (history: History): number[] =>
  history.after(history.floor).map((event) => event.record.revision)
const everything = { from: '', to: undefined }

describe('history', () => {
  test('keeps so many events and no more', () => {
    const history = new History(1, { maxEvents: 3, maxBytes: 1000 })
    for (let revision = 2; revision <= 10; revision++) history.append(created('/a', revision))
    expect(revisionsOf(history)).toEqual([8, 9, 10])
    expect(history.floor).toBe(7)
    expect(history.count).toBe(3)
  })

  test('keeps so many bytes of replaced values and no more [GND-R23]', () => {
    const history = new History(1, { maxEvents: 100, maxBytes: 250 })
    history.append(created('/a', 2))
    for (let revision = 3; revision <= 10; revision++) {
      const previous = record('/a', revision - 1, 100)
      history.append({ type: 'put', record: record('/a', revision, 100), previous })
    }
    expect(revisionsOf(history)).toEqual([9, 10])
    expect(history.bytes).toBe(200)
  })

  test('drops a revision with several events as a whole', () => {
    const history = new History(1, { maxEvents: 3, maxBytes: 1000 })
    for (const key of ['/a', '/b', '/c']) history.append(created(key, 2))
    history.append(created('/d', 3))
    expect(revisionsOf(history)).toEqual([3])
    expect(history.floor).toBe(2)
  })

  test('stays right over many times its size', () => {
    const history = new History(1, { maxEvents: 50, maxBytes: 1000 })
    for (let revision = 2; revision <= 20_000; revision++) history.append(created('/a', revision))
    expect(revisionsOf(history)).toEqual(Array.from({ length: 50 }, (_, i) => 19_951 + i))
    expect(history.after(19_998)).toHaveLength(2)
    expect(history.after(20_000)).toHaveLength(0)
  })

  test('tells what keys held at an earlier revision, as far as they changed since', () => {
    const history = new History(1, { maxEvents: 50, maxBytes: 1000 })
    const first = record('/a', 2)
    const second = record('/a', 3)
    history.append({ type: 'put', record: first })
    history.append({ type: 'put', record: second, previous: first })
    history.append(created('/b', 4))
    history.append({ type: 'delete', record: record('/a', 5), previous: second })
    expect(history.undo(5, everything)).toEqual(new Map())
    expect(history.undo(3, everything)).toEqual(
      new Map([
        ['/b', undefined],
        ['/a', second],
      ]),
    )
    expect(history.undo(2, { from: '/a', to: '/b' })).toEqual(new Map([['/a', first]]))
    expect(history.undo(1, { from: '/a', to: '/b' })).toEqual(new Map([['/a', undefined]]))
  })
})
