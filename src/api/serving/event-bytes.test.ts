import { expect, test } from 'vitest'
import type { StoredRecord, StoreEvent } from '../../storage/index.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { selectionOf } from '../registry/selection.ts'
import { servedResources } from './call.ts'
import type { EventEncoder } from './watch-events.ts'

const resource = servedResources(kindDefinitions).get('/v1/pods')!
const now = () => 0

function podAt(revision: number, phase: string, labels = '{}'): StoredRecord {
  const key = 'core/pods/a/b'
  const value = `"name":"b","namespace":"a","labels":${labels}},"spec":{},"status":{"phase":"${phase}"}}`
  return { key, revision, value: Buffer.from(value) }
}

const events: readonly StoreEvent[] = [
  { type: 'put', record: podAt(1, 'Pending') },
  { type: 'put', record: podAt(2, 'Running', '{"a":"b"}'), previous: podAt(1, 'Pending') },
  { type: 'delete', record: podAt(3, 'Running', '{"a":"b"}') },
]

const everything = selectionOf(resource.definition, {})
const running = selectionOf(resource.definition, { fieldSelector: 'status.phase=Running' })
const unlabelled = selectionOf(resource.definition, { labelSelector: '!a' })

const typesOf = (lines: readonly Buffer[]): string[] =>
  Buffer.concat(lines)
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).type)

test.each([
  ['no selector', everything, ['ADDED', 'MODIFIED', 'DELETED']],
  ['a field selector', running, ['ADDED', 'DELETED']],
  ['a label selector', unlabelled, ['ADDED', 'DELETED']],
])('what %s leaves of a commit', (_what, selection, types) => {
  const encoders: EventEncoder[] = [
    resource.events,
    resource.views.encoder('metadata', 'Metadata', now),
    resource.views.encoder('table', 'Object', now),
  ]
  for (const encoder of encoders) expect(typesOf(encoder.commit(events, selection))).toEqual(types)
})

test('only the first event of a table has headers, for each watcher', () => {
  for (const encoder of [1, 2].map(() => resource.views.encoder('table', 'None', now))) {
    const [first, second] = [encoder.commit(events, everything), encoder.commit(events, everything)]
    const headers = [...first, ...second]
      .flatMap((lines) => lines.toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line).object.columnDefinitions !== null)
    expect(headers).toEqual([true, false, false, false, false, false])
  }
})

test.each([
  ['whole objects', () => resource.events],
  ['metadata', () => resource.views.encoder('metadata', 'Metadata', now)],
  ['tables', () => resource.views.encoder('table', 'Object', now)],
])('watchers of %s share the bytes of an event, whatever it means to them', (_what, encoderOf) => {
  for (const selection of [running, unlabelled]) {
    for (const event of events) {
      const [line] = encoderOf().commit([event], selection)
      expect(encoderOf().commit([event], selection)[0]).toBe(line)
    }
  }
})
