import { EventEmitter, once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { type ClientHttp2Session, constants } from 'node:http2'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kindDefinitions } from '../../src/api/index.ts'
import type { ServiceProxyPart } from '../../src/apiserver/feature.ts'
import type { FeatureParts } from '../../src/apiserver/index.ts'
import {
  type AuthorizedRequest,
  apiVersionOf,
  isRecord,
  type Kind,
  type KubeObject,
} from '../../src/core/index.ts'
import { storedKinds } from '../interop/same-answers/kinds.ts'
import {
  type ApiRoute,
  encodings,
  expectedVerb,
  name,
  namespace,
  prefixes,
  routesOf,
  watchedFeatures,
} from '../support/api-routes.ts'
import { eventually } from '../support/eventually.ts'
import type { HttpsCaller } from '../support/https-caller.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const soon = (): AbortSignal => AbortSignal.timeout(30_000)
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const resourceVerbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']
const verbs = [...resourceVerbs, 'deletecollection', 'options', 'post', 'put']
const labels = { row: 'yes' }
const labelSelector = 'row=yes'
const rbac = 'rbac.authorization.k8s.io'

/** An audit event, as far as it is looked at here. */
interface AuditEvent {
  readonly auditID: string
  readonly stage: string
  readonly verb: string
  readonly responseStatus: { readonly code: number }
  readonly annotations?: Readonly<Record<string, string>>
}

/** The last audit event of every request. */
class AuditSink extends Writable {
  readonly #events = new Map<string, AuditEvent>()
  readonly #news = new EventEmitter().setMaxListeners(0)

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    for (const line of String(chunk).split('\n').filter(Boolean)) {
      const event: AuditEvent = JSON.parse(line)
      if (event.stage !== 'ResponseComplete') continue
      this.#events.set(event.auditID, event)
      this.#news.emit(event.auditID)
    }
    done()
  }

  async of(id: string): Promise<AuditEvent> {
    if (!this.#events.has(id)) await once(this.#news, id)
    const event = this.#events.get(id)
    if (!event) throw new Error(`no event ${id}`)
    return event
  }
}

const audit = new AuditSink()
/** The methods of the requests that reached a feature's handler, by audit id. */
const executed = new Map<string, string>()

/** Has every handler of a feature write down that it ran. */
function recorded(parts: FeatureParts): FeatureParts {
  const note = ({ request }: { request: IncomingMessage }): void =>
    void executed.set(String(request.headers['audit-id']), request.method ?? '')
  return {
    ...parts,
    subresources: (parts.subresources ?? []).map(({ entry, handle }) => ({
      entry,
      handle: (request, response, signal) => (note(request), handle(request, response, signal)),
    })),
    ...(parts.serviceProxy && { serviceProxy: recordedProxy(parts.serviceProxy, note) }),
    resources: (parts.resources ?? []).map(({ entry, handle }) => ({
      entry,
      handle: (request, response, signal) => (note(request), handle(request, response, signal)),
    })),
  }
}

function recordedProxy(
  { subresources, proxy }: ServiceProxyPart,
  note: (asked: AuthorizedRequest) => void,
): ServiceProxyPart {
  return {
    subresources,
    proxy: {
      serve: (request, response, signal) => (note(request), proxy.serve(request, response, signal)),
      upgrade: (request, client, signal) => (note(request), proxy.upgrade(request, client, signal)),
    },
  }
}

let server: InProcessServer
let caller: HttpsCaller
let routes: ApiRoute[]
let extensions: ReadonlyMap<string, readonly string[]>

const keyOf = ({ group, version, resource, subresource }: ApiRoute): string =>
  [group, version, resource, subresource].join('/')

const kindOf = ({ group, version, resource }: ApiRoute): Kind | undefined =>
  kindDefinitions.find(
    ({ kind }) => kind.group === group && kind.version === version && kind.resource === resource,
  )?.kind

/** The least object of a kind, in the namespace of the rows. */
function leastOf(kind: Kind, called: string): KubeObject {
  const row = storedKinds.find((each) => each.kind === kind.kind)
  if (!row) throw new Error(`add a row for ${kind.kind} to storedKinds`)
  const least = JSON.parse(JSON.stringify(row.least).replaceAll('{ns}', namespace))
  const place = kind.namespaced && { namespace }
  const metadata = { name: called, labels, ...place }
  return { ...least, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata }
}

const create = (object: KubeObject): Promise<KubeObject> =>
  server.serving.view.write('create', object, {}, soon())

