import { once } from 'node:events'
import type { ClientHttp2Stream } from 'node:http2'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { KubeObject } from '../../src/core/index.ts'
import { eventually } from '../support/eventually.ts'
import type { Answer, HttpsCaller, WatchedEvent } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let server: InProcessServer
let admin: HttpsCaller
let namespace: string
let path: string
let count = 0

beforeAll(async () => {
  // Bookmarks come by interval; so the tests decide when.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  server = await startInProcess({ http2: true })
  admin = await server.admin()
})
afterAll(async () => {
  await server.close()
  vi.useRealTimers()
})
beforeEach(async () => {
  count += 1
  namespace = `space-${count}`
  path = `/api/v1/namespaces/${namespace}/configmaps`
  await admin.post('/api/v1/namespaces', { metadata: { name: namespace } })
  // The controller's own ConfigMap comes first, so that it does not come in between.
  const made = await admin.watch(`${path}?watch=true`)
  await made.next()
  made.close()
})

const create = async (name: string, labels: Record<string, string> = {}): Promise<KubeObject> =>
  stored(await admin.post(path, { metadata: { name, labels }, data: { n: '0' } }))

const update = async (name: string, n: string, labels = {}): Promise<KubeObject> =>
  stored(await admin.put(`${path}/${name}`, { metadata: { name, labels }, data: { n } }))

function stored(answer: Answer): KubeObject {
  if (answer.status >= 300) throw new Error(answer.text)
  return answer.object
}

const present = async (): Promise<string> =>
  String((await admin.get(path)).object.metadata.resourceVersion)
const versionOf = ({ metadata }: KubeObject): string => String(metadata.resourceVersion)
const shown = ({ type, object }: WatchedEvent): string => `${type} ${object.metadata.name}`

describe('a watch [GND-R56]', () => {
  test('from a list sees each later change once, in order and as it was stored', async () => {
    const watch = await admin.watch(`${path}?watch=true&resourceVersion=${await present()}`)
    const added = await create('one')
    const modified = await update('one', '1')
    await admin.delete(`${path}/one`)
    const events = [await watch.next(), await watch.next(), await watch.next()]
    expect(events.map(shown)).toEqual(['ADDED one', 'MODIFIED one', 'DELETED one'])
    expect(events[0]?.object).toEqual(added)
    expect(events[1]?.object).toEqual(modified)
    expect(events[2]?.object['data']).toEqual({ n: '1' })
    expect(Number(versionOf(events[2]?.object ?? added))).toBeGreaterThan(
      Number(versionOf(modified)),
    )
    watch.close()
  })

  test('that is resumed misses and doubles nothing', async () => {
    const first = await admin.watch(`${path}?watch=true&resourceVersion=${await present()}`)
    const one = await create('one')
    expect(shown(await first.next())).toBe('ADDED one')
    first.close()
    await create('two')
    await update('one', '1')
    const second = await admin.watch(`${path}?watch=true&resourceVersion=${versionOf(one)}`)
    await create('three')
    const seen = await second.until(({ object }) => object.metadata.name === 'three')
    expect(seen.map(shown)).toEqual(['ADDED two', 'MODIFIED one', 'ADDED three'])
    second.close()
  })

  test.each(['', '&resourceVersion=0'])('with "%s" begins with what is there', async (query) => {
    await create('one')
    const watch = await admin.watch(`${path}?watch=true${query}`)
    await create('two')
    const seen = await watch.until(({ object }) => object.metadata.name === 'two')
    expect(seen.map(shown)).toEqual(['ADDED kube-root-ca.crt', 'ADDED one', 'ADDED two'])
    watch.close()
  })

  test('sees nothing of other namespaces', async () => {
    const watch = await admin.watch(`${path}?watch=true&resourceVersion=${await present()}`)
    await admin.post('/api/v1/namespaces/default/configmaps', {
      metadata: { name: `outside-${count}` },
    })
    await create('inside')
    expect(shown(await watch.next())).toBe('ADDED inside')
    watch.close()
  })

  test('with selectors sees objects come and go as they begin and cease to match', async () => {
    const from = await present()
    const byLabel = await admin.watch(
      `${path}?watch=true&resourceVersion=${from}&labelSelector=color%3Dred`,
    )
    const byName = await admin.watch(
      `${path}?watch=true&resourceVersion=${from}&fieldSelector=metadata.name%3Dtwo`,
    )
    await create('one', { color: 'blue' })
    await update('one', '1', { color: 'red' })
    await update('one', '2', { color: 'red' })
    await update('one', '3', { color: 'blue' })
    await create('two', { color: 'red' })
    const seen = await byLabel.until(({ object }) => object.metadata.name === 'two')
    expect(seen.map(shown)).toEqual(['ADDED one', 'MODIFIED one', 'DELETED one', 'ADDED two'])
    // The last state that matched, at the version of the change that ended it.
    expect(seen[2]?.object['data']).toEqual({ n: '2' })
    expect(shown(await byName.next())).toBe('ADDED two')
    byLabel.close()
    byName.close()
  })

  test('ends in good order after timeoutSeconds', async () => {
    const watch = await admin.watch(`${path}?watch=true&timeoutSeconds=1`)
    expect(await watch.ended).toBe(true)
  })

  test('can be had as tables and as bare metadata', async () => {
    const from = `${path}?watch=true&resourceVersion=${await present()}`
    const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const metadata = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
    const rows = await admin.watch(from, { accept: table })
    const bare = await admin.watch(from, { accept: metadata })
    await create('one')
    expect((await rows.next()).object).toMatchObject({
      kind: 'Table',
      rows: [{ cells: expect.arrayContaining(['one']) }],
    })
    const { object } = await bare.next()
    expect(object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'one' } })
    expect(object['data']).toBeUndefined()
    rows.close()
    bare.close()
  })

  test('of many on one connection is complete for each', async () => {
    const session = await admin.http2()
    const url = `${path}?watch=true&resourceVersion=${await present()}`
    const streams = Array.from({ length: 200 }, () => session.request({ ':path': url }))
    await Promise.all(streams.map((stream) => once(stream, 'response')))
    const seen = streams.map((stream) => linesOf(stream, 10))
    for (let i = 0; i < 10; i++) await create(`many-${i}`)
    const expected = Array.from({ length: 10 }, (_none, i) => `ADDED many-${i}`)
    for (const lines of await Promise.all(seen)) expect(lines).toEqual(expected)
    session.destroy()
  })
})

