import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Kind, KubeObject } from '../core/index.ts'
import { type FakeAnswer, failure, fakeClient } from './fake-transport.suite.ts'

const { signal } = new AbortController()
const configMaps: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const nodes: Kind = { ...configMaps, kind: 'Node', resource: 'nodes', namespaced: false }
const leases: Kind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  resource: 'leases',
  namespaced: true,
}
const key = { namespace: 'ns', name: 'a' }
const object = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', resourceVersion: '7', uid: 'u' },
})
const item = (name: string) => ({ metadata: { name, namespace: 'ns', resourceVersion: '1' } })
const page = (names: readonly string[], next?: string): FakeAnswer => ({
  json: {
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '40', ...(next && { continue: next }) },
    items: names.map(item),
  },
})

describe('paths', () => {
  test.each([
    ['an object of the core group', configMaps, key, '/api/v1/namespaces/ns/configmaps/a'],
    [
      'an object of another group',
      leases,
      key,
      '/apis/coordination.k8s.io/v1/namespaces/ns/leases/a',
    ],
    ['an object without a namespace', nodes, { name: 'n1' }, '/api/v1/nodes/n1'],
    ['a name with a colon', nodes, { name: 'system:x' }, '/api/v1/nodes/system%3Ax'],
  ])('%s has its own', async (_, kind, wanted, path) => {
    const { client, transport } = fakeClient(() => ({ json: object('a') }))
    await client.get(kind, wanted, signal)
    expect(transport.lines).toEqual([`GET ${path}`])
  })

  test.each([
    ['no name, which would be a list', { namespace: 'ns', name: '' }],
    ['a name that climbs', { namespace: 'ns', name: '..' }],
    ['a name with a slash', { namespace: 'ns', name: 'a/status' }],
    ['a namespace that climbs', { namespace: '..', name: 'a' }],
    ['no namespace', { name: 'a' }],
  ])('%s is refused before anything is sent', async (_, wrong) => {
    const { client, transport } = fakeClient(() => ({ json: object('a') }))
    await expect(client.get(configMaps, wrong, signal)).rejects.toMatchObject({
      reason: 'BadRequest',
    })
    await expect(client.delete(configMaps, wrong, {}, signal)).rejects.toMatchObject({
      reason: 'BadRequest',
    })
    expect(transport.requests).toEqual([])
  })
})

describe('lists', () => {
  test('pages are read to the last one and their items completed', async () => {
    const { client, transport } = fakeClient(({ path }) =>
      path.includes('continue=next') ? page(['c']) : page(['a', 'b'], 'next'),
    )
    const list = await client.list(configMaps, { labelSelector: 'x in (y)' }, signal)
    expect(list.resourceVersion).toBe('40')
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c'])
    expect(list.items[2]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
    expect(transport.lines).toEqual([
      'GET /api/v1/configmaps?labelSelector=x+in+%28y%29&limit=500',
      'GET /api/v1/configmaps?labelSelector=x+in+%28y%29&limit=500&continue=next',
    ])
  })

  test('pages that expire midway are replaced by one list without pages', async () => {
    const { client } = fakeClient(({ path }) => {
      if (path.includes('continue=')) return failure(410, 'Expired')
      return path.includes('limit=') ? page(['old'], 'next') : page(['new-1', 'new-2'])
    })
    const list = await client.list(configMaps, {}, signal)
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['new-1', 'new-2'])
  })

  test('a server that never ends its list is given up', async () => {
    const { client, transport } = fakeClient(() => page(['a'], 'next'))
    await expect(client.list(configMaps, {}, signal)).rejects.toMatchObject({
      code: 'CLIENT_ANSWER_INVALID',
    })
    expect(transport.requests).toHaveLength(2)
  })

  test('items may be null, as Go writes an empty list', async () => {
    const { client } = fakeClient(() => ({
      json: { metadata: { resourceVersion: '1' }, items: null },
    }))
    expect(await client.list(configMaps, {}, signal)).toEqual({ items: [], resourceVersion: '1' })
  })

  test.each([
    ['has no version', { metadata: {}, items: [] }],
    ['has no items', { metadata: { resourceVersion: '1' } }],
    ['has something else for items', { metadata: { resourceVersion: '1' }, items: {} }],
    ['has an item that is no object', { metadata: { resourceVersion: '1' }, items: [1] }],
  ])('a list that %s is refused', async (_, json) => {
    const { client } = fakeClient(() => ({ json }))
    await expect(client.list(configMaps, {}, signal)).rejects.toMatchObject({
      code: 'CLIENT_ANSWER_INVALID',
    })
  })
})

