import { PassThrough, Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { Kind, WatchEvent } from '../core/index.ts'
import { type FakeAnswer, failure, fakeClient } from './fake-transport.suite.ts'
import { RemoteClusterView } from './remote-cluster-view.ts'

const { signal } = new AbortController()
const kind: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const object = (name: string, version: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, resourceVersion: version },
})
const line = (type: string, value: unknown) => `${JSON.stringify({ type, object: value })}\n`
const streamed = (...parts: (string | Buffer)[]): FakeAnswer => ({
  stream: Readable.from(parts.map((part) => Buffer.from(part))),
})
const gone = { kind: 'Status', code: 410, reason: 'Gone', message: 'too old resource version' }

async function watched(answer: FakeAnswer, maxAnswerBytes = 10_000): Promise<WatchEvent[]> {
  const { client } = fakeClient(() => answer, { maxAnswerBytes })
  const events: WatchEvent[] = []
  for await (const event of client.watch(kind, { from: '1' }, signal)) events.push(event)
  return events
}

describe('a watch', () => {
  test('asks for everything after the version, with bookmarks and an end', async () => {
    const { client, transport } = fakeClient(() => streamed())
    const query = { namespace: 'ns', fieldSelector: 'metadata.name=a', from: '7' }
    for await (const _ of client.watch(kind, query, signal)) expect.unreachable()
    const url = new URL(transport.requests[0]?.path ?? '', 'https://x')
    expect(url.pathname).toBe('/api/v1/namespaces/ns/configmaps')
    const { timeoutSeconds, ...rest } = Object.fromEntries(url.searchParams)
    expect(rest).toEqual({
      fieldSelector: 'metadata.name=a',
      watch: 'true',
      resourceVersion: '7',
      allowWatchBookmarks: 'true',
    })
    expect(Number(timeoutSeconds)).toBeGreaterThanOrEqual(300)
    expect(Number(timeoutSeconds)).toBeLessThanOrEqual(600)
  })

  test('puts events together wherever the stream is cut, even within a character', async () => {
    const text = Buffer.from(line('ADDED', object('ä', '2')) + line('DELETED', object('ä', '3')))
    for (let at = 1; at < text.length; at++) {
      const events = await watched(streamed(text.subarray(0, at), text.subarray(at)))
      expect(events).toEqual([
        { type: 'ADDED', object: object('ä', '2') },
        { type: 'DELETED', object: object('ä', '3') },
      ])
    }
  })

  test('ends without an error when the server ends it', async () => {
    expect(await watched(streamed())).toEqual([])
  })

  test.each([
    ['an HTTP 410 with reason Expired', failure(410, 'Expired')],
    ['an HTTP 410 with reason Gone', failure(410, 'Gone')],
    ['a bare HTTP 410', { status: 410, text: 'gone' }],
    ['an ERROR event with code 410', streamed(line('ERROR', gone))],
    ['an ERROR event after others', streamed(line('ADDED', object('a', '2')), line('ERROR', gone))],
  ])('fails as Expired on %s', async (_, answer) => {
    await expect(watched(answer)).rejects.toMatchObject({ name: 'ApiError', reason: 'Expired' })
  })

  test('fails with the reason of any other ERROR event', async () => {
    const status = { kind: 'Status', code: 500, reason: 'InternalError', message: 'etcd is away' }
    await expect(watched(streamed(line('ERROR', status)))).rejects.toMatchObject({
      reason: 'InternalError',
      message: 'etcd is away',
    })
  })

  test.each([
    ['an event that is no JSON', streamed('{"type":\n')],
    ['an event of an unknown type', streamed(line('RENAMED', object('a', '2')))],
    ['an event without an object', streamed('{"type":"ADDED"}\n')],
    [
      'an event that is too large',
      streamed(line('ADDED', { ...object('a', '2'), data: 'x'.repeat(20_000) })),
    ],
  ])('refuses %s as invalid', async (_, answer) => {
    await expect(watched(answer)).rejects.toMatchObject({ code: 'CLIENT_ANSWER_INVALID' })
  })

  test.each([
    ['in the middle of an event', () => streamed(line('ADDED', object('a', '2')).slice(0, 20))],
    [
      'by an error of the connection',
      () => {
        const stream = new PassThrough()
        stream.write(line('ADDED', object('a', '2')))
        setImmediate(() => stream.destroy(new Error('read ECONNRESET')))
        return { stream }
      },
    ],
  ])('that is cut %s fails as ConnectionFailed', async (_, answer) => {
    await expect(watched(answer())).rejects.toMatchObject({ code: 'CLIENT_CONNECTION_FAILED' })
  })

  test('ends without an error when its signal aborts, and closes the stream', async () => {
    const stop = new AbortController()
    const stream = new PassThrough()
    stream.write(line('ADDED', object('a', '2')))
    const { client } = fakeClient(() => ({ stream }))
    const seen: string[] = []
    for await (const event of client.watch(kind, { from: '1' }, stop.signal)) {
      seen.push(event.type)
      setImmediate(() => stop.abort())
    }
    expect(seen).toEqual(['ADDED'])
    expect(stream.destroyed).toBe(true)
  })

  test('closes the stream when its reader leaves', async () => {
    const stream = new PassThrough()
    stream.write(line('ADDED', object('a', '2')))
    const { client } = fakeClient(() => ({ stream }))
    for await (const _ of client.watch(kind, { from: '1' }, signal)) break
    expect(stream.destroyed).toBe(true)
  })
})

test.each([
  ['hides bookmarks when asked to', { bookmarks: false }, ['ADDED']],
  ['shows bookmarks otherwise', {}, ['BOOKMARK', 'ADDED']],
])('the remote cluster view %s', async (_, options, expected) => {
  const bookmark = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: '9' } }
  const { client } = fakeClient(() =>
    streamed(line('BOOKMARK', bookmark), line('ADDED', object('a', '10'))),
  )
  const seen: string[] = []
  for await (const event of new RemoteClusterView(client, options).watch(
    kind,
    { from: '1' },
    signal,
  ))
    seen.push(event.type)
  expect(seen).toEqual(expected)
})
