import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import type { Duplex } from 'node:stream'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  FakeSource,
  seenIn,
  TransportLab,
  tokenCredential,
  whoAmI,
} from '../transport/transport-lab.suite.ts'
import { connectWebSocket, type WebSocketClass, type WebSocketLike } from './web-socket.ts'

/** What of a client of `ws` the test looks at; the package is there because the official client needs it. */
interface Client extends WebSocketLike {
  readonly protocol: string
  once(event: string, listener: (...values: unknown[]) => void): this
}

const clientNodePath = createRequire(import.meta.url).resolve('@kubernetes/client-node')
const WebSocket = createRequire(clientNodePath)('ws') as WebSocketClass<Client>

let lab: TransportLab
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())

const { signal } = new AbortController()
const magic = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** Accepts WebSockets for one token and tells each what it asked for and who it is. */
const speaking = (token: string) =>
  lab.serve(whoAmI, {
    onUpgrade: (request: IncomingMessage, socket: Duplex) => {
      socket.on('error', () => {}).resume()
      const { authorization, commonName } = seenIn(request)
      if (authorization !== `Bearer ${token}`) {
        socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n')
        return
      }
      const key = createHash('sha1').update(`${request.headers['sec-websocket-key']}${magic}`)
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${key.digest('base64')}\r\nsec-websocket-protocol: ${request.headers['sec-websocket-protocol']}\r\n\r\n`,
      )
      const text = Buffer.from(`${request.url} ${commonName}`)
      socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]))
    },
  })

describe('a WebSocket of the package ws [CRED-T7]', () => {
  const order = { path: '/exec?command=ls', protocols: ['v5.channel.k8s.io'], signal }

  test('is opened with the current identity, query and protocol, and closes with its certificate', async () => {
    const server = await speaking('t1')
    const clientCertificate = await lab.certificate('user1')
    const credentials = new FakeSource({ ...tokenCredential('t1'), clientCertificate })
    const client = await connectWebSocket(WebSocket, lab.connect(server, { credentials }), order)
    const [text] = await once(client as never, 'message')
    expect(String(text)).toBe('/exec?command=ls user1')
    expect(client.protocol).toBe('v5.channel.k8s.io')
    const closed = once(client as never, 'close')
    const next = await lab.certificate('user2')
    credentials.rotate({ ...tokenCredential('t1'), clientCertificate: next })
    await closed
  })

  test('that meets a 401 is opened once more with the new credential', async () => {
    const server = await speaking('t2')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const client = await connectWebSocket(WebSocket, lab.connect(server, { credentials }), order)
    expect(client.protocol).toBe('v5.channel.k8s.io')
  })

  test('that is refused twice says so', async () => {
    const server = await speaking('t9')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const attempt = connectWebSocket(WebSocket, lab.connect(server, { credentials }), order)
    await expect(attempt).rejects.toMatchObject({ code: 'CLIENT_UPGRADE_REFUSED', status: 401 })
  })

  test('is given up when its signal aborts', async () => {
    const abort = new AbortController()
    const server = await lab.serve(whoAmI, { onUpgrade: () => abort.abort(new Error('enough')) })
    const attempt = connectWebSocket(WebSocket, lab.connect(server), {
      ...order,
      signal: abort.signal,
    })
    await expect(attempt).rejects.toThrow('enough')
  })
})