/** The first events of a watch over HTTP/2. */
async function linesOf(stream: ClientHttp2Stream, wanted: number): Promise<string[]> {
  let body = ''
  for await (const chunk of stream.setEncoding('utf8')) {
    body += String(chunk)
    const lines = body.split('\n').slice(0, -1)
    if (lines.length >= wanted) return lines.map((line) => shown(JSON.parse(line)))
  }
  throw new Error('the watch is over')
}

test('a client that leaves during the initial state leaves no timer behind [SEC-R610]', async () => {
  // More than may wait in memory, so that the initial state waits for the client.
  for (const name of ['a', 'b', 'c'])
    await admin.post(path, { metadata: { name }, data: { text: 'x'.repeat(600 * 1024) } })
  const openWatches = async (): Promise<string | undefined> =>
    /^apiserver_longrunning_requests\S* (\d+)$/m.exec((await admin.get('/metrics')).text)?.[1]
  const before = await openWatches()
  const timers = vi.getTimerCount()
  const session = await admin.http2({ settings: { initialWindowSize: 0 } } as object)
  const stream = session.request({
    ':path': `${path}?watch=true&allowWatchBookmarks=true`,
    ...admin.headers,
  })
  await once(stream, 'response')
  expect(await openWatches()).not.toBe(before)
  session.destroy()
  await eventually('the watch is over', async () => (await openWatches()) === before)
  expect(vi.getTimerCount()).toBe(timers)
})

