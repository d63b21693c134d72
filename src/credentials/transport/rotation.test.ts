import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import type { ClientCertificate } from '../credential.ts'
import { ConnectionFailed } from './errors.ts'
import {
  ask,
  FakeSource,
  get,
  type Seen,
  seenIn,
  TransportLab,
  textOf,
  whoAmI,
} from './transport-lab.suite.ts'

let lab: TransportLab
let first: ClientCertificate
let second: ClientCertificate
beforeAll(async () => {
  lab = await TransportLab.open()
  first = await lab.certificate('user1')
  second = await lab.certificate('user2')
})
afterEach(() => lab.clear())

const protocols = ['1.1', '2'] as const

describe.each(protocols)('over HTTP %s', (http) => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'requests after a rotation prove the new certificate, and no %s session is resumed [CRED-R21, CRED-S11, CRED-S12]',
    async (version) => {
      const server = await lab.serve(whoAmI, { minVersion: version, maxVersion: version })
      const credentials = new FakeSource({ clientCertificate: first })
      const transport = lab.transport(server, { credentials, http })
      const seen: Seen[] = [await ask(transport), await ask(transport)]
      credentials.rotate({ clientCertificate: second })
      seen.push(await ask(transport), await ask(transport))
      credentials.rotate({ clientCertificate: first })
      seen.push(await ask(transport))
      expect(seen.map((each) => each.commonName)).toEqual([
        'user1',
        'user1',
        'user2',
        'user2',
        'user1',
      ])
      expect(seen.map((each) => each.sessionReused)).not.toContain(true)
      expect(server.connections()).toBe(3)
    },
  )

  test('idle connections of the old certificate are closed at once, also with a grace period [CRED-S12]', async () => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http, graceMs: 60_000 })
    await ask(transport)
    const [old] = server.sockets
    credentials.rotate({ clientCertificate: second })
    await once(old!, 'close')
    expect(server.sockets.size).toBe(0)
  })

  test('open watches of the old certificate are cut, and say so by an error [CRED-R21, CRED-C9]', async () => {
    const server = await lab.serve((_, response) => void response.write('{}\n'))
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http })
    const watches = await Promise.all(
      Array.from({ length: 5 }, () => transport.send(get('/pods?watch=true'))),
    )
    const ends = Promise.allSettled(watches.map(({ body }) => textOf(body)))
    credentials.rotate({ clientCertificate: second })
    expect((await ends).map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
    expect(server.connections()).toBe(http === '1.1' ? 5 : 1)
  })

  test('with a grace period a request of the old certificate may end, and its connection ends with it [CRED-C9]', async () => {
    const open: ServerResponse[] = []
    const server = await lab.serve((request, response) => {
      response.write(seenIn(request).commonName)
      open.push(response)
    })
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http, graceMs: 60_000 })
    const before = await transport.send(get('/'))
    credentials.rotate({ clientCertificate: second })
    const after = await transport.send(get('/'))
    const [old] = server.sockets
    for (const response of open) response.end('.')
    expect(await textOf(before.body)).toBe('user1.')
    expect(await textOf(after.body)).toBe('user2.')
    if (!old!.destroyed) await once(old!, 'close')
    expect(server.sockets.size).toBe(1)
  })

  test('when the grace period is over, what is left is cut [CRED-C9]', async () => {
    const server = await lab.serve((_, response) => void response.write('begun'))
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http, graceMs: 20 })
    const { body } = await transport.send(get('/'))
    credentials.rotate({ clientCertificate: second })
    await expect(textOf(body)).rejects.toThrow('aborted')
  })

  test('rotation of a token alone closes nothing [CRED-C9]', async () => {
    const server = await lab.serve(whoAmI)
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http })
    await ask(transport)
    credentials.rotate({ clientCertificate: { ...first }, token: new Secret('t2') })
    expect(await ask<Seen>(transport)).toMatchObject({
      commonName: 'user1',
      authorization: 'Bearer t2',
    })
    expect(server.connections()).toBe(1)
  })

  test('a read that a rotation cuts before its answer goes again with the new certificate; a write does not [CRED-R21]', async () => {
    const waiting: (() => void)[] = []
    const server = await lab.serve((request, response) => {
      if (seenIn(request).commonName === 'user2') whoAmI(request, response)
      else waiting.shift()?.()
    })
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http })
    const arrived = Promise.all(
      [0, 1].map(() => new Promise<void>((resolve) => void waiting.push(resolve))),
    )
    const read = ask<Seen>(transport)
    const write = transport.send({ ...get('/'), method: 'POST', body: Buffer.from('{}') })
    await arrived
    credentials.rotate({ clientCertificate: second })
    await expect(write).rejects.toThrow(ConnectionFailed)
    expect((await read).commonName).toBe('user2')
  })

  test('a request that waits for its connection while the certificate rotates is sent once, as the new one [CRED-S12]', async () => {
    const bodies: string[] = []
    const server = await lab.serve((request, response) => {
      bodies.push(String(seenIn(request).commonName))
      response.end()
    })
    const credentials = new FakeSource({ clientCertificate: first })
    const transport = lab.transport(server, { credentials, http })
    const write = transport.send({ ...get('/'), method: 'POST', body: Buffer.from('{}') })
    await Promise.resolve()
    credentials.rotate({ clientCertificate: second })
    expect((await write).status).toBe(200)
    expect(bodies).toEqual(['user2'])
  })
})

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a resumed %s session would keep the old identity, which is why none is offered [CRED-S11]',
  async (version) => {
    const server = await lab.serve(whoAmI, {
      minVersion: version,
      maxVersion: version,
      http1Only: true,
    })
    const shake = async (certificate: ClientCertificate, session?: Buffer) => {
      const socket = connect({
        port: server.port,
        host: '127.0.0.1',
        ca: lab.caPem,
        cert: certificate.certPem,
        key: certificate.keyPem.reveal(),
        ...(session && { session }),
      })
      const made = once(socket, 'session') as Promise<[Buffer]>
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
      const answer = String((await once(socket, 'data'))[0])
      const ticket = session ? Buffer.of() : (await made)[0]
      socket.destroy()
      return { answer, ticket }
    }
    const { ticket } = await shake(first)
    const { answer } = await shake(second, ticket)
    expect(answer).toContain('"commonName":"user1"')
    expect(answer).toContain('"sessionReused":true')
  },
)

