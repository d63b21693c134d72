import { once } from 'node:events'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { writePaced } from '../../api/serving/response.ts'
import { writeShared } from '../../api/serving/watch-events.ts'
import type { Authentication } from '../../core/index.ts'
import { readBody } from '../../http/index.ts'
import { labAuthority, labMaterial, TlsLab } from '../../http/tls-lab.suite.ts'
import { Fairness } from '../fairness/fairness.ts'
import { defaultFairnessLimits, defaultRequestLimits, type FairnessLimits } from '../limits.ts'
import { send } from '../routes/route.ts'
import { type DepsChanges, depsWith, identity } from './pipeline.suite.ts'
import { createPipeline } from './pipeline.ts'
import type { RouteHandler } from './types.ts'

let ca: Awaited<ReturnType<typeof labAuthority>>
let material: Awaited<ReturnType<typeof labMaterial>>
let lab: TlsLab

beforeAll(async () => {
  ca = await labAuthority()
  material = await labMaterial(ca)
})
beforeEach(() => {
  lab = new TlsLab(ca, material)
})
afterEach(() => lab.close())

const pods = '/api/v1/namespaces/a/pods'
/** More than the permits of every pool, so that no permit can be kept. */
const attackers = 12
const limits: FairnessLimits = {
  ...defaultFairnessLimits,
  readOnly: 4,
  mutating: 4,
  longRunning: 4,
  queuedPerUser: 100,
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve))
}

const chunk = Buffer.alloc(256 * 1024, 'x')
function* largeBody(): Generator<Buffer> {
  for (let i = 0; i < 64; i++) yield chunk
}

/** A server with counted handlers: `?large` responses are larger than all buffers on the way. */
async function attacked(changes: DepsChanges = {}, more: Partial<FairnessLimits> = {}) {
  const fairness = new Fairness({ ...limits, ...more })
  let handled = 0
  const resources: RouteHandler = async ({ request, info }, response, signal) => {
    handled++
    if (info.verb !== 'list') {
      const body = await readBody(request, { maxBytes: 1_000_000, timeoutMs: 60_000, signal })
      if (!info.query.has('large')) return send(response, 'text/plain', String(body.length))
    }
    if (!info.query.has('large')) return send(response, 'text/plain', 'hello')
    response.writeHead(200)
    await writePaced(response, largeBody())
    response.end()
    return undefined
  }
  const parts = depsWith({
    fairness,
    resources,
    authenticator: {
      name: 'test',
      authenticate: ({ headers }) => identityOf(headers.authorization),
    },
    ...changes,
  })
  const pipeline = createPipeline(parts)
  const { port } = await lab.serve({ http2: true, onRequest: pipeline.handle })
  const answers = async (user: string, method = 'GET', path = pods): Promise<number> => {
    const headers = { authorization: `Bearer ${user}` }
    const body = method === 'POST' ? { body: 'quick' } : {}
    return (await lab.fetch(port, { path, method, headers, ...body })).status
  }
  return { fairness, port, answers, handled: () => handled, pipeline }
}

function identityOf(authorization: string | undefined): Authentication {
  const name = authorization?.slice('Bearer '.length) ?? 'system:anonymous'
  const groups = name === 'admin' ? ['system:masters'] : []
  return identity(name, { user: { username: name, groups } })
}

const permitsOf = (fairness: Fairness): number[] => [
  fairness.running('readOnly'),
  fairness.running('mutating'),
  fairness.queued('readOnly'),
  fairness.queued('mutating'),
]
const heldBy = (fairness: Fairness): number =>
  fairness.held().reduce((sum, { bytes }) => sum + bytes, 0)

/** The kinds of clients, by the user of the n-th attacker; `undefined` sends no credential. */
const kinds: Record<string, (n: number) => string | undefined> = {
  'anonymous clients': () => undefined,
  'service accounts of one namespace': (n) => `system:serviceaccount:team:sa-${n}`,
  'one user': () => 'eve',
}

type Connection = TLSSocket | ClientHttp2Session
interface Attack {
  readonly method: 'GET' | 'POST'
  /** The handler runs, because the whole request arrives. */
  readonly isHandled: boolean
  start(port: number, user: (n: number) => string | undefined): Promise<Connection[]>
}

