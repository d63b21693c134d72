import { once } from 'node:events'
import { createServer as createHttp1Server, type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import {
  type Attributes,
  type Authentication,
  type Backend,
  badRequest,
  forbidden,
  isRecord,
  silentLogger,
  systemClock,
  unauthorized,
} from '../../core/index.ts'
import { EventfulHttp2Response, EventfulServerResponse } from '../../http/index.ts'
import { CpuAccounts } from '../fairness/cpu-accounts.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultFairnessLimits, defaultRequestLimits } from '../limits.ts'
import { send } from '../routes/route.ts'
import { OriginPolicy } from './check-origin.ts'
import type { Exchange } from './exchange.ts'
import type { Pipeline } from './pipeline.ts'
import { createPipeline } from './pipeline.ts'
import type { PipelineDeps } from './types.ts'

/** What a test changes: dependencies, or single methods of them. */
export interface DepsChanges extends Partial<PipelineDeps> {
  readonly authorizer?: Backend['authorizer']
  readonly owner?: Backend['owner']
  readonly resources?: Backend['handle']
  readonly paths?: Backend['handle']
  readonly upgrade?: Backend['upgrade']
  readonly checkRevocation?: PipelineDeps['revocations']['check']
  readonly onRevoked?: PipelineDeps['revocations']['onRevoked']
  readonly onMoreRevoked?: PipelineDeps['revocations']['onMoreRevoked']
}

/** A working set of dependencies: `Bearer NAME` proves NAME, everything is allowed, every response is `hello`. */
export function depsWith(changes: DepsChanges = {}): PipelineDeps {
  return {
    clock: systemClock,
    log: silentLogger,
    limits: defaultRequestLimits,
    requestTimeoutMs: 60_000,
    origins: new OriginPolicy({ allowedOrigin: [], addonAllowedOrigin: [] }),
    authenticator: {
      name: 'bearer',
      authenticate({ headers }) {
        const [scheme, name] = (headers.authorization ?? '').split(' ')
        if (scheme !== 'Bearer' || !name) return undefined
        if (name === 'wrong') throw unauthorized('bad token')
        return identity(name)
      },
    },
    revocations: {
      check: changes.checkRevocation ?? (() => undefined),
      onRevoked: changes.onRevoked ?? (() => () => {}),
      onMoreRevoked: changes.onMoreRevoked ?? (() => {}),
    },
    impersonate: (_request, authentication) => authentication,
    fairness: new Fairness(defaultFairnessLimits),
    cpu: new CpuAccounts(),
    backend: backendWith(changes),
    denial: ({ resource, path }: Attributes, { reason }) =>
      forbidden({ group: '', resource: resource?.resource ?? path ?? '' }, '', reason),
    audit: { received: () => {}, started: () => {}, complete: () => {} },
    metrics: { complete: () => {} },
    ...changes,
  }
}

function backendWith(changes: DepsChanges): Backend {
  const {
    resources = (_request, response) => send(response, 'text/plain', 'hello'),
    paths = (_request, response) => send(response, 'text/plain', 'path'),
    upgrade = () => {
      throw badRequest('this path cannot be upgraded')
    },
  } = changes
  return {
    view: {} as never, // no step uses it
    authorizer: changes.authorizer ?? {
      authorize: () => ({ allowed: true, reason: '' }),
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
    owner: changes.owner ?? (() => 'here'),
    handle: (request, response, signal) =>
      (request.info.isResourceRequest ? resources : paths)(request, response, signal),
    upgrade,
  }
}

/** An identity as an authenticator would prove it. */
export const identity = (username: string, more: Partial<Authentication> = {}): Authentication => ({
  user: { username, groups: [] },
  method: 'bearer',
  ...more,
})

/** An answer as a client sees it. */
interface Answer {
  readonly code: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  /** The Status in the body, if it is one. */
  readonly status: Record<string, unknown>
}

/** What a test asks for. */
export interface Ask {
  readonly method?: string
  readonly headers?: Record<string, string>
}

/** A server of one HTTP version with a pipeline behind it. */
export interface Running {
  readonly port: number
  readonly pipeline: Pipeline
  ask(path: string, ask?: Ask): Promise<Answer>
  stop(): Promise<void>
}

/** Serves a pipeline on a real socket. */
export async function serve(version: 'HTTP/1.1' | 'HTTP/2', deps: PipelineDeps): Promise<Running> {
  const pipeline = createPipeline(deps)
  const http1 = { maxHeaderSize: 65_536, ServerResponse: EventfulServerResponse }
  const http2 = { Http2ServerResponse: EventfulHttp2Response }
  const server: Server =
    version === 'HTTP/1.1'
      ? createHttp1Server(http1, pipeline.handle).on('upgrade', pipeline.upgrade)
      : createHttp2Server(http2).on('request', pipeline.handle as never) // two unrelated types, one shape
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ask = version === 'HTTP/1.1' ? askHttp1 : askHttp2
  return {
    port,
    pipeline,
    ask: (path, options = {}) => ask(port, path, options),
    async stop() {
      server.close()
      if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function') {
        server.closeAllConnections()
      }
      await once(server, 'close')
    },
  }
}

async function askHttp1(port: number, path: string, ask: Ask): Promise<Answer> {
  const outgoing = request({
    port,
    path,
    host: '127.0.0.1',
    agent: false,
    method: ask.method ?? 'GET',
    headers: ask.headers ?? {},
  }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  return answer(incoming.statusCode ?? 0, incoming.headers, await textOf(incoming))
}

async function askHttp2(port: number, path: string, ask: Ask): Promise<Answer> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request({
      ':path': path,
      ':method': ask.method ?? 'GET',
      ...ask.headers,
    })
    stream.end()
    const answered = once(stream, 'response') as Promise<[Record<string, unknown>]>
    const closed = once(stream, 'close').then(() => undefined)
    const first = await Promise.race([answered, closed])
    if (first === undefined) throw new Error('stream closed without an answer')
    const [headers] = first
    return answer(Number(headers[':status']), headers, await textOf(stream))
  } finally {
    session.close()
  }
}

/** All that a stream has to say. */
export async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

function answer(code: number, headers: object, text: string): Answer {
  return { code, headers: { ...headers }, text, status: jsonOf(text) }
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

/** Remembers exchanges as the audit would. */
export function recordingAudit() {
  const stages: { stage: string; code: number; exchange: Exchange }[] = []
  const record = (stage: string) => (exchange: Exchange) => {
    stages.push({ stage, code: exchange.code, exchange })
  }
  return {
    stages,
    received: record('received'),
    started: record('started'),
    complete: record('complete'),
  }
}

/** Revokes on demand. */
export function fakeRevocations() {
  const open = new Set<{ username: string; end: () => void }>()
  return {
    open,
    onRevoked: ({ user }: Authentication, end: () => void) => {
      const entry = { username: user.username, end }
      open.add(entry)
      return () => void open.delete(entry)
    },
    revoke(username: string): void {
      for (const entry of open) if (entry.username === username) entry.end()
    },
  }
}
