import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import {
  type Connections,
  createFetch,
  createTransport,
  openUpgrade,
  UpgradeRefused,
} from '../transport/index.ts'
import {
  FakeSource,
  type LabServer,
  type Seen,
  seenIn,
  TransportLab,
  textOf,
  whoAmI,
} from '../transport/transport-lab.suite.ts'
import { type UndiciModule, undiciDispatcher } from './undici-dispatcher.ts'
import { connectWebSocket, type WebSocketClass, type WebSocketLike } from './web-socket.ts'

let lab: TransportLab
let server: LabServer
let connections: Connections
let credentials: FakeSource
beforeAll(async () => {
  lab = await TransportLab.open()
  await fetch('data:,') // loads undici
})
afterEach(() => lab.clear())

const { signal } = new AbortController()
const clientNodePath = createRequire(import.meta.url).resolve('@kubernetes/client-node')
const WebSocket = createRequire(clientNodePath)('ws') as WebSocketClass<WebSocketLike>

/** Connections that prove `us` to a server that tells each client who it is, refused upgrades included. */
async function connect(): Promise<void> {
  server = await lab.serve(whoAmI, {
    onUpgrade: (request: IncomingMessage, socket: Duplex) => {
      const text = JSON.stringify(seenIn(request))
      socket.on('error', () => {})
      socket.end(`HTTP/1.1 403 Forbidden\r\ncontent-length: ${text.length}\r\n\r\n${text}`)
    },
  })
  const clientCertificate = await lab.certificate('us')
  credentials = new FakeSource({ clientCertificate, token: new Secret('ours') })
  connections = lab.connect(server, { credentials })
}

const seenBy = async (body: AsyncIterable<unknown>): Promise<Seen> =>
  JSON.parse(await textOf(body)) as Seen

const refusedUpgrade = async (attempt: Promise<unknown>): Promise<Seen> => {
  const error: unknown = await attempt.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof UpgradeRefused)) throw new Error('not refused', { cause: error })
  return JSON.parse(error.answer.body.toString()) as Seen
}

/** One dispatch of undici with its headers in any form. */
function dispatched(headers: unknown): Promise<Seen> {
  const known: unknown = Reflect.get(globalThis, Symbol.for('undici.globalDispatcher.1'))
  const undici = { Agent: (known as object).constructor as UndiciModule['Agent'] }
  const dispatcher = undiciDispatcher(undici, connections)
  lab.own({ destroy: () => void dispatcher.destroy() })
  return new Promise((resolve, reject) => {
    let text = ''
    dispatcher.dispatch(
      { origin: server.url, path: '/', method: 'GET', headers },
      {
        onConnect: () => {},
        onHeaders: () => true,
        onData: (chunk: Buffer) => {
          text += chunk.toString()
          return true
        },
        onComplete: () => resolve(JSON.parse(text) as Seen),
        onError: reject,
      },
    )
  })
}

type Send = (headers: Record<string, string>) => Promise<Seen>

const overHttp =
  (http: '1.1' | '2'): Send =>
  async (headers) => {
    const transport = createTransport(lab.connect(server, { credentials, http }))
    return seenBy((await transport.send({ method: 'GET', path: '/', headers, signal })).body)
  }

const ways: Readonly<Record<string, Send>> = {
  'transport, HTTP/1.1': overHttp('1.1'),
  'transport, HTTP/2': overHttp('2'),
  fetch: async (headers) =>
    (await (await createFetch(connections)('/', { headers })).json()) as Seen,
  upgrade: (headers) =>
    refusedUpgrade(
      openUpgrade(connections, { path: '/', headers: { ...headers, upgrade: 'echo' }, signal }),
    ),
  WebSocket: (headers) =>
    refusedUpgrade(connectWebSocket(WebSocket, connections, { path: '/', headers, signal })),
  'undici, object': (headers) => dispatched(headers),
  'undici, flat list': (headers) => dispatched(Object.entries(headers).flat()),
  'undici, list of pairs': (headers) => dispatched(Object.entries(headers)),
  'undici, Map': (headers) => dispatched(new Map(Object.entries(headers))),
  'undici, Headers': (headers) => dispatched(new Headers(headers)),
}

describe.each(Object.keys(ways))('a request by %s', (name) => {
  const send: Send = (headers) => (ways[name] as Send)(headers)

  test('proves who we are if it brings no identity', async () => {
    await connect()
    expect(await send({ 'x-other': '1' })).toMatchObject({
      authorization: 'Bearer ours',
      commonName: 'us',
    })
  })

  test.each(['authorization', 'Authorization', 'AUTHORIZATION'])(
    'with its own %s keeps it and proves nothing of ours [SEC-R2402]',
    async (header) => {
      await connect()
      const seen = await send({ [header]: 'Bearer own' })
      expect(seen.authorization).toBe('Bearer own')
      expect(seen.commonName).toBeUndefined()
      expect(credentials.asked).toBe(0)
    },
  )
})

test('an upgrade with its own Authorization keeps it when its connection is retired meanwhile [SEC-R2402]', async () => {
  await connect()
  credentials = new FakeSource({ token: new Secret('ours') })
  connections = lab.connect(server, { credentials })
  await connections.identity() // connections without a certificate serve those with an identity of their own too
  const next = { clientCertificate: await lab.certificate('us'), token: new Secret('next') }
  const headers = { authorization: 'Bearer own', upgrade: 'echo' }
  const attempt = openUpgrade(connections, { path: '/', headers, signal })
  credentials.rotate(next)
  const seen = await refusedUpgrade(attempt)
  expect(seen).toMatchObject({ authorization: 'Bearer own' })
  expect(seen.commonName).toBeUndefined()
})
