import { once } from 'node:events'
import { createServer } from 'node:http'
import { type ClientHttp2Session, connect, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, createConnection } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AuditRecorder } from '../../src/apiserver/audit/recorder.ts'
import { depsWith } from '../../src/apiserver/pipeline/pipeline.suite.ts'
import { createPipeline } from '../../src/apiserver/pipeline/pipeline.ts'
import type { PipelineDeps } from '../../src/apiserver/pipeline/types.ts'
import { send } from '../../src/apiserver/routes/route.ts'
import { type Attributes, type AuthorizedRequest, systemClock } from '../../src/core/index.ts'
import { EventfulHttp2Response, EventfulServerResponse } from '../../src/http/index.ts'
import {
  type ApiRoute,
  encodings,
  expectedVerb,
  methods,
  oddMethods,
  prefixes,
  routesOf,
  watchedFeatures,
} from '../support/api-routes.ts'
import { startInProcess } from '../support/in-process-server.ts'

/** One request of the table, and what became of it. */
interface Row {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly route: ApiRoute
  /** Under the legacy prefix of the proxy it is always `proxy`. */
  readonly subresource: string
  readonly isFaithful: boolean
  readonly expected: string | undefined
  status?: number
  authorized?: Attributes
  executed?: AuthorizedRequest
  audited?: string
}

type SendAll = (rows: readonly Row[]) => Promise<unknown>

/** A pipeline whose authorizer, audit log and handlers write down what they see of each row. */
class Recorder {
  readonly rows = new Map<string, Row>()
  readonly #parts: PipelineDeps
  readonly pipeline
  #unaudited = 0
  #whenAudited: (() => void) | undefined

