import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsProxy } from 'node:https'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from 'node:net'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { parseServers } from './addresses.ts'
import { chooseProxy } from './outbound-proxy.ts'
import {
  ask,
  FakeSource,
  get,
  type LabServer,
  type Seen,
  TransportLab,
  tokenCredential,
  whoAmI,
} from './transport-lab.suite.ts'

let lab: TransportLab
beforeAll(async () => {
  lab = await TransportLab.open()
})
afterEach(() => lab.clear())

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => void sockets.add(socket))
  lab.own({
    destroy: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A proxy that connects and keeps what it was told. */
function tunnelling(seen: IncomingMessage[], status = 200) {
  return (request: IncomingMessage, client: Duplex) => {
    seen.push(request)
    client.on('error', () => {})
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\n\r\n`)
      return
    }
    const [host, port] = String(request.url).split(':')
    const target = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(target).pipe(client)
    })
    target.on('error', () => client.destroy())
  }
}

const credentials = () => new FakeSource(tokenCredential('t0k3n'))

describe.each(['http', 'https'])('an %s proxy [CRED-K11, CRED-S10]', (scheme) => {
  async function proxy(seen: IncomingMessage[], status?: number): Promise<string> {
    const { certPem, keyPem } = await lab.serving()
    const server =
      scheme === 'http' ? createServer() : createTlsProxy({ cert: certPem, key: keyPem.reveal() })
    server.on('connect', tunnelling(seen, status))
    return `${scheme}://me:hunter2@127.0.0.1:${await listen(server)}`
  }

  test('connects us, gets its own log-in and never ours', async () => {
    const seen: IncomingMessage[] = []
    const server = await lab.serve(whoAmI)
    const proxyUrl = await proxy(seen)
    const certificate = await lab.certificate('user1')
    const source = new FakeSource({ ...tokenCredential('t0k3n'), clientCertificate: certificate })
    const transport = lab.transport(server, { credentials: source, proxyUrl })
    const got = [await ask<Seen>(transport), await ask<Seen>(transport)]
    expect(got[1]).toMatchObject({ authorization: 'Bearer t0k3n', commonName: 'user1' })
    expect(seen).toHaveLength(1)
    expect(seen[0]!.url).toBe(server.url.slice('https://'.length))
    expect(seen[0]!.headers).toEqual({
      host: server.url.slice('https://'.length),
      connection: 'close',
      'proxy-authorization': `Basic ${Buffer.from('me:hunter2').toString('base64')}`,
    })
  })

  test('that refuses is named in the failure, without its password', async () => {
    const server = await lab.serve(whoAmI)
    const proxyUrl = await proxy([], 407)
    const attempt = ask(lab.transport(server, { credentials: credentials(), proxyUrl }))
    const error: unknown = await attempt.catch((caught: unknown) => caught)
    expect(inspect(error)).toContain(`the proxy ${scheme}://127.0.0.1:`)
    expect(inspect(error)).toContain('407')
    expect(inspect(error, { depth: 9 })).not.toMatch(/hunter2|t0k3n/)
  })
})

/** A small SOCKS5 server that takes one user name and password, or none. */
async function socks5(log: string[], answer = 0): Promise<number> {
  const exactly = async (socket: Socket, size: number): Promise<Buffer> => {
    for (;;) {
      const bytes = socket.read(size) as Buffer | null
      if (bytes) return bytes
      await once(socket, 'readable')
    }
  }
  const talk = async (socket: Socket): Promise<void> => {
    const [, count = 0] = await exactly(socket, 2)
    const methods = await exactly(socket, count)
    const method = methods.includes(2) ? 2 : 0
    socket.write(Buffer.from([5, method]))
    if (method === 2) {
      const [, userLength = 0] = await exactly(socket, 2)
      const user = await exactly(socket, userLength)
      const [passLength = 0] = await exactly(socket, 1)
      log.push(`${String(user)}:${String(await exactly(socket, passLength))}`)
      socket.write(Buffer.from([1, 0]))
    }
    const [, , , type] = await exactly(socket, 4)
    const [length = 0] = type === 3 ? await exactly(socket, 1) : [type === 1 ? 4 : 16]
    const host = await exactly(socket, length)
    const port = (await exactly(socket, 2)).readUInt16BE()
    log.push(`${type} ${type === 3 ? String(host) : host.join('.')}`)
    socket.write(Buffer.from([5, answer, 0, 1, 0, 0, 0, 0, 0, 0]))
    if (answer !== 0) return
    const target = connect(port, '127.0.0.1').on('error', () => socket.destroy())
    socket.pipe(target).pipe(socket)
  }
  return listen(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      talk(socket).catch(() => socket.destroy())
    }),
  )
}

