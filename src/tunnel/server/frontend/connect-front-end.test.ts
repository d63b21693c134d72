import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../core/index.ts'
import { portOf } from '../../ports/listen.ts'
import { FakeAgent, type FakeAgentOptions, fakeHub } from '../fake-agent.suite.ts'
import { ConnectFrontEnd, type ConnectFrontEndParts } from './http-connect.ts'

const established = 'HTTP/1.1 200 Connection Established\r\n\r\n'

/** A front end on a unix socket with one agent, and a client that writes what it likes. */
class Lab {
  readonly #closing: (() => unknown)[] = []
  readonly made = fakeHub({ dialTimeoutMs: 2_000 })
  agent: FakeAgent | undefined
  frontEnd!: ConnectFrontEnd
  #path = ''

  async open(agent?: FakeAgentOptions, parts: Partial<ConnectFrontEndParts> = {}): Promise<this> {
    const directory = await mkdtemp(join(tmpdir(), 'sallyport-connect-'))
    this.#closing.push(() => rm(directory, { recursive: true }))
    this.#path = join(directory, 'socket')
    const { hub, metrics } = this.made
    if (agent) {
      this.agent = new FakeAgent(agent)
      hub.attachAgent(this.agent)
    }
    this.frontEnd = new ConnectFrontEnd({
      hub,
      metrics,
      clock: systemClock,
      log: silentLogger,
      ...parts,
    })
    const server = this.frontEnd.cleartextServer().listen(this.#path)
    this.#closing.push(() => server.close())
    await once(server, 'listening')
    return this
  }

  /** A target that does `serve` with each connection. */
  async target(serve: (socket: Socket) => void): Promise<string> {
    const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      serve(socket)
    }).listen(0, '127.0.0.1')
    this.#closing.push(() => server.close())
    await once(server, 'listening')
    return `127.0.0.1:${portOf(server)}`
  }

  async client(request: string): Promise<Socket> {
    const socket = connect({ path: this.#path, allowHalfOpen: true })
    this.#closing.push(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(request)
    return socket
  }

  /** Sends a request and reads until the server closes. */
  async answerTo(request: string): Promise<string> {
    return textOf(await this.client(request))
  }

  async close(): Promise<void> {
    await this.made.hub.close()
    this.frontEnd.close()
    for (const close of this.#closing.toReversed()) await close()
  }
}

async function textOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('latin1')
}

async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, 'data')) as [Buffer]
  return chunk.toString('latin1')
}

