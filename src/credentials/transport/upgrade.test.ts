import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { ClientCertificate } from '../credential.ts'
import { createAgent } from './agent.ts'
import { UpgradeRefused } from './errors.ts'
import {
  FakeSource,
  type Seen,
  seenIn,
  TransportLab,
  textOf,
  tokenCredential,
  whoAmI,
} from './transport-lab.suite.ts'
import { openUpgrade } from './upgrade.ts'

let lab: TransportLab
let first: ClientCertificate
let second: ClientCertificate
beforeAll(async () => {
  lab = await TransportLab.open()
  first = await lab.certificate('user1')
  second = await lab.certificate('user2')
})
afterEach(() => lab.clear())

const { signal } = new AbortController()
const headers = { upgrade: 'echo' }

/** Upgrades for one token, tells who asked, and then sends back what it gets. */
function echoing(token: string) {
  return lab.serve(whoAmI, {
    onUpgrade: (request: IncomingMessage, socket: Duplex) => {
      socket.on('error', () => {})
      if (request.headers.authorization !== `Bearer ${token}`) {
        socket.end(
          'HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n',
        )
        return
      }
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n',
      )
      socket.write(`${request.url} ${seenIn(request).commonName}`)
      socket.pipe(socket)
    },
  })
}

describe('an upgrade [CRED-T7]', () => {
  test('gives a connection of the current identity, with the query kept', async () => {
    const server = await echoing('t1')
    const credentials = new FakeSource({ clientCertificate: first, token: new Secret('t1') })
    const connections = lab.connect(server, { credentials })
    const { socket } = await openUpgrade(connections, {
      path: '/exec?command=ls&tty=1',
      headers,
      signal,
    })
    expect(String((await once(socket, 'data'))[0])).toBe('/exec?command=ls&tty=1 user1')
    socket.write('hello')
    expect(String((await once(socket, 'data'))[0])).toBe('hello')
  })

  test('that meets a 401 renews the credential and is tried once more', async () => {
    const server = await echoing('t2')
    const credentials = new FakeSource(tokenCredential('t1'), tokenCredential('t2'))
    const connections = lab.connect(server, { credentials })
    const { socket } = await openUpgrade(connections, { path: '/exec', headers, signal })
    expect(socket.destroyed).toBe(false)
    expect(credentials.refusals).toMatchObject([
      { status: 401, headers: { 'www-authenticate': ['Bearer'] } },
    ])
  })

  test.each([
    ['a second 401', tokenCredential('t2')],
    ['no newer credential', undefined],
  ])('is refused after %s', async (_, next) => {
    const server = await echoing('t9')
    const credentials = new FakeSource(tokenCredential('t1'), ...(next ? [next] : []))
    const attempt = openUpgrade(lab.connect(server, { credentials }), {
      path: '/',
      headers,
      signal,
    })
    await expect(attempt).rejects.toMatchObject({ code: 'CLIENT_UPGRADE_REFUSED', status: 401 })
  })

  test('is refused by a server that just answers', async () => {
    const server = await lab.serve(whoAmI)
    const attempt = openUpgrade(lab.connect(server), { path: '/', headers, signal })
    await expect(attempt).rejects.toMatchObject({ code: 'CLIENT_UPGRADE_REFUSED', status: 200 })
  })

  test.each([
    ['whole', 'no rights', true],
    ['by its beginning if it is long', 'x'.repeat(100_000), false],
  ])(
    'carries the answer of a server that refuses, %s, and shows it nowhere',
    async (_, said, whole) => {
      const server = await lab.serve(whoAmI, {
        onUpgrade: (_request: IncomingMessage, socket: Duplex) => {
          socket.on('error', () => {})
          socket.end(
            `HTTP/1.1 403 Forbidden\r\nx-app: yes\r\ncontent-length: ${said.length}\r\n\r\n${said}`,
          )
        },
      })
      const attempt = openUpgrade(lab.connect(server), { path: '/', headers, signal })
      const error: unknown = await attempt.catch((cause: unknown) => cause)
      if (!(error instanceof UpgradeRefused)) throw new Error('it was not refused')
      expect(error.answer).toMatchObject({ status: 403, headers: { 'x-app': 'yes' }, whole })
      expect(String(error.answer.body)).toBe(said.slice(0, 64 * 1024))
      expect(inspect(error)).not.toContain('x-app')
    },
  )

  test('that is open is closed when its certificate is replaced [CRED-C9]', async () => {
    const server = await echoing('t1')
    const credentials = new FakeSource({ clientCertificate: first, token: new Secret('t1') })
    const connections = lab.connect(server, { credentials })
    const { socket } = await openUpgrade(connections, { path: '/', headers, signal })
    socket.resume()
    credentials.rotate({ clientCertificate: second, token: new Secret('t1') })
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })

  test('is ended by its signal with the reason of the abort', async () => {
    const abort = new AbortController()
    const server = await lab.serve(whoAmI, { onUpgrade: () => abort.abort(new Error('enough')) })
    const request = { path: '/', headers, signal: abort.signal }
    await expect(openUpgrade(lab.connect(server), request)).rejects.toThrow('enough')
  })
})

describe('the agent for clients of others [CRED-T3]', () => {
  async function askBy(agent: ReturnType<typeof createAgent>, url: string): Promise<Seen> {
    const request = httpsRequest(url, { agent }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return JSON.parse(await textOf(response)) as Seen
  }

  test('gives connections of the current certificate, keeps them, and drops them with it [CRED-R21]', async () => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource({ clientCertificate: first })
    const agent = createAgent(lab.connect(server, { credentials }))
    const names: (string | undefined)[] = []
    for (let i = 0; i < 3; i++) names.push((await askBy(agent, server.url)).commonName)
    expect(server.connections()).toBe(1)
    credentials.rotate({ clientCertificate: second })
    names.push((await askBy(agent, server.url)).commonName)
    expect(names).toEqual(['user1', 'user1', 'user1', 'user2'])
    expect(server.connections()).toBe(2)
  })

  test('goes to no other server with the certificate', async () => {
    const server = await lab.serve(whoAmI)
    const other = await lab.serve(whoAmI)
    const credentials = new FakeSource({ clientCertificate: first })
    const agent = createAgent(lab.connect(server, { credentials }))
    await expect(askBy(agent, other.url)).rejects.toThrow(`connects to ${server.url} only`)
    expect(other.connections()).toBe(0)
  })
})