test('a certificate of the source that cannot be used is refused, without a word of the key', async () => {
  const server = await lab.serve(whoAmI)
  const credentials = new FakeSource({ clientCertificate: { ...first, certPem: 'x' } })
  await expect(ask(lab.transport(server, { credentials }))).rejects.toMatchObject({
    code: 'CLIENT_CONFIG_INVALID',
  })
})

test('when the authorities change, idle connections are closed and the new ones believe the new authorities [CRED-K8]', async () => {
  const server = await lab.serve(whoAmI)
  const trust = lab.trust()
  const transport = lab.transport(server, { tls: { trust } })
  await ask(transport)
  const [old] = server.sockets as Set<TLSSocket>
  trust.change((await TransportLab.open()).caPem)
  await once(old!, 'close')
  await expect(ask(transport)).rejects.toThrow(ConnectionFailed)
})

test('connections that are destroyed leave no socket and no listener behind', async () => {
  const server = await lab.serve((_, response) => void response.write('x'))
  const credentials = new FakeSource({ clientCertificate: first })
  const transport = lab.transport(server, { credentials, graceMs: 60_000 })
  await transport.send(get('/'))
  credentials.rotate({ clientCertificate: second })
  await transport.send(get('/'))
  const gone = [...server.sockets].map((socket) => once(socket, 'close'))
  transport.destroy()
  await Promise.all(gone)
  expect(credentials.listeners).toBe(0)
  await expect(transport.send(get('/'))).rejects.toThrow(/closed by their owner/)
})