beforeAll(async () => {
  const { features, opened } = watchedFeatures(recorded)
  const flags = ['--audit-log-path', '-', '--addon-requests-per-second', '1000000']
  server = await startInProcess({ features, flags, stdout: audit, logLevel: 'error', http2: true })
  const { paths } = JSON.parse((await (await server.admin()).get('/')).text)
  routes = routesOf(opened, paths)
  extensions = new Map(
    opened.flatMap(({ subresources = [], resources = [], serviceProxy }) => [
      ...[...subresources.map(({ entry }) => entry), ...(serviceProxy?.subresources ?? [])].map(
        (e) => [`${e.group}/${e.version}/${e.resource}/${e.name}`, e.verbs] as const,
      ),
      ...resources.map(
        ({ entry: e }) => [`${e.group}/${e.version}/${e.resource}/`, e.verbs] as const,
      ),
    ]),
  )
  caller = server.as(await server.issue('row'))
  await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  for (const verb of verbs) {
    const metadata = { name: `only-${verb}` }
    const rules = [
      { apiGroups: ['*'], resources: ['*'], verbs: [verb] },
      { nonResourceURLs: ['*'], verbs: [verb] },
    ]
    await create({ apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata, rules })
    const roleRef = { apiGroup: rbac, kind: 'ClusterRole', ...metadata }
    const subjects = [{ apiGroup: rbac, kind: 'User', name: 'row' }]
    await create({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef,
      subjects,
    })
  }
  for (const { kind } of kindDefinitions) await create(leastOf(kind, name))
  await eventually('the roles', async () => (await caller.get('/metrics')).status === 200)
})
afterAll(() => server.close())

type Snapshot = ReadonlyMap<string, KubeObject>

async function snapshot(kind: Kind | undefined): Promise<Snapshot> {
  if (!kind) return new Map()
  const { items } = await server.serving.view.list(kind, { labelSelector }, soon())
  return new Map(items.map((item) => [item.metadata.name, item]))
}

/** What has happened to the objects of a kind, for example `created` or `changed deleted`. */
function effectOf(before: Snapshot, after: Snapshot): string {
  const effects = new Set<string>()
  for (const [key, { metadata }] of after) {
    const known = before.get(key)?.metadata
    if (!known) effects.add('created')
    // Marked only, while a finalizer holds it.
    else if (metadata.deletionTimestamp && !known.deletionTimestamp) effects.add('deleted')
    else if (metadata.resourceVersion !== known.resourceVersion) effects.add('changed')
  }
  for (const key of before.keys()) if (!after.has(key)) effects.add('deleted')
  return [...effects].sort().join(' ')
}

const effectOfVerb: Readonly<Record<string, string>> = {
  create: 'created',
  update: 'changed',
  patch: 'changed',
  delete: 'deleted',
  deletecollection: 'deleted',
}

/** Only the first object remains, as it was at the beginning. */
async function tidy(kind: Kind): Promise<void> {
  const { view } = server.serving
  for (const object of (await snapshot(kind)).values()) {
    const { metadata } = object
    if (metadata.name === name && !metadata.deletionTimestamp) continue
    if (!metadata.deletionTimestamp) await view.write('delete', object, {}, soon())
    await eventually(
      `the end of ${metadata.name}`,
      async () => !(await snapshot(kind)).has(metadata.name),
    )
  }
  if (!(await snapshot(kind)).has(name)) await create(leastOf(kind, name))
}

interface Call {
  readonly route: ApiRoute
  readonly method: string
  readonly url: string
  readonly expected: string | undefined
}

let count = 0

/** A body with which the request would do something. */
function bodyOf({ method, route }: Call, before: Snapshot): { type: string; body?: string } {
  const kind = kindOf(route)
  const annotations = { count: String(count) }
  const json = (value: unknown) => ({ type: 'application/json', body: JSON.stringify(value) })
  const stored = before.get(name)
  if (method === 'PATCH')
    return {
      type: 'application/merge-patch+json',
      body: JSON.stringify({ metadata: { annotations } }),
    }
  if (method === 'PUT' && stored)
    return json({ ...stored, metadata: { ...stored.metadata, annotations } })
  if (method === 'POST') return json(kind ? leastOf(kind, `row-${count}`) : {})
  return { type: 'application/json' }
}

type SendCall = (call: Call, headers: Record<string, string>, body?: string) => Promise<void>

const isStream = (url: string): boolean => /\/w?(?:%77)?atch\/|watch=1/.test(url)

const overHttp1: SendCall = async ({ method, url }, headers, body) => {
  const outgoing = caller.send(url, { method, headers, ...(body !== undefined && { body }) })
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  if (response.statusCode === 200 && isStream(url)) response.destroy()
  else await once(response.resume(), 'close')
}

