import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Kind, silentLogger } from '../core/index.ts'
import {
  FakeSource,
  type LabServer,
  seenIn,
  TransportLab,
  tokenCredential,
} from '../credentials/transport/transport-lab.suite.ts'
import { createInformer } from './informer.ts'
import { createKubeClient } from './kube-client.ts'
import { RemoteClusterView } from './remote-cluster-view.ts'

const kind: Kind = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}

/** An API of one object whose every version is an event, for those who have the right token. */
class TinyApi {
  version = 1
  token = 't1'
  /** Watches from before this version are told that it is gone. */
  oldest = 1
  readonly watchers = new Set<{ response: ServerResponse; who: string }>()
  lists = 0

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { authorization, commonName } = seenIn(request)
    response.setHeader('content-type', 'application/json')
    if (authorization !== `Bearer ${this.token}`) {
      response.statusCode = 401
      response.end(JSON.stringify(status(401, 'Unauthorized')))
      return
    }
    const query = new URL(request.url ?? '', 'https://x').searchParams
    if (query.get('watch') === 'true')
      this.#watch(Number(query.get('resourceVersion')), response, commonName ?? '')
    else this.#list(response)
  }

  write(): void {
    this.version++
    for (const { response } of this.watchers) response.write(this.#event(this.version))
  }

  /** Ends every watch in the middle of the connection, as a history that is gone does. */
  forget(): void {
    this.oldest = this.version
    const object = status(410, 'Expired')
    for (const { response } of this.watchers)
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
  }

  #watch(from: number, response: ServerResponse, who: string): void {
    if (from < this.oldest) {
      response.statusCode = 410
      response.end(JSON.stringify(status(410, 'Expired')))
      return
    }
    response.flushHeaders()
    for (let version = from + 1; version <= this.version; version++)
      response.write(this.#event(version))
    const watcher = { response, who }
    this.watchers.add(watcher)
    response.on('close', () => this.watchers.delete(watcher))
  }

  #list(response: ServerResponse): void {
    this.lists++
    const metadata = { resourceVersion: String(this.version) }
    response.end(JSON.stringify({ kind: 'List', metadata, items: [object(this.version)] }))
  }

  #event(version: number): string {
    return `${JSON.stringify({ type: 'MODIFIED', object: object(version) })}\n`
  }
}

const object = (version: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'ns', resourceVersion: String(version) },
})

const status = (code: number, reason: string) => ({
  apiVersion: 'v1',
  kind: 'Status',
  metadata: {},
  status: 'Failure',
  reason,
  code,
})

let lab: TransportLab
let stop = new AbortController()
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(async () => {
  stop.abort()
  stop = new AbortController()
  await lab.clear()
})

const backoff = { initialMs: 1, maxMs: 5 }

function seenBy(server: LabServer, credentials: FakeSource, http: '1.1' | '2') {
  const transport = lab.transport(server, { credentials, http })
  const view = new RemoteClusterView(createKubeClient({ transport }))
  const seen: number[] = []
  createInformer({ view, kind, log: silentLogger, backoff, signal: stop.signal }).onChange(
    ({ after }) => void seen.push(Number(after?.metadata.resourceVersion)),
  )
  return seen
}

const until = (what: () => boolean) => vi.waitUntil(what, { interval: 2, timeout: 30_000 })

describe.each(['1.1', '2'] as const)('an informer over HTTP %s [CRED-T8]', (http) => {
  test('goes on through a rotation, a 401, a lost connection and a 410, and misses or doubles nothing', async () => {
    const api = new TinyApi()
    const server = await lab.serve(api.answer)
    const first = { ...tokenCredential('t1'), clientCertificate: await lab.certificate('user1') }
    const second = { ...tokenCredential('t1'), clientCertificate: await lab.certificate('user2') }
    const third = { ...tokenCredential('t2'), clientCertificate: second.clientCertificate }
    const credentials = new FakeSource(first, third)
    const seen = seenBy(server, credentials, http)
    const watchedBy = (who: string) =>
      until(() => [...api.watchers].some((each) => each.who === who))

    await watchedBy('user1')
    api.write()
    credentials.rotate(second)
    api.write()
    await watchedBy('user2')
    expect(api.lists).toBe(1)

    api.token = 't2'
    for (const socket of server.sockets) socket.destroy()
    api.write()
    await until(() => seen.includes(4))
    expect([credentials.refusals.length, api.lists]).toEqual([1, 1])

    await until(() => api.watchers.size === 1)
    api.forget()
    await until(() => api.lists === 2)
    await until(() => api.watchers.size === 1)
    api.write()
    await until(() => seen.includes(5))
    expect(seen).toEqual([1, 2, 3, 4, 5])
  })
})

test.each(['1.1', '2'] as const)(
  'a rotation under 100 open watches moves all to the new identity, over HTTP %s [CRED-I5]',
  async (http) => {
    const api = new TinyApi()
    const reused: boolean[] = []
    const server = await lab.serve((request, response) => {
      reused.push(seenIn(request).sessionReused)
      api.answer(request, response)
    })
    const with1 = { ...tokenCredential('t1'), clientCertificate: await lab.certificate('user1') }
    const with2 = { ...tokenCredential('t1'), clientCertificate: await lab.certificate('user2') }
    const credentials = new FakeSource(with1)
    const transport = lab.transport(server, { credentials, http })
    const view = new RemoteClusterView(createKubeClient({ transport }))
    const options = { view, kind, log: silentLogger, backoff, signal: stop.signal }
    const seen = Array.from({ length: 100 }, () => {
      const versions: (string | undefined)[] = []
      createInformer(options).onChange(
        ({ after }) => void versions.push(after?.metadata.resourceVersion),
      )
      return versions
    })
    const all = (who: string) =>
      until(() => [...api.watchers].filter((each) => each.who === who).length === 100)
    await all('user1')
    credentials.rotate(with2)
    api.write()
    await all('user2')
    api.write()
    await until(() => seen.every((versions) => versions.length === 3))
    expect(new Set(seen.map(String))).toEqual(new Set(['1,2,3']))
    expect([...api.watchers].some(({ who }) => who === 'user1')).toBe(false)
    expect(reused).not.toContain(true)
  },
  60_000,
)
