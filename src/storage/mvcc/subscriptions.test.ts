import { expect, test } from 'vitest'
import type { StoreEvent } from '../store.ts'
import { Subscriptions } from './watchers.ts'

const eventOf = (key: string): StoreEvent => ({
  type: 'put',
  record: { key, revision: 1, value: Buffer.alloc(0) },
})

function subscriptionsWithErrors() {
  const errors: unknown[] = []
  return { errors, subscriptions: new Subscriptions((error) => errors.push(error)) }
}

test('each prefix gets its own events of a commit in one array', () => {
  const { subscriptions } = subscriptionsWithErrors()
  const received: Record<string, string[][]> = {}
  for (const prefix of ['', '/a/', '/a/1', '/b/', '/long/prefix/that/matches/nothing']) {
    received[prefix] = []
    subscriptions.add(
      prefix,
      (events) => received[prefix]?.push(events.map(({ record }) => record.key)),
      [],
    )
  }
  subscriptions.dispatch(['/a/1', '/b/1', '/a/2'].map(eventOf))
  expect(received).toEqual({
    '': [['/a/1', '/b/1', '/a/2']],
    '/a/': [['/a/1', '/a/2']],
    '/a/1': [['/a/1']],
    '/b/': [['/b/1']],
    '/long/prefix/that/matches/nothing': [],
  })
})

test('a sink that throws is reported and does not keep others from hearing', () => {
  const { errors, subscriptions } = subscriptionsWithErrors()
  const heard: string[] = []
  subscriptions.add('/', () => {
    throw new Error('broken sink')
  }, [])
  subscriptions.add('/', (events) => heard.push(...events.map(({ record }) => record.key)), [])
  subscriptions.dispatch([eventOf('/a')])
  expect(heard).toEqual(['/a'])
  expect(errors).toMatchObject([{ message: 'broken sink' }])
})

test('a watch that another sink closes during a dispatch hears no more of it', () => {
  const { subscriptions } = subscriptionsWithErrors()
  const heard: string[] = []
  const closers: (() => void)[] = []
  subscriptions.add('/', () => closers.forEach((close) => close()), [])
  const second = subscriptions.add('/', () => heard.push('second'), [])
  closers.push(() => second.close())
  subscriptions.dispatch([eventOf('/a')])
  expect(heard).toEqual([])
})

test('a thousand prefixes cost a dispatch no more than their lengths do', () => {
  const { subscriptions } = subscriptionsWithErrors()
  let calls = 0
  for (let i = 0; i < 1000; i++) subscriptions.add(`/ns/${1000 + i}/`, () => calls++, [])
  subscriptions.dispatch([eventOf('/ns/1500/a'), eventOf('/ns/1501/a')])
  expect(calls).toBe(2)
})