const overHttp2 =
  (session: ClientHttp2Session): SendCall =>
  async ({ method, url }, headers, body) => {
    const head = { ':method': method, ':path': url, ...headers }
    const stream = session.request(head, { endStream: body === undefined })
    if (body !== undefined) stream.end(body)
    stream.once('response', (answered) => {
      if (answered[':status'] === 200 && isStream(url)) stream.close(constants.NGHTTP2_CANCEL)
    })
    await once(stream.resume(), 'close')
  }

/** What is seen of one request, and what is wrong with it; nothing if the three verbs agree and nothing else was done. */
async function problemOf(
  call: Call,
  send: SendCall,
  done: Set<string>,
): Promise<string | undefined> {
  const { route, expected } = call
  const kind = kindOf(route)
  const id = `v${++count}`
  const before = await snapshot(kind)
  const { type, body } = bodyOf(call, before)
  await send(call, { 'audit-id': id, 'content-type': type }, body)
  const { verb, responseStatus, annotations } = await audit.of(id)
  const effect = effectOf(before, await snapshot(kind))
  if (kind && effect !== '') await tidy(kind)
  const authorized = await roleVerb(annotations?.['authorization.k8s.io/reason'])
  const wasExecuted =
    executed.has(id) || (responseStatus.code < 400 && !extensions.has(keyOf(route)))
  if (wasExecuted || effect !== '') done.add(`${keyOf(route)} ${verb} ${effect}`.trim())
  const agrees =
    expected === undefined
      ? !wasExecuted && authorized === undefined && effect === ''
      : (authorized === expected || (authorized === undefined && !wasExecuted)) &&
        verb === (authorized === undefined ? verb : expected) &&
        (executed.get(id) ?? call.method) === call.method &&
        (effect === '' || (wasExecuted && effect === effectOfVerb[expected]))
  return agrees
    ? undefined
    : `${call.method} ${call.url}: ${responseStatus.code}, expected ${expected}, authorized ${authorized}, audited ${verb}, executed ${wasExecuted}, effect "${effect}"`
}

/** The one verb of the role that has permitted a request. */
async function roleVerb(reason = ''): Promise<string | undefined> {
  const [, role] = /of ClusterRole "([^"]+)"/.exec(reason) ?? []
  if (role === undefined) return undefined
  if (role.startsWith('only-')) return role.slice('only-'.length)
  const found = await server.serving.view.get(clusterRoles, { name: role }, soon())
  const rules: unknown[] = Array.isArray(found?.['rules']) ? found['rules'] : []
  const granted = new Set(rules.flatMap((rule) => (isRecord(rule) ? rule['verbs'] : [])))
  return granted.size === 1 ? String([...granted][0]) : `one of ${role}`
}

const clusterRoles: Kind = {
  group: rbac,
  version: 'v1',
  kind: 'ClusterRole',
  resource: 'clusterroles',
  namespaced: false,
}

function* calls(spellings: readonly string[]): Generator<Call> {
  for (const route of routes)
    for (const method of methods)
      for (const prefix of prefixes)
        for (const { encode } of encodings.filter((each) => spellings.includes(each.name)))
          for (const watch of method === 'GET' && prefix === '' ? [false, true] : [false]) {
            const path = encode(route.root + prefix + route.path)
            const query = watch ? 'watch=1' : `labelSelector=${encodeURIComponent(labelSelector)}`
            const expected = expectedVerb(method, route, { prefix, watch, isUpgrade: false })
            yield { route, method, url: `${path}?${query}`, expected }
          }
}

describe('what is done is what was authorized and audited, by the whole server', () => {
  async function problemsIn(spellings: readonly string[], send: SendCall): Promise<string[]> {
    const problems: string[] = []
    const done = new Set<string>()
    for (const call of calls(spellings)) {
      const problem = await problemOf(call, send, done)
      if (problem !== undefined) problems.push(problem)
    }
    return [...problems, ...missing(done)]
  }

  /** What every kind and every feature declares and no request has done. */
  function missing(done: ReadonlySet<string>): string[] {
    const stored = kindDefinitions.flatMap(({ kind: { group, version, resource }, verbs: own }) =>
      (own ?? [...resourceVerbs, 'deletecollection']).map((verb) =>
        `${group}/${version}/${resource}/ ${verb} ${effectOfVerb[verb] ?? ''}`.trim(),
      ),
    )
    const served = [...extensions].flatMap(([key, own]) => own.map((verb) => `${key} ${verb}`))
    return [...stored, ...served].filter((each) => !done.has(each))
  }

  test('[SEC-R203] over HTTP/1.1', { timeout: 300_000 }, async () => {
    expect(await problemsIn(['plain', 'encoded letters'], overHttp1)).toEqual([])
  })

  test('[SEC-R203] over HTTP/2', { timeout: 300_000 }, async () => {
    expect(await problemsIn(['plain'], overHttp2(await caller.http2()))).toEqual([])
  })
})
