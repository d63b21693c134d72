import { once } from 'node:events'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createPlainTlsServer } from 'node:tls'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import {
  type CertificateAuthority,
  peerCertificates,
  verifyClientCertificate,
} from '../pki/index.ts'
import { echo, get, labAuthority, labClient, labMaterial, TlsLab, textOf } from './tls-lab.suite.ts'
import type { TlsMaterial } from './tls-server.ts'
import { createTlsServer, type RequestHandler } from './tls-server.ts'

let ca: CertificateAuthority
let material: TlsMaterial
let lab: TlsLab
beforeAll(async () => {
  ca = await labAuthority()
  material = await labMaterial(ca)
})
beforeEach(() => {
  lab = new TlsLab(ca, material)
})
afterEach(() => lab.close())

describe('one port', () => {
  test('answers HTTP/1.1 and HTTP/2', async () => {
    const { port } = await lab.serve({ http2: true, onRequest: echo })
    expect((await lab.fetch(port, { path: '/a' })).text).toBe('1.1 /a')
    expect(await get(lab.http2(port), '/b')).toBe('2.0 /b')
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('speaks %s', async (version) => {
    const { port } = await lab.serve({ onRequest: echo })
    const socket = await lab.connect(port, { minVersion: version, maxVersion: version })
    expect(socket.getProtocol()).toBe(version)
  })

  test('does not speak TLS 1.1', async () => {
    const { port } = await lab.serve({ onRequest: echo })
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
    await expect(lab.connect(port, old)).rejects.toThrow(/protocol version/i)
  })

  test('hands over connections that ask for another protocol', async () => {
    const { port } = await lab.serve({
      onRequest: echo,
      onUpgrade: (request, socket, head) => {
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n\r\n${request.url} ${head.toString()}`)
        socket.pipe(socket)
      },
    })
    const socket = await lab.connect(port)
    socket.write('GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhead')
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1.1 101 .*\/up head$/s)
    socket.write('ping')
    const [pong] = await once(socket, 'data')
    expect(String(pong)).toBe('ping')
  })

  test.each([
    ['in one packet with a request before it', true],
    ['whose handler throws', false],
  ])('outlives an upgrade %s [ADDON-X15]', async (_what, isBehind) => {
    const upgrades: string[] = []
    const { port } = await lab.serve({
      onRequest: () => {},
      onUpgrade: (request) => {
        upgrades.push(request.url ?? '')
        throw new Error('a bug')
      },
    })
    const socket = await lab.connect(port)
    const first = 'GET /first HTTP/1.1\r\nHost: a\r\n\r\n'
    const second = 'GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {}).resume()
    socket.write(isBehind ? first + second : second)
    await closed
    expect(upgrades).toEqual(isBehind ? [] : ['/up'])
  })

  test('outlives an upgraded connection that is reset', async () => {
    let upgraded: Duplex | undefined
    const { port } = await lab.serve({
      onRequest: echo,
      onUpgrade: (_request, socket) => {
        upgraded = socket
        socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
      },
    })
    const socket = await lab.connect(port)
    socket.write('GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    await once(socket, 'data')
    const closed = new Promise((resolve) => upgraded?.once('close', resolve))
    upgraded?.destroy(new Error('connection reset'))
    await closed
    expect((await lab.fetch(port)).status).toBe(200)
  })

  test('outlives a handler that throws', async () => {
    const { port } = await lab.serve({
      onRequest: (request, response) => {
        if (request.url === '/bad') throw new Error('a bug')
        response.end('fine')
      },
    })
    await expect(lab.fetch(port, { path: '/bad' })).rejects.toThrow('socket hang up')
    expect((await lab.fetch(port)).text).toBe('fine')
  })
})

describe('client certificates', () => {
  const whoami: RequestHandler = (request, response) => {
    const chain = peerCertificates(request.socket)
    const name = chain.length
      ? verifyClientCertificate(chain, [ca.certificate], Date.now()).commonName
      : 'nobody'
    response.end(name)
  }

  test('are optional, and reach the handler on both protocols [GND-R72]', async () => {
    const { port } = await lab.serve({ http2: true, onRequest: whoami })
    const jane = await labClient(ca, 'jane')
    expect((await lab.fetch(port, jane)).text).toBe('jane')
    expect(await get(lab.http2(port, jane), '/')).toBe('jane')
    expect((await lab.fetch(port)).text).toBe('nobody')
    expect(await get(lab.http2(port), '/')).toBe('nobody')
  })

  test('of an unknown CA get through the handshake, and are seen for what they are', async () => {
    let seen: unknown
    const { port } = await lab.serve({
      onRequest: (request, response) => {
        try {
          whoami(request, response)
        } catch (error) {
          seen = error
          response.end('refused')
        }
      },
    })
    const stranger = await labClient(await labAuthority('stranger'), 'system:admin')
    expect((await lab.fetch(port, stranger)).text).toBe('refused')
    expect(seen).toMatchObject({ why: 'UNKNOWN_AUTHORITY' })
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'are asked for on every connection: a session of %s is never resumed [GND-R72]',
    async (version) => {
      const { port } = await lab.serve({ onRequest: echo })
      const jane = await labClient(ca, 'jane')
      expect(await resumes(port, { ...jane, minVersion: version, maxVersion: version })).toBe(false)
    },
  )

  test('and a server with default settings would resume, so that test can fail', async () => {
    const server = createPlainTlsServer(
      { cert: material.certPem, key: material.keyPem.reveal() },
      (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    expect(await resumes(port, {})).toBe(true)
    server.close()
  })

  async function resumes(port: number, options: object): Promise<boolean> {
    const visit = async (old?: Buffer): Promise<{ reused: boolean; session: Buffer }> => {
      const socket = await lab.connect(port, { ...options, ...(old && { session: old }) })
      const reused = socket.isSessionReused()
      let latest = socket.getSession()
      socket.on('session', (data) => (latest = data))
      socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
      await textOf(socket)
      return { reused, session: latest ?? Buffer.alloc(0) }
    }
    const first = await visit()
    return (await visit(first.session)).reused
  }
})

describe('listening', () => {
  const create = () => createTlsServer({ material, log: silentLogger, onRequest: echo })

  test('happens on several addresses at one port', async () => {
    const server = create()
    const port = await server.listen([{ host: '127.0.0.1' }, { host: '127.0.0.2' }], 0)
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      const { status } = await lab.fetch(port, { host, checkServerIdentity: () => undefined })
      expect(status).toBe(200)
    }
    await server.stop(AbortSignal.abort())
  })

  test('leaves out an optional address that the machine does not have', async () => {
    const server = create()
    const missing = { host: '192.0.2.1', optional: true }
    const port = await server.listen([missing, { host: '127.0.0.1' }], 0)
    expect((await lab.fetch(port)).status).toBe(200)
    await server.stop(AbortSignal.abort())
  })

  test.each([
    [
      'an address that the machine does not have',
      '192.0.2.1',
      'ADDRESS_NOT_AVAILABLE',
      /192\.0\.2\.1:0/,
    ],
    [
      'a name that does not exist',
      'no.such.name.invalid',
      'ADDRESS_NOT_AVAILABLE',
      /no\.such\.name\.invalid:0/,
    ],
  ])('on %s fails with a sentence', async (_name, host, code, message) => {
    await expect(create().listen([{ host }], 0)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
  })

  test('on a port in use names the address, the port and the way out, and leaves nothing open', async () => {
    const other = createTcpServer()
    await once(other.listen(0, '127.0.0.2'), 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address ? address.port : 0
    await expect(
      create().listen([{ host: '127.0.0.1' }, { host: '127.0.0.2' }], port),
    ).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      message: `cannot listen on 127.0.0.2:${port}: the port is in use`,
      hint: expect.stringContaining('choose another port'),
    })
    const [error] = await once(connectTcp(port, '127.0.0.1'), 'error')
    expect(error).toMatchObject({ code: 'ECONNREFUSED' })
    other.close()
  })
})

test('another certificate is shown to new connections, and open ones stay [GND-R41]', async () => {
  const { server, port } = await lab.serve({ http2: true, onRequest: echo })
  const session = lab.http2(port)
  expect(await get(session, '/1')).toBe('2.0 /1')
  server.setSecureContext(await labMaterial(ca, 'renewed'))
  const socket = await lab.connect(port)
  expect(socket.getPeerCertificate().subject.CN).toBe('renewed')
  expect(await get(session, '/2')).toBe('2.0 /2')
  const jane = await labClient(ca, 'jane')
  expect((await lab.fetch(port, jane)).status).toBe(200)
})
