import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type KubeObject, parseRequestInfo, systemClock } from '../../core/index.ts'
import { type LiveResource, liveResourceHandler } from './virtual-resource.ts'

const things = ['one', 'two'].map(
  (name): KubeObject => ({
    apiVersion: 'x.example/v1',
    kind: 'Thing',
    metadata: { name, namespace: 'a', resourceVersion: '1' },
  }),
)

const resource: LiveResource = {
  kind: { group: 'x.example', version: 'v1', kind: 'Thing', resource: 'things', namespaced: true },
  columns: [],
  revision: 1,
  list: () => things,
  get: (_namespace, name) => things.find(({ metadata }) => metadata.name === name),
  end: () => true,
  follow: () => undefined,
}

async function namesAt(path: string): Promise<string[]> {
  const out = new PassThrough()
  const response = Object.assign(out, {
    writeHead: () => out,
    flushHeaders: () => {},
    setHeader: () => out,
  })
  const request = { headers: {}, method: 'GET', url: path }
  const info = parseRequestInfo('GET', path)
  const authorized = {
    request,
    info,
    authentication: { user: { username: 'ann', groups: [] }, method: 'x' },
  }
  const handle = liveResourceHandler(resource, systemClock)
  const [said] = await Promise.all([
    text(out),
    handle(
      authorized as never,
      response as unknown as ServerResponse,
      new AbortController().signal,
    ),
  ])
  return [...said.matchAll(/"name":\s?"(one|two)"/g)].map(([, name]) => name ?? '')
}

const root = '/apis/x.example/v1'

test.each([
  [`${root}/namespaces/a/things`, ['one', 'two']],
  [`${root}/namespaces/a/things?fieldSelector=metadata.name=two`, ['two']],
  [`${root}/namespaces/a/things/one`, ['one']],
  [`${root}/namespaces/a/things?watch=1`, ['one', 'two']],
  [`${root}/namespaces/a/things?watch=1&fieldSelector=metadata.name=two`, ['two']],
  [`${root}/watch/namespaces/a/things`, ['one', 'two']],
  [`${root}/watch/namespaces/a/things/one`, ['one']],
  [`${root}/watch/things/two`, ['two']],
])('[SEC-R204] %s shows what was authorized, by name too', async (path, names) => {
  expect(await namesAt(path)).toEqual(names)
})
