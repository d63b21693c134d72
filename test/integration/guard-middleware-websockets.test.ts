import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import express from 'express'
import Fastify from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sendRaw } from '../../src/addon/guard/guard-lab.suite.ts'
import {
  type AddonGuard,
  createGuard,
  type MiddlewareOptions,
} from '../../src/addon/guard/index.ts'
import {
  forgedToken,
  LabClock,
  labCa,
  labLeaf,
  labSigner,
} from '../../src/addon/token/token-lab.suite.ts'
import { closeOf, head, openRaw, websocket } from '../support/guard-connection.ts'

const clock = new LabClock()
const now = Math.floor(clock.now() / 1000)
let directory: string
let signer: ReturnType<typeof labSigner>
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'guard-'))
  const ca = await labCa()
  await writeFile(join(directory, 'ca.crt'), ca.certificate.toString())
  signer = labSigner(await labLeaf(ca))
})
afterAll(() => rm(directory, { recursive: true }))

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

async function guardOf(options: Partial<MiddlewareOptions> = {}): Promise<AddonGuard> {
  const caFile = join(directory, 'ca.crt')
  const audiences = ['kube-system/dashboard']
  const guard = await createGuard({ audiences, caFile, clock, ...options })
  closers.push(() => guard.close())
  return guard
}

/** The line that proves a user for so many seconds; the leeway of ten seconds comes on top. */
const proof = (seconds: number, sub = 'bob'): string =>
  `Authorization: Bearer ${forgedToken(signer, {
    claims: { sub, iat: now - 30, nbf: now - 30, exp: now + seconds },
  })}`

const agreement =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