describe('a socks5 proxy [CRED-K11]', () => {
  const through = (server: LabServer, proxyUrl: string) =>
    lab.transport(server, { credentials: credentials(), proxyUrl })

  test('connects us by address, with its log-in', async () => {
    const log: string[] = []
    const server = await lab.serve(whoAmI)
    const port = await socks5(log)
    const seen = await ask<Seen>(through(server, `socks5://me:hunter2@127.0.0.1:${port}`))
    expect(seen.authorization).toBe('Bearer t0k3n')
    expect(log).toEqual(['me:hunter2', '1 127.0.0.1'])
  })

  test('looks up names for us', async () => {
    const log: string[] = []
    const server = await lab.serve(whoAmI)
    const proxyUrl = `socks5h://127.0.0.1:${await socks5(log)}`
    const servers = `https://localhost:${server.port}`
    await ask(lab.transport(server, { servers, proxyUrl }))
    expect(log).toEqual(['3 localhost'])
  })

  test('that refuses says why', async () => {
    const server = await lab.serve(whoAmI)
    const port = await socks5([], 2)
    const attempt = through(server, `socks5://127.0.0.1:${port}`).send(get('/'))
    await expect(attempt).rejects.toThrow(/does not connect us: not allowed by its rules/)
  })
})

describe('the choice of a proxy [CRED-K11]', () => {
  const name = (server: string, options: Parameters<typeof chooseProxy>[1]) => {
    const proxy = chooseProxy(parseServers([server])[0], options)
    return proxy && `${proxy.kind}://${proxy.host}:${proxy.port}`
  }
  const env = { HTTPS_PROXY: 'http://p:3128', HTTP_PROXY: 'plain:80' }

  test.each([
    ['of the cluster goes first', 'https://a', { proxyUrl: 'socks5://s', env }, 'socks5://s:1080'],
    ['of the environment follows', 'https://a', { env }, 'http://p:3128'],
    ['in lower case counts', 'https://a', { env: { https_proxy: 'p' } }, 'http://p:80'],
    ['is by scheme', 'http://a', { env }, 'http://plain:80'],
    ['may be none', 'https://a', { env: {} }, undefined],
    ['is none for this machine', 'https://localhost:6443', { env }, undefined],
    ['is none for 127.0.0.2', 'https://127.0.0.2', { env }, undefined],
    ['is none for ::1', 'https://[::1]', { env }, undefined],
  ])('%s', (_, server, options, expected) => {
    expect(name(server, options)).toBe(expected)
  })

  test.each([
    ['*', 'https://a.example', false],
    ['example.com', 'https://example.com', false],
    ['example.com', 'https://api.example.com', false],
    ['example.com', 'https://badexample.com', true],
    ['.example.com', 'https://example.com', true],
    ['.example.com', 'https://api.example.com', false],
    ['*.example.com', 'https://api.example.com', false],
    ['EXAMPLE.com', 'https://Api.Example.COM', false],
    ['example.com:6443', 'https://example.com:6443', false],
    ['example.com:6443', 'https://example.com', true],
    ['10.0.0.0/8', 'https://10.1.2.3', false],
    ['10.0.0.0/8', 'https://11.1.2.3', true],
    ['10.0.0.0/8', 'https://ten.example', true],
    ['10.0.0.0/99', 'https://10.1.2.3', true],
    ['fd00::/8', 'https://[fd00::1]', false],
    ['10.1.2.3', 'https://10.1.2.3', false],
    ['10.1.2.3', 'https://10.1.2.34', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', false],
    ['a, ,b', 'https://b', false],
    ['', 'https://b', true],
  ])('NO_PROXY=%j and %s: through the proxy %s', (noProxy, server, proxied) => {
    expect(name(server, { env: { ...env, NO_PROXY: noProxy } }) !== undefined).toBe(proxied)
  })

  test.each(['ftp://me:hunter2@x', 'hunter2', 'http://'])(
    '%j is refused and not repeated',
    (url) => {
      const attempt = () => name('https://a', { proxyUrl: url })
      expect(attempt).toThrow(/^proxy-url must be an http, https or socks5 URL$/)
    },
  )

  test.each(['http://%zz:pw@proxy', 'http://user:%e4@proxy'])(
    '%j, whose log-in is malformed, is refused and not repeated',
    (url) => {
      const attempt = () => name('https://a', { proxyUrl: url })
      expect(attempt).toThrow(/^proxy-url has a malformed user name or password$/)
    },
  )
})