describe('failures', () => {
  test('a Status becomes an ApiError with reason, message, details and retry time', async () => {
    const details = {
      name: 'a',
      kind: 'configmaps',
      causes: [{ reason: 'FieldValueInvalid', message: 'bad', field: 'data' }],
      retryAfterSeconds: 3,
      unknown: true,
    }
    const { client } = fakeClient(() => failure(422, 'Invalid', { message: 'it is bad', details }))
    const { unknown: _, ...known } = details
    await expect(client.create(configMaps, object('a'), {}, signal)).rejects.toMatchObject({
      name: 'ApiError',
      reason: 'Invalid',
      message: 'it is bad',
      details: known,
    })
  })

  test.each([
    [400, 'BadRequest'],
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
    [404, 'NotFound'],
    [409, 'Conflict'],
    [410, 'Expired'],
    [413, 'RequestEntityTooLarge'],
    [418, 'BadRequest'],
    [429, 'TooManyRequests'],
    [500, 'InternalError'],
    [502, 'InternalError'],
    [503, 'ServiceUnavailable'],
    [504, 'Timeout'],
  ])('a bare %i without a Status is %s and repeats no text', async (status, reason) => {
    const { client } = fakeClient(() => ({
      status,
      headers: { 'retry-after': '7' },
      text: '<html>Authorization: Bearer secret</html>',
    }))
    const error: unknown = await client.get(configMaps, key, signal).catch((e: unknown) => e)
    expect(error).toMatchObject({
      reason,
      message: `the server answered ${status}`,
      details: { retryAfterSeconds: 7 },
    })
    expect(inspect(error)).not.toContain('secret')
  })

  test('a reason that we do not know becomes that of its code', async () => {
    const { client } = fakeClient(() => failure(503, 'StorageIsNapping', { message: 'zzz' }))
    await expect(client.get(configMaps, key, signal)).rejects.toMatchObject({
      reason: 'ServiceUnavailable',
      message: 'zzz',
    })
  })

  test('only a 404 about the very object means that it is absent', async () => {
    const absent = fakeClient(() => failure(404, 'NotFound', { details: { name: 'a' } }))
    expect(await absent.client.get(configMaps, key, signal)).toBeUndefined()
    const notServed = fakeClient(() => ({ status: 404, text: '404 page not found\n' }))
    await expect(notServed.client.get(configMaps, key, signal)).rejects.toMatchObject({
      reason: 'NotFound',
    })
  })

  test.each([
    ['a redirect', { status: 302, headers: { location: 'https://evil.example' }, text: '' }],
    ['text instead of JSON', { text: 'hello' }],
    ['JSON that is no object', { json: [1] }],
    ['an object without metadata', { json: { kind: 'ConfigMap', apiVersion: 'v1' } }],
    ['an answer that is too large', { json: { ...object('a'), data: 'x'.repeat(2_000) } }],
  ])('%s is refused as invalid', async (_, answer) => {
    const { client, transport } = fakeClient(() => answer, { maxAnswerBytes: 1_000 })
    await expect(client.get(configMaps, key, signal)).rejects.toMatchObject({
      code: 'CLIENT_ANSWER_INVALID',
    })
    expect(transport.requests).toHaveLength(1)
  })

  test('an answer that does not come in time is given up', async () => {
    const { client } = fakeClient(
      ({ signal: ends }) =>
        new Promise((_, reject) => {
          ends.addEventListener('abort', () => reject(ends.reason as Error))
        }),
      { timeoutMs: 20 },
    )
    await expect(client.get(configMaps, key, signal)).rejects.toMatchObject({
      code: 'CLIENT_REQUEST_TIMED_OUT',
      message: 'no answer from https://fake.example within 0.02 s',
    })
  })

  test('an abort ends a request with the reason of the abort', async () => {
    const stop = new AbortController()
    const { client } = fakeClient(({ signal: ends }) => {
      setImmediate(() => stop.abort(new Error('enough')))
      return new Promise((_, reject) => {
        ends.addEventListener('abort', () => reject(ends.reason as Error))
      })
    })
    await expect(client.get(configMaps, key, stop.signal)).rejects.toThrow('enough')
  })
})