const headOf = (method: string, path: string, user: string | undefined, more = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${
    user === undefined ? '' : `Authorization: Bearer ${user}\r\n`
  }${more}\r\n`

const overHttp1 =
  (bytesOf: (user: string | undefined) => string) =>
  async (port: number, user: (n: number) => string | undefined): Promise<Connection[]> => {
    const sockets = await Promise.all(Array.from({ length: attackers }, () => lab.connect(port)))
    for (const [n, socket] of sockets.entries()) socket.pause().write(bytesOf(user(n)))
    return sockets
  }

const pipelined =
  (path: string) =>
  async (port: number, user: (n: number) => string | undefined): Promise<Connection[]> => {
    const socket = await lab.connect(port)
    const heads = Array.from({ length: attackers }, (_, n) => headOf('GET', path, user(n)))
    socket.pause().write(heads.join(''))
    return [socket]
  }

/** The window stays closed: not one byte of a body can be sent. */
const overHttp2 =
  (method: string, path: string, body?: string) =>
  async (port: number, user: (n: number) => string | undefined): Promise<Connection[]> => {
    const session = lab.http2(port, { settings: { initialWindowSize: 0 } } as object)
    for (let n = 0; n < attackers; n++) {
      const name = user(n)
      const headers = name === undefined ? {} : { authorization: `Bearer ${name}` }
      const stream = session.request(
        { ':path': path, ':method': method, ...headers },
        { endStream: method === 'GET' },
      )
      stream.on('error', () => {})
      if (body !== undefined) stream.write(body)
      else if (method !== 'GET') stream.end('whole')
    }
    return [session]
  }

const length = (bytes: number): string => `Content-Length: ${bytes}\r\n`
const attacks: Record<string, Attack> = {
  'do not read a large response': {
    method: 'GET',
    isHandled: true,
    start: overHttp1((user) => headOf('GET', `${pods}?large`, user)),
  },
  'do not read a large response to a write': {
    method: 'POST',
    isHandled: true,
    start: overHttp1((user) => `${headOf('POST', `${pods}?large`, user, length(5))}whole`),
  },
  'do not read pipelined responses': { method: 'GET', isHandled: true, start: pipelined(pods) },
  'do not read large pipelined responses': {
    method: 'GET',
    isHandled: true,
    start: pipelined(`${pods}?large`),
  },
  'send a part of a body': {
    method: 'POST',
    isHandled: false,
    start: overHttp1((user) => `${headOf('POST', pods, user, length(100))}half`),
  },
  'send one chunk': {
    method: 'POST',
    isHandled: false,
    start: overHttp1(
      (user) => `${headOf('POST', pods, user, 'Transfer-Encoding: chunked\r\n')}1\r\nx\r\n`,
    ),
  },
  'expect 100-continue and send nothing': {
    method: 'POST',
    isHandled: false,
    start: overHttp1((user) => headOf('POST', pods, user, `${length(9)}Expect: 100-continue\r\n`)),
  },
  'send a body with a GET': {
    method: 'GET',
    isHandled: false,
    start: overHttp1((user) => `${headOf('GET', pods, user, length(100))}half`),
  },
  'do not read over HTTP/2': { method: 'GET', isHandled: true, start: overHttp2('GET', pods) },
  'do not read a large response over HTTP/2': {
    method: 'GET',
    isHandled: true,
    start: overHttp2('GET', `${pods}?large`),
  },
  'do not read responses to writes over HTTP/2': {
    method: 'POST',
    isHandled: true,
    start: overHttp2('POST', pods),
  },
  'send a part of a body over HTTP/2': {
    method: 'POST',
    isHandled: false,
    start: overHttp2('POST', pods, 'half'),
  },
}

const cases = Object.keys(kinds).flatMap((kind) =>
  Object.keys(attacks).map((attack) => [kind, attack] as const),
)

describe('clients hold no permit while they send or read slowly [SEC-R601, SEC-R602]', () => {
  test.each(cases)('%s that %s', async (kind, name) => {
    const attack = attacks[name]
    const user = kinds[kind]
    if (!attack || !user) throw new Error('no such case')
    // Anonymous clients may hold little in memory: here the permits are in question.
    const { fairness, port, answers, handled } = await attacked(
      {},
      { maxHeldBytesPerUser: 2 ** 34 },
    )
    const connections = await attack.start(port, user)
    if (attack.isHandled) await until(() => handled() === attackers)
    else await until(() => heldBy(fairness) >= attackers * 4096)
    await until(() => permitsOf(fairness).every((count) => count === 0))

    for (const other of ['bob', 'admin', 'system:serviceaccount:other:sa', user(0) ?? 'bob']) {
      expect(await answers(other)).toBe(200)
      expect(await answers(other, 'POST')).toBe(200)
      expect(await answers(other, 'GET', '/livez')).toBe(200)
    }
    for (const connection of connections) connection.destroy()
    await until(() => heldBy(fairness) === 0)
    expect(permitsOf(fairness)).toEqual([0, 0, 0, 0])
  })
})

describe('what clients hold in memory is bounded [SEC-R603]', () => {
  test('a user with too many unread bytes is cut, and others are not', async () => {
    const { fairness, port, answers } = await attacked({}, { maxHeldBytesPerUser: 4 * 2 ** 20 })
    const sockets = (await attacks['do not read a large response']!.start(
      port,
      () => 'eve',
    )) as TLSSocket[]
    const closed = sockets.map((socket) => once(socket.resume(), 'close'))
    expect(await answers('bob')).toBe(200)
    await Promise.race(closed)
    for (const socket of sockets) socket.destroy()
    await until(() => heldBy(fairness) === 0)
  })

  test('anonymous clients of one address hold a small part of that of users', async () => {
    const { fairness, port, answers } = await attacked({}, { maxHeldBytesPerUser: 2 ** 20 })
    // 4 KiB: one response at a time; the next one ends the connection.
    const socket = await lab.connect(port)
    socket.pause().write(headOf('GET', `${pods}?large`, undefined).repeat(3))
    await once(socket.resume(), 'close')
    expect(await answers('bob')).toBe(200)
    await until(() => heldBy(fairness) === 0)
  })

  test('a body beyond the share of its user is a 429', async () => {
    const { answers, port } = await attacked({}, { maxHeldBytesPerUser: 8 * 1024 })
    const headers = { authorization: 'Bearer eve' }
    const body = 'x'.repeat(9 * 1024)
    expect((await lab.fetch(port, { path: pods, method: 'POST', headers, body })).status).toBe(429)
    expect(await answers('eve', 'POST')).toBe(200)
  })

  test('a client that reads nothing for a while is disconnected, however small its share', async () => {
    const { port, fairness } = await attacked({
      limits: { ...defaultRequestLimits, maxWriteStallMs: 200 },
    })
    const socket = await lab.connect(port)
    socket.pause().write(headOf('GET', `${pods}?large`, 'eve'))
    await until(() => heldBy(fairness) > 0)
    // Nothing is read before the server has given up.
    await until(() => heldBy(fairness) === 0)
    await expect(once(socket.resume(), 'close')).resolves.toBeDefined()
  })
})

describe('unread events of streams count like unread responses [SEC-R609]', () => {
  const event = Buffer.alloc(512 * 1024, 'x')
  /** Sends `count` events at once and stays open, as a watch does. */
  const watchOf =
    (count: number): RouteHandler =>
    (_request, response, signal) => {
      response.writeHead(200).flushHeaders()
      for (let i = 0; i < count; i++) writeShared(response, event)
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
    }

  test.each(['one user', 'service accounts of one namespace'])(
    'of %s: watches beyond the share are cut',
    async (kind) => {
      const { fairness, port } = await attacked(
        { resources: watchOf(80) },
        { longRunning: 1_000, maxHeldBytesPerUser: 64 * 2 ** 20 },
      )
      const sockets: TLSSocket[] = []
      for (let n = 0; n < attackers; n++) {
        const socket = await lab.connect(port)
        socket.on('error', () => {})
        socket.pause().write(headOf('GET', `${pods}?watch=1`, kinds[kind]?.(n)))
        sockets.push(socket)
      }
      // At most two of them fit; the kernel takes some 10 MiB of each.
      await until(() => fairness.held().some(({ bytes }) => bytes > 0))
      await until(() => fairness.running('longRunning') <= 2)
      expect(heldBy(fairness)).toBeLessThanOrEqual(64 * 2 ** 20)
      for (const socket of sockets) socket.destroy()
      await until(() => heldBy(fairness) === 0)
    },
  )

  test.each([false, true])('nothing counts once it is read, HTTP/2: %s', async (isHttp2) => {
    const { fairness, port } = await attacked({ resources: watchOf(8) })
    const path = `${pods}?watch=1`
    let paused: TLSSocket | ClientHttp2Stream
    if (isHttp2) paused = lab.http2(port).request({ ':path': path, authorization: 'Bearer eve' })
    else {
      paused = await lab.connect(port)
      paused.write(headOf('GET', path, 'eve'))
    }
    paused.pause()
    await until(() => heldBy(fairness) > 0)
    paused.on('data', () => {})
    paused.resume()
    await until(() => heldBy(fairness) === 0)
    expect(fairness.running('longRunning')).toBe(1)
  })
})

describe('a response that is not read ends with the time for its request [SEC-R603]', () => {
  const denied: DepsChanges = {
    authorizer: {
      authorize: () => ({ allowed: false, reason: '' }),
      rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
    },
  }
  const unknown: DepsChanges = {
    authenticator: { name: 'none', authenticate: () => undefined },
  }
  const ended: RouteHandler = (_request, response) => {
    response.writeHead(200)
    response.end('the last event')
  }

  test.each<[string, string, Record<string, string>, DepsChanges]>([
    ['a complete response', pods, {}, {}],
    ['a 401', pods, {}, unknown],
    ['a 403', pods, {}, denied],
    ['a 403 of a watch', `${pods}?watch=1`, {}, denied],
    ['a watch that has ended', `${pods}?watch=1`, {}, { resources: ended }],
    ['a 400 before anything else', pods, { impersonate_user: 'x' }, {}],
  ])('%s', async (_what, path, headers, parts) => {
    const { port, fairness, pipeline } = await attacked({ ...parts, requestTimeoutMs: 1_000 })
    const session = lab.http2(port, { settings: { initialWindowSize: 0 } } as object)
    const stream = session.request({ ':path': path, authorization: 'Bearer eve', ...headers })
    stream.on('error', () => {})
    await once(stream, 'response')
    expect(fairness.running('longRunning')).toBe(0)
    await expect(once(stream, 'close')).rejects.toThrow('INTERNAL_ERROR')
    await until(() => heldBy(fairness) === 0)
    await pipeline.drain()
  })
})

describe('pipelined requests of a client that leaves [SEC-R604]', () => {
  test.each([
    ['a response that is not read', `${pods}?large`],
    ['a watch', `${pods}?watch=1`],
  ])('are over, although they wait behind %s', async (_what, first) => {
    const watch: RouteHandler = (_request, response, signal) => {
      response.writeHead(200).flushHeaders()
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
    }
    const isWatch = first.includes('watch')
    const { port, fairness, pipeline } = await attacked(isWatch ? { resources: watch } : {})
    const socket = await lab.connect(port)
    socket.pause().write(headOf('GET', first, 'eve') + headOf('GET', '/version', 'eve').repeat(8))
    await until(() =>
      isWatch ? fairness.running('longRunning') === 1 : heldBy(fairness) > 2 ** 20,
    )
    socket.destroy()
    await until(() => heldBy(fairness) === 0 && fairness.running('longRunning') === 0)
    await pipeline.drain()
    expect(permitsOf(fairness)).toEqual([0, 0, 0, 0])
  })

  test('are limited: more at a time end the connection', async () => {
    const { handle: onRequest } = createPipeline(
      depsWith({ resources: () => new Promise(() => {}) }),
    )
    const { port } = await lab.serve({ onRequest, limits: { maxPipelinedRequests: 5 } })
    const socket = await lab.connect(port)
    socket.write(headOf('GET', pods, 'eve').repeat(6))
    await expect(once(socket.resume(), 'close')).resolves.toBeDefined()
  })
})