const connectTo = (address: string): string =>
  `CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(async () => {
  await lab.close()
})

describe('a tunnel', () => {
  test('[TUN-W22] is dialled to the request-target, whatever the Host header says', async () => {
    await lab.open({})
    const address = await lab.target((socket) => socket.pipe(socket))
    const client = await lab.client(`CONNECT ${address} HTTP/1.1\r\nHost: 192.0.2.1:1\r\n\r\n`)
    expect(await nextText(client)).toBe(established)
    client.write('ping')
    expect(await nextText(client)).toBe('ping')
    expect(lab.agent?.dialled).toEqual([address])
    client.end()
    expect(await textOf(client)).toBe('')
    expect(lab.made.hub.established).toBe(0)
  })

  test('[TUN-W23] of a target that speaks first begins with nothing but the answer', async () => {
    await lab.open({})
    const address = await lab.target((socket) => socket.write('220 welcome\r\n'))
    const client = await lab.client(connectTo(address))
    expect(await nextText(client)).toBe(established)
    expect(await nextText(client)).toBe('220 welcome\r\n')
  })

  test('keeps bytes that the client sent along with its request', async () => {
    await lab.open({})
    const address = await lab.target((socket) => socket.pipe(socket))
    const client = await lab.client(`${connectTo(address)}early`)
    expect(await nextText(client)).toBe(established)
    expect(await nextText(client)).toBe('early')
  })

  test('carries the end of one direction and lets the other go on', async () => {
    await lab.open({})
    const address = await lab.target((socket) => {
      let heard = ''
      socket.on('data', (chunk) => {
        heard += String(chunk)
      })
      socket.on('end', () => socket.end(`heard ${heard}`))
    })
    const client = await lab.client(connectTo(address))
    expect(await nextText(client)).toBe(established)
    client.end('last words')
    expect(await textOf(client)).toBe('heard last words')
  })

  test('delivers everything before the close of a target that answers and goes', async () => {
    await lab.open({})
    const body = 'x'.repeat(300_000)
    const address = await lab.target((socket) => socket.end(body))
    const client = await lab.client(connectTo(address))
    const text = await textOf(client)
    expect(text.startsWith(established)).toBe(true)
    expect(text.length - established.length).toBe(body.length)
    client.end()
  })

  test('[TUN-U7] ends at once when its agent is lost', async () => {
    await lab.open({})
    const address = await lab.target(() => {})
    const client = await lab.client(connectTo(address))
    expect(await nextText(client)).toBe(established)
    client.on('error', () => {})
    lab.agent?.lose()
    await once(client.resume(), 'end')
    client.end()
    await expect.poll(() => lab.frontEnd.connectionCount).toBe(0)
    expect(lab.made.hub.established).toBe(0)
  })
})

test('[SEC-R701] requests in a row on one connection cause one response', async () => {
  await lab.open()
  for (const line of [
    'GET / HTTP/1.1',
    'CONNECT x HTTP/1.1',
    `CONNECT ${'x'.repeat(9_000)}:1 HTTP/1.1`,
  ]) {
    const answer = await lab.answerTo(`${line}\r\n\r\n`.repeat(100))
    expect(answer.split('HTTP/1.1 ').length - 1).toBe(1)
    expect(answer).not.toMatch(/x{101}/)
  }
})

describe('a dial that fails is answered with its status and reason', () => {
  test.each<[string, FakeAgentOptions | undefined, number, string]>([
    ['without an agent', undefined, 500, 'currently no tunnels available: No agent available\n'],
    ['refused', { refusal: 'dial tcp: connection refused' }, 502, 'connection refused\n'],
    ['no such host', { refusal: 'lookup x: no such host' }, 502, 'no such host\n'],
    ['too slow', { refusal: 'dial tcp 198.18.0.254:1234: i/o timeout' }, 504, 'i/o timeout\n'],
    ['past its deadline', { refusal: 'context deadline exceeded' }, 504, 'deadline exceeded\n'],
    ['out of files', { refusal: 'socket: too many open files' }, 503, 'too many open files\n'],
  ])('[TUN-W24] %s', async (_name, agent, status, body) => {
    await lab.open(agent)
    const text = await lab.answerTo(connectTo('127.0.0.1:1'))
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(text).toContain('\r\nContent-Type: text/plain')
    expect(text.endsWith(body)).toBe(true)
    expect(lab.made.hub.pendingDials).toBe(0)
  })

  test('[TUN-W24, TUN-U10] without an answer of the agent', async () => {
    lab = new (class extends Lab {
      override readonly made = fakeHub({ dialTimeoutMs: 20 })
    })()
    await lab.open({ isSilent: true })
    expect(await lab.answerTo(connectTo('127.0.0.1:1'))).toMatch(/^HTTP\/1.1 504 /)
  })

  test('[TUN-W24] with an agent that is lost meanwhile', async () => {
    await lab.open({ isSilent: true })
    const client = await lab.client(connectTo('127.0.0.1:1'))
    const answer = textOf(client)
    await expect.poll(() => lab.agent?.pendingDialCount).toBe(1)
    lab.agent?.lose()
    expect(await answer).toMatch(/^HTTP\/1.1 502 /)
  })

  test('[TUN-W24] to a port that nobody serves', async () => {
    await lab.open({})
    const text = await lab.answerTo(connectTo('127.0.0.1:1'))
    expect(text).toMatch(/^HTTP\/1.1 502 /)
    expect(text).toContain('ECONNREFUSED')
  })
})

describe('what is no good request', () => {
  test('[TUN-W24] another method gets 405', async () => {
    await lab.open({})
    expect(await lab.answerTo('GET / HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1.1 405 /)
  })

  test.each([
    ['no port', 'host'],
    ['a path', '/etc/passwd:1'],
    ['a URL', 'http://host:1'],
    ['an empty host', ':443'],
    ['a port beyond all ports', 'host:65536'],
    ['a bare IPv6 address', 'fd00::1:443'],
    ['credentials', 'user@host:443'],
    ['a header trick', 'host%0d%0aX:443'],
  ])('a target with %s gets 400 and no dial', async (_name, target) => {
    await lab.open({})
    expect(await lab.answerTo(connectTo(target))).toMatch(/^HTTP\/1.1 400 /)
    expect(lab.agent?.dialled).toEqual([])
  })

  test.each([
    ['what is not HTTP', '\x16\x03\x01\x02\x00garbage\r\n\r\n', 400],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['an endless request line', `CONNECT ${'a'.repeat(40_000)}:1 HTTP/1.1\r\n\r\n`, 431],
    ['an endless header', `CONNECT a:1 HTTP/1.1\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
  ])('%s is refused', async (_name, request, status) => {
    await lab.open({})
    const text = await lab.answerTo(request)
    expect(text === '' || text.startsWith(`HTTP/1.1 ${status} `)).toBe(true)
    expect(lab.agent?.dialled).toEqual([])
  })

  test('a client that takes too long for its headers is cut', async () => {
    await lab.open({}, { headerTimeoutMs: 400 })
    const client = await lab.client('CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost:')
    await once(client.resume(), 'end')
    expect(lab.agent?.dialled).toEqual([])
  })
})

test('the time for headers does not count for a tunnel that stands', async () => {
  await lab.open({}, { headerTimeoutMs: 400 })
  const client = await lab.client(connectTo(await lab.target((socket) => socket.pipe(socket))))
  expect(await nextText(client)).toBe(established)
  // Two slow clients, one after the other: when the second is cut, the tunnel is far older than 400 ms.
  for (const _round of [1, 2]) await once((await lab.client('CONNECT')).resume(), 'end')
  client.write('still here')
  expect(await nextText(client)).toBe('still here')
})

test('[TUN-U15] a client that goes away while its dial is pending ends the dial', async () => {
  await lab.open({ isSilent: true })
  const client = await lab.client(connectTo('127.0.0.1:1'))
  await expect.poll(() => lab.agent?.pendingDialCount).toBe(1)
  client.destroy()
  await expect.poll(() => lab.agent?.pendingDialCount).toBe(0)
  await expect.poll(() => lab.frontEnd.connectionCount).toBe(0)
  expect(lab.made.registry.expose()).toContain('dial_failure_count{reason="frontend_close"} 1\n')
})
