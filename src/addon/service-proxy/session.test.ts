import { expect, test } from 'vitest'
import type { SessionFacts } from './session.ts'
import { SessionBook, type SessionEvent } from './session.ts'

const clockAt = (ms = 0) => ({
  ms,
  wall: 1_700_000_000_000,
  now() {
    return this.wall
  },
  monotonic() {
    return this.ms
  },
})

const facts = (change: Partial<SessionFacts> = {}): SessionFacts => ({
  kind: 'Tunnel',
  namespace: 'n',
  target: 'services/web',
  user: 'ann',
  method: 'GET',
  endpoint: 'http://10.0.0.1:80',
  identity: '',
  auditId: 'id',
  maxAgeMs: 10_000,
  idleMs: 5_000,
  lostRight: async () => undefined,
  ...change,
})

const never = new AbortController().signal

test('age and silence end a session, whatever the wall clock says [ADDON-R43, ADDON-T63]', async () => {
  const clock = clockAt()
  const book = new SessionBook(clock)
  const silent = book.open(facts())
  const busy = book.open(facts())
  clock.wall += 24 * 3_600_000
  clock.ms = 4_999
  busy.passed('toClient', 1)
  await book.sweep(60_000, never)
  expect([silent.reason, busy.reason]).toEqual([undefined, undefined])
  clock.ms = 5_000
  await book.sweep(60_000, never)
  expect([silent.reason, busy.reason]).toEqual(['idle', undefined])
  clock.ms = 9_999
  busy.passed('toBackend', 1)
  clock.ms = 10_000
  await book.sweep(60_000, never)
  expect([busy.reason, busy.signal.aborted]).toEqual(['max-age', true])
})

test('rights are asked for again once per period, and a check that fails is a no [ADDON-P5]', async () => {
  const clock = clockAt()
  const book = new SessionBook(clock)
  let asked = 0
  const allowed = book.open(
    facts({
      lostRight: async () => {
        asked++
        return undefined
      },
    }),
  )
  const broken = book.open(facts({ lostRight: async () => Promise.reject(new Error('x')) }))
  for (clock.ms = 0; clock.ms <= 2_000; clock.ms += 500) await book.sweep(1_000, never)
  expect([allowed.reason, asked, broken.reason]).toEqual([undefined, 2, 'not-authorized'])
})

test('a check that hangs is a no after another period, and nothing waits for it [ADDON-X7]', async () => {
  const clock = clockAt()
  const book = new SessionBook(clock)
  const hanging = book.open(facts({ lostRight: () => new Promise(() => {}) }))
  const old = book.open(facts({ maxAgeMs: 100 }))
  clock.ms = 100
  const swept = book.sweep(50, never)
  expect([hanging.reason, old.reason]).toEqual([undefined, 'max-age'])
  await swept
  expect(hanging.reason).toBe('not-authorized')
})

test('the first reason counts', () => {
  const session = new SessionBook(clockAt()).open(facts())
  session.cut('revoked')
  session.cut('idle')
  expect(session.reason).toBe('revoked')
})

test('a request is shown after a second, a tunnel at once, and followers hear of both [ADDON-P8]', async () => {
  const clock = clockAt()
  const book = new SessionBook(clock)
  const events: SessionEvent[] = []
  book.follow(book.revision, (event) => events.push(event))
  const request = book.open(facts({ kind: 'Request' }))
  const tunnel = book.open(facts())
  expect(book.list('').map(({ name }) => name)).toEqual([tunnel.name])
  clock.ms = 1_000
  await book.sweep(60_000, never)
  expect(book.list('n')).toHaveLength(2)
  expect(book.list('other')).toEqual([])
  book.close(request)
  book.close(tunnel)
  expect(events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
    ['ADDED', tunnel.name],
    ['ADDED', request.name],
    ['DELETED', request.name],
    ['DELETED', tunnel.name],
  ])
})

test('who comes back is told what was missed, or that it is too long ago [ADDON-P8]', () => {
  const book = new SessionBook(clockAt())
  const start = book.revision
  for (let count = 0; count < 3; count++) book.open(facts())
  const seen: SessionEvent[] = []
  expect(book.follow(start, (event) => seen.push(event))).toBeDefined()
  expect(seen).toHaveLength(3)
  expect(book.follow(start - 1, () => {})).toBeUndefined()
  expect(book.follow(book.revision + 1, () => {})).toBeUndefined()
})
