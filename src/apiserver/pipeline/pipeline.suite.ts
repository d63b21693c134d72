import { once } from 'node:events'
import { createServer as createHttp1Server, type IncomingMessage, request } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import {
  type Attributes,
  type Authentication,
  forbidden,
  isRecord,
  silentLogger,
  systemClock,
  unauthorized,
} from '../../core/index.ts'
import { CpuAccounts } from '../fairness/cpu-accounts.ts'
import { defaultFairnessLimits, Fairness } from '../fairness/fairness.ts'
import { send } from '../routes/route.ts'
import type { Exchange } from './exchange.ts'
import { defaultRequestLimits } from './limits.ts'
import type { PipelineRunner } from './pipeline.ts'
import { createPipeline } from './pipeline.ts'
import { ProvenOrigins } from './proven-origins.ts'
import type { PipelineParts } from './types.ts'

/** A working set of parts: `Bearer NAME` proves NAME, everything is allowed, every answer is `hello`. */
export function partsWith(changes: Partial<PipelineParts> = {}): PipelineParts {
  return {
    clock: systemClock,
    log: silentLogger,
    limits: defaultRequestLimits,
    requestTimeoutMs: 60_000,
    isAllowedOrigin: () => false,
    provenOrigins: new ProvenOrigins(),
    authenticator: {
      name: 'bearer',
      authenticate({ headers }) {
        const [scheme, name] = (headers.authorization ?? '').split(' ')
        if (scheme !== 'Bearer' || !name) return undefined
        if (name === 'wrong') throw unauthorized('bad token')
        return identity(name)
      },
    },
    checkRevocation: () => undefined,
    impersonate: (_request, authentication) => authentication,
    fairness: new Fairness(defaultFairnessLimits),
    cpu: new CpuAccounts(),
    authorizer: {
      authorize: () => ({ allowed: true, reason: '' }),
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
    denial: ({ resource, path }: Attributes, { reason }) =>
      forbidden({ group: '', resource: resource?.resource ?? path ?? '' }, '', reason),
    audit: { received: () => {}, started: () => {}, complete: () => {} },
    metrics: { complete: () => {} },
    resources: (_request, response) => send(response, 'text/plain', 'hello'),
    paths: (_request, response) => send(response, 'text/plain', 'path'),
    ...changes,
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
  readonly pipeline: PipelineRunner
  ask(path: string, ask?: Ask): Promise<Answer>
  stop(): Promise<void>
}

/** Serves `parts` on a real socket. */
export async function serve(
  version: 'HTTP/1.1' | 'HTTP/2',
  parts: PipelineParts,
): Promise<Running> {
  const pipeline = createPipeline(parts)
  const server: Server =
    version === 'HTTP/1.1'
      ? createHttp1Server({ maxHeaderSize: 65_536 }, pipeline.handle).on(
          'upgrade',
          pipeline.upgrade,
        )
      : createHttp2Server().on('request', pipeline.handle as never) // two unrelated types, one shape
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
  const open = new Set<{ username: string; cut: () => void }>()
  return {
    open,
    onRevoked: ({ user }: Authentication, cut: () => void) => {
      const entry = { username: user.username, cut }
      open.add(entry)
      return () => void open.delete(entry)
    },
    revoke(username: string): void {
      for (const entry of open) if (entry.username === username) entry.cut()
    },
  }
}