  constructor() {
    const execute = (executed: AuthorizedRequest): Row =>
      Object.assign(this.#row(executed.authentication.user.username), { executed })
    this.#parts = depsWith({
      authorizer: {
        authorize: (authorized) => {
          Object.assign(this.#row(authorized.user.username), { authorized })
          return { allowed: true, reason: '' }
        },
        rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
      },
      audit: new AuditRecorder({
        clock: systemClock,
        sink: { write: (line) => this.#audit(line), dropped: 0, close: async () => {} },
      }),
      resources: (request, response) => {
        execute(request)
        send(response, 'text/plain', '')
      },
      paths: (request, response) => {
        execute(request)
        send(response, 'text/plain', '')
      },
      upgrade: (request, client) => {
        execute(request)
        client.response.end()
      },
    })
    this.pipeline = createPipeline(this.#parts)
  }

  /** Sends all rows and waits until each is in the audit log. */
  async run(rows: readonly Row[], sendAll: SendAll): Promise<void> {
    for (const row of rows) this.rows.set(row.id, row)
    this.#unaudited = rows.length
    const audited = new Promise<void>((resolve) => {
      this.#whenAudited = resolve
    })
    await sendAll(rows)
    await audited
  }

  #row(id: string): Row {
    const row = this.rows.get(id)
    if (!row) throw new Error(`no row ${id}`)
    return row
  }

  #audit(line: string): void {
    const { auditID, stage, verb, responseStatus } = JSON.parse(line)
    if (stage !== 'ResponseComplete') return
    Object.assign(this.#row(auditID), { audited: verb, status: responseStatus.code })
    if (--this.#unaudited === 0) this.#whenAudited?.()
  }
}

const requestText = ({ id, method, url }: Row, more = ''): string =>
  `${method} ${url} HTTP/1.1\r\nHost: x\r\nAudit-Id: ${id}\r\nAuthorization: Bearer ${id}\r\n${more}\r\n`

/** A client that leaves more responses to health checks unread is disconnected. */
const maxPipelined = 50

/** Pipelined; the last request of each connection closes it. */
async function pipelined(port: number, rows: readonly Row[]): Promise<void> {
  for (let from = 0; from < rows.length; from += maxPipelined) {
    const batch = rows.slice(from, from + maxPipelined)
    const last = batch.pop()
    const texts = batch.map((row) => requestText(row))
    if (last) texts.push(requestText(last, 'Connection: close\r\n'))
    const socket = createConnection({ port, host: '127.0.0.1' }).resume()
    socket.write(texts.join(''))
    await once(socket, 'close')
  }
}

/** In a few lanes, each with one request at a time. */
async function inLanes(rows: readonly Row[], sendRow: (row: Row) => Promise<unknown>) {
  const left = rows.values()
  const lane = async (): Promise<void> => {
    for (const row of left) await sendRow(row)
  }
  await Promise.all(Array.from({ length: 24 }, lane))
}

async function upgrade(port: number, row: Row): Promise<void> {
  const socket = createConnection({ port, host: '127.0.0.1' }).resume()
  socket.write(requestText(row, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'))
  await once(socket, 'close')
}

async function overHttp2(session: ClientHttp2Session, { id, method, url }: Row): Promise<void> {
  const headers = { 'audit-id': id, authorization: `Bearer ${id}` }
  const stream = session.request(
    { ':method': method, ':path': url, ...headers },
    { endStream: true },
  )
  await once(stream.resume(), 'close')
}

/** What is wrong with a row, as one line; empty if nothing is. */
function problemOf(row: Row): string {
  const { expected, authorized, executed, audited, status = 0 } = row
  const said = `${row.method} ${row.url}: ${status}, authorized ${authorized?.verb}, audited ${audited}, executed ${executed?.info.verb}`
  if (!authorized && !executed) {
    const mayBeRejected = expected === undefined || !row.isFaithful
    return mayBeRejected && status >= 400 && status < 500 ? '' : said
  }
  const isSame =
    authorized?.verb === expected &&
    executed?.info.verb === expected &&
    audited === expected &&
    executed?.request.method === row.method &&
    authorized !== undefined &&
    isAbout(authorized, row)
  return isSame ? '' : said
}

/** The object of the row, and no other. */
function isAbout({ resource, path }: Attributes, { route, subresource }: Row): boolean {
  if (!resource) return route.resource === '' && path !== undefined
  return (
    resource.group === route.group &&
    resource.version === route.version &&
    resource.resource === route.resource &&
    resource.subresource === subresource &&
    resource.namespace === route.namespace &&
    resource.name === route.name
  )
}

const routes: ApiRoute[] = []

beforeAll(async () => {
  const { features, opened } = watchedFeatures()
  const server = await startInProcess({ features })
  const { paths } = JSON.parse((await (await server.admin()).get('/')).text)
  routes.push(...routesOf(opened, paths))
  await server.close()
})

/** A word that is no method is rejected before the path is read. */
const encodingsOf = (method: string) =>
  oddMethods.includes(method) ? encodings.slice(0, 1) : encodings

function rowsFor(usedMethods: readonly string[], isUpgrade = false): Row[] {
  const rows: Row[] = []
  for (const route of routes)
    for (const method of usedMethods)
      for (const prefix of prefixes)
        for (const { isFaithful, encode, name } of encodingsOf(method))
          for (const watch of name === 'plain' ? [false, true] : [false]) {
            const path = encode(route.root + prefix + route.path)
            const url = watch ? `${path}?watch=1` : path
            const expected = expectedVerb(method, route, { prefix, watch, isUpgrade })
            const subresource = prefix === '/proxy' ? 'proxy' : route.subresource
            const id = `r${rows.length}`
            rows.push({ id, method, url, route, subresource, isFaithful, expected })
          }
  return rows
}

describe('for every route, method, legacy prefix and spelling, the verb that is authorized is audited and executed', () => {
  let recorder: Recorder
  const closers: (() => void)[] = []
  afterAll(() => {
    for (const close of closers) close()
  })

  async function problemsIn(rows: readonly Row[], sendAll: SendAll): Promise<string[]> {
    await recorder.run(rows, sendAll)
    // Every verb of the table is executed, and something is rejected.
    expect(new Set(rows.map(({ executed }) => executed?.info.verb))).toEqual(
      new Set(rows.map(({ expected }) => expected)),
    )
    return rows.map(problemOf).filter((problem) => problem !== '')
  }

  async function http1(): Promise<number> {
    recorder = new Recorder()
    const server = createServer(
      { ServerResponse: EventfulServerResponse },
      recorder.pipeline.handle,
    ).on('upgrade', recorder.pipeline.upgrade)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    closers.push(() => server.close().closeAllConnections())
    return (server.address() as AddressInfo).port
  }

  test('[SEC-R202] over HTTP/1.1', { timeout: 300_000 }, async () => {
    const port = await http1()
    expect(await problemsIn(rowsFor(methods), (rows) => pipelined(port, rows))).toEqual([])
  })

  test('[SEC-R202] over HTTP/2, where a method may be any word', { timeout: 300_000 }, async () => {
    recorder = new Recorder()
    const server = createHttp2Server({ Http2ServerResponse: EventfulHttp2Response }).on(
      'request',
      recorder.pipeline.handle as never,
    ) // two unrelated types, one shape
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closers.push(() => {
      session.close()
      server.close()
    })
    const rows = rowsFor([...methods, ...oddMethods])
    expect(await problemsIn(rows, () => inLanes(rows, (row) => overHttp2(session, row)))).toEqual(
      [],
    )
  })

  test('[SEC-R202] for requests to upgrade', { timeout: 300_000 }, async () => {
    const port = await http1()
    const rows = rowsFor(['GET', 'POST'], true)
    expect(await problemsIn(rows, () => inLanes(rows, (row) => upgrade(port, row)))).toEqual([])
  })
})