describe('bookmarks [GND-R56]', () => {
  test('say how far a quiet watch has come, and can be resumed from', async () => {
    const from = await present()
    const url = `${path}?watch=true&resourceVersion=`
    const watch = await admin.watch(`${url}${from}&allowWatchBookmarks=true`)
    const elsewhere = stored(
      await admin.post('/api/v1/namespaces', { metadata: { name: `elsewhere-${count}` } }),
    )
    vi.advanceTimersByTime(60_000)
    const bookmark = await watch.next()
    expect(bookmark).toMatchObject({ type: 'BOOKMARK', object: { kind: 'ConfigMap' } })
    expect(Number(versionOf(bookmark.object))).toBeGreaterThanOrEqual(Number(versionOf(elsewhere)))
    watch.close()
    await create('one')
    const resumed = await admin.watch(`${url}${versionOf(bookmark.object)}`)
    expect(shown(await resumed.next())).toBe('ADDED one')
    resumed.close()
  })

  test('come only to whom asks for them', async () => {
    const watch = await admin.watch(`${path}?watch=true&resourceVersion=${await present()}`)
    vi.advanceTimersByTime(120_000)
    await create('one')
    expect(shown(await watch.next())).toBe('ADDED one')
    watch.close()
  })

  test('mark the end of the initial state', async () => {
    await create('one')
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
    const watch = await admin.watch(`${path}?watch=true&allowWatchBookmarks=true&${query}`)
    const seen = await watch.until(({ type }) => type === 'BOOKMARK')
    expect(seen.slice(0, -1).map(shown)).toEqual(['ADDED kube-root-ca.crt', 'ADDED one'])
    expect(seen.at(-1)?.object.metadata.annotations).toEqual({
      'k8s.io/initial-events-end': 'true',
    })
    expect(versionOf(seen.at(-1)?.object as KubeObject)).toBe(await present())
    await create('two')
    expect(shown(await watch.next())).toBe('ADDED two')
    watch.close()
  })

  test('can be asked for without the initial state', async () => {
    await create('one')
    const query = 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan'
    const watch = await admin.watch(`${path}?watch=true&allowWatchBookmarks=true&${query}`)
    await create('two')
    expect(shown(await watch.next())).toBe('ADDED two')
    watch.close()
  })
})

describe('a watch that makes no sense is refused before it begins [GND-R56]', () => {
  test.each([
    ['sendInitialEvents=true', 422],
    ['sendInitialEvents=true&resourceVersionMatch=Exact', 422],
    ['resourceVersionMatch=NotOlderThan', 422],
    ['resourceVersion=yesterday', 400],
    ['labelSelector=%3D%3D', 400],
    ['fieldSelector=spec.nonsense%3D1', 400],
    ['timeoutSeconds=soon', 400],
  ])('%s gets %i', async (query, code) => {
    const { status, object } = await admin.get(`${path}?watch=true&${query}`)
    expect([status, object.kind]).toEqual([code, 'Status'])
  })
})

describe('a version older than the history [GND-R23, GND-R56]', () => {
  let old: string
  let page: string
  const home = '/api/v1/namespaces/default/configmaps'

  beforeAll(async () => {
    const first = await admin.get(`${home}?limit=1`)
    old = versionOf(first.object)
    await admin.post(home, { metadata: { name: 'second' } })
    const limited = await admin.get(`${home}?limit=1`)
    page = String((limited.object.metadata as { continue?: string }).continue)
    await outgrowHistory()
  }, 60_000)

  /** Replaces and deletes more bytes than history keeps, which is 64 MiB. */
  async function outgrowHistory(): Promise<void> {
    const { view } = server.serving
    const signal = AbortSignal.timeout(60_000)
    const names = Array.from({ length: 8 }, (_none, i) => `large-${i}`)
    const large = (name: string, letter: string): KubeObject => ({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: { name, namespace: 'default' },
      data: { large: letter.repeat(1_000_000) },
    })
    await Promise.all(names.map((name) => view.write('create', large(name, 'a'), {}, signal)))
    for (const letter of 'bcdefghi')
      await Promise.all(names.map((name) => view.write('update', large(name, letter), {}, signal)))
    await Promise.all(names.map((name) => admin.delete(`${home}/${name}`)))
  }

  test('is answered by a watch with a 410 in the stream', async () => {
    const watch = await admin.watch(`${home}?watch=true&resourceVersion=${old}`)
    expect(await watch.next()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410 },
    })
    expect(await watch.ended).toBe(true)
  })

  test('is answered by a list with 410', async () => {
    const exact = await admin.get(`${home}?resourceVersion=${old}&resourceVersionMatch=Exact`)
    expect([exact.status, exact.object['reason']]).toEqual([410, 'Expired'])
  })

  test('is answered by a page with 410 and a way to go on', async () => {
    const next = await admin.get(`${home}?limit=1&continue=${encodeURIComponent(page)}`)
    expect([next.status, next.object['reason']]).toEqual([410, 'Expired'])
    const token = String((next.object.metadata as { continue?: string }).continue)
    const rest = await admin.get(`${home}?limit=10&continue=${encodeURIComponent(token)}`)
    expect(rest.status).toBe(200)
    expect(rest.text).toContain('"second"')
  })
})

test('a server that ends tells its watchers in good order [GND-R5, GND-R56]', async () => {
  const second = await startInProcess()
  const caller = await second.admin()
  const watch = await caller.watch('/api/v1/namespaces/default/configmaps?watch=true')
  await watch.next()
  await second.drain()
  expect(await watch.ended).toBe(true)
  await second.close()
})