/** What applications do with a WebSocket, in one packet or two: they agree, say hello and send everything back. */
function speak(socket: Duplex): void {
  socket.write(agreement)
  socket.write('hello;')
  socket.pipe(socket)
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

type Serve = (guard: AddonGuard, asked: string[]) => Promise<number>

const ways: readonly (readonly [name: string, serve: Serve])[] = [
  [
    'node:http',
    (guard, asked) => {
      const handle: RequestListener = (request, response) => {
        asked.push(String(request.url))
        response.end()
      }
      const server = createServer(guard.listener(handle))
      server.on(
        'upgrade',
        guard.upgradeListener((_request, socket) => speak(socket)),
      )
      return listening(server)
    },
  ],
  [
    'Express, as its plugins for WebSockets hand them in',
    (guard, asked) => {
      const app = express()
      app.use('/app', guard.express, (request, response) => {
        if (request.headers.upgrade === undefined) {
          asked.push(request.url)
          response.end()
        } else speak(request.socket)
      })
      const server = createServer(app as RequestListener)
      server.on('upgrade', (request) =>
        (app as RequestListener)(request, new ServerResponse(request)),
      )
      return listening(server)
    },
  ],
  [
    'Fastify, as its plugin for WebSockets hands them in',
    async (guard, asked) => {
      const app = Fastify()
      await app.register(guard.fastify)
      app.get('/app/ws', (request, reply) => {
        if (request.raw.headers.upgrade === undefined) {
          asked.push(request.url)
          return 'asked'
        }
        reply.hijack()
        speak(request.raw.socket)
        return reply
      })
      app.server.on('upgrade', (request) => app.routing(request, new ServerResponse(request)))
      closers.push(() => app.close())
      await app.listen({ port: 0, host: '127.0.0.1' })
      return (app.server.address() as AddressInfo).port
    },
  ],
]

async function openTunnel(port: number, ...lines: readonly string[]) {
  const { socket, heard } = await openRaw(port)
  const closed = closeOf(socket)
  socket.write(head('GET /app/ws HTTP/1.1', ...websocket, ...lines))
  await vi.waitFor(() => expect(heard()).toContain(';'))
  const echoes = async (): Promise<void> => {
    socket.write('still here')
    await vi.waitFor(() => expect(heard()).toContain('still here'))
    socket.destroy()
  }
  const id = /\r\nSallyport-Tunnel: (\w+)\r\n/.exec(heard())?.[1] ?? ''
  return { heard, closed, echoes, id }
}

describe.each(ways)('a WebSocket of %s', (_name, serve) => {
  test('ends when its token ends [ADDON-G8]', async () => {
    const port = await serve(await guardOf(), [])
    const { closed } = await openTunnel(port, proof(-9))
    await expect(closed).resolves.toBeUndefined()
  })

  test('lives as long as the newest token of its user, and of nobody else [ADDON-G8]', async () => {
    const asked: string[] = []
    const port = await serve(await guardOf(), asked)
    const renewed = await openTunnel(port, proof(60))
    const other = await openTunnel(port, proof(60))
    const renew = async (line: string, id: string): Promise<number> => {
      const name = `Sallyport-Renew-Tunnel: ${id}`
      return (await sendRaw(port, head('GET /app/ws HTTP/1.1', line, name))).status
    }
    expect(await renew(proof(-9, 'eve'), other.id)).toBe(403)
    expect(await renew(proof(-9), 'ffff')).toBe(403)
    expect(await renew(proof(-9), renewed.id)).toBe(204)
    expect(asked).toEqual([])
    await renewed.closed
    await other.echoes()
  })
})

const [[, serveNode]] = ways as [(typeof ways)[number]]

test('a WebSocket ends at its maximum age, however fresh its token [ADDON-G8]', async () => {
  const port = await serveNode(await guardOf({ maxTunnelMs: 300 }), [])
  const { closed } = await openTunnel(port, proof(60))
  await expect(closed).resolves.toBeUndefined()
})

test('a WebSocket is cut when the guard is closed [ADDON-G8]', async () => {
  const guard = await guardOf()
  const port = await serveNode(guard, [])
  const { closed } = await openTunnel(port, proof(60))
  guard.close()
  await expect(closed).resolves.toBeUndefined()
})

test("a developer's WebSocket has no token to end with [ADDON-G8]", async () => {
  const port = await serveNode(await guardOf({ developmentUser: 'dev', maxTunnelMs: 300 }), [])
  const local = await openRaw(port)
  local.socket.write(['GET / HTTP/1.1', 'Host: localhost', ...websocket, '', ''].join('\r\n'))
  await vi.waitFor(() => expect(local.heard()).toContain('hello;'))
  // One with a token, opened later, has ended by its age.
  await (await openTunnel(port, proof(60))).closed
  local.socket.write('still here')
  await vi.waitFor(() => expect(local.heard()).toContain('still here'))
  local.socket.destroy()
})

test('an Upgrade that the application has no ear for does not end its connection [ADDON-G8]', async () => {
  const guard = await guardOf()
  const port = await listening(
    createServer(guard.listener((_request, response) => void response.end('plain'))),
  )
  const { socket, heard } = await openRaw(port)
  socket.write(head('GET / HTTP/1.1', ...websocket, proof(-10)))
  await vi.waitFor(() => expect(heard()).toContain('plain'))
  expect(heard()).not.toContain('Sallyport-Tunnel')
  socket.write(head('GET / HTTP/1.1', proof(60)))
  await vi.waitFor(() => expect(heard().match(/plain/g)).toHaveLength(2))
  socket.destroy()
})

test.each([
  ['bytes', Buffer.from(agreement), 'HTTP/1.1 101 Switching Protocols\r\nSallyport-Tunnel: '],
  ['a refusal', 'HTTP/1.1 404 Not Found\r\n\r\n', 'HTTP/1.1 404 Not Found\r\n\r\n'],
])(
  '%s of an application are sent as they are, but for a name [ADDON-G8]',
  async (_what, sent, heard) => {
    const guard = await guardOf()
    const server = createServer()
    server.on(
      'upgrade',
      guard.upgradeListener((_request, socket) => {
        socket.write(sent)
        // Only the first bytes are a head.
        socket.write(agreement)
        socket.end(';')
      }),
    )
    const connection = await openTunnel(await listening(server), proof(60))
    expect(connection.heard().startsWith(heard)).toBe(true)
    expect(connection.heard().endsWith(`\r\n\r\n${agreement};`)).toBe(true)
  },
)