describe('writes', () => {
  test('an update states its preconditions in the object and goes to its subresource', async () => {
    const { client, transport } = fakeClient(() => ({ json: object('a') }))
    const options = { subresource: 'status', resourceVersion: '5', uid: 'v' }
    await client.update(configMaps, object('a'), options, signal)
    expect(transport.lines).toEqual(['PUT /api/v1/namespaces/ns/configmaps/a/status'])
    expect(JSON.parse(String(transport.requests[0]?.body))).toMatchObject({
      metadata: { resourceVersion: '5', uid: 'v' },
    })
  })

  test('a delete says undefined when the object is gone and shows it while it is held', async () => {
    const gone = fakeClient(() => ({ json: { kind: 'Status', status: 'Success' } }))
    expect(await gone.client.delete(configMaps, key, {}, signal)).toBeUndefined()
    expect(JSON.parse(String(gone.transport.requests[0]?.body))).toEqual({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: {},
    })
    const held = fakeClient(() => ({ json: object('a') }))
    expect(await held.client.delete(configMaps, key, {}, signal)).toEqual(object('a'))
  })

  test('a TokenRequest goes to its service account', async () => {
    const { client, transport } = fakeClient(() => ({ json: { metadata: {}, status: {} } }))
    await client.review('TokenRequest', { ...object('robot'), spec: {} }, signal)
    expect(transport.lines).toEqual(['POST /api/v1/namespaces/ns/serviceaccounts/robot/token'])
  })
})

describe('kinds', () => {
  const discovery = {
    json: {
      resources: [
        { name: 'pods', kind: 'Pod', namespaced: true },
        { name: 'pods/status', kind: 'Pod', namespaced: true },
        { name: 'nodes', kind: 'Node', namespaced: false },
      ],
    },
  }

  test('where a kind is served is asked once for each version', async () => {
    const { client, transport } = fakeClient(() => discovery)
    const pod = await client.kindOf({ apiVersion: 'v1', kind: 'Pod' }, signal)
    expect(pod).toEqual({ ...configMaps, kind: 'Pod', resource: 'pods' })
    expect(await client.kindOf({ apiVersion: 'v1', kind: 'Node' }, signal)).toEqual(nodes)
    expect(transport.lines).toEqual(['GET /api/v1'])
  })

  test('a kind that was not there before is asked for again', async () => {
    const answers = [failure(404, 'NotFound'), discovery]
    const { client } = fakeClient(() => answers.shift() ?? {})
    const wanted = { apiVersion: 'example.com/v1', kind: 'Pod' }
    await expect(client.kindOf(wanted, signal)).rejects.toMatchObject({ reason: 'NotFound' })
    expect(await client.kindOf(wanted, signal)).toMatchObject({ group: 'example.com' })
  })

  test('kinds that are given need no question', async () => {
    const { client, transport } = fakeClient(() => ({}), { kinds: [leases] })
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }
    expect(await client.kindOf(lease, signal)).toEqual(leases)
    expect(transport.requests).toEqual([])
  })
})
