import { once } from 'node:events'
import { connect, createServer, Server } from 'node:net'
import { expect, test } from 'vitest'
import { listenOnAll, portOf } from './listen.ts'

/** A server that cannot listen, for a reason that tests cannot bring about. */
class FailingServer extends Server {
  readonly #code: string

  constructor(code: string) {
    super()
    this.#code = code
  }

  override listen(): this {
    setImmediate(() => this.emit('error', Object.assign(new Error('no'), { code: this.#code })))
    return this
  }
}

test.each([
  [
    'EACCES',
    '127.0.0.1',
    'PORT_NOT_PERMITTED',
    'cannot listen on 127.0.0.1:443: this user may not use the port',
  ],
  ['EADDRINUSE', '::1', 'PORT_IN_USE', 'cannot listen on [::1]:443: the port is in use'],
  ['EMFILE', '127.0.0.1', 'LISTEN_FAILED', 'cannot listen on 127.0.0.1:443: EMFILE'],
])('%s becomes a sentence', async (code, host, failure, message) => {
  await expect(listenOnAll(() => new FailingServer(code), [{ host }], 443)).rejects.toMatchObject({
    code: failure,
    message,
  })
})

test('a port in use is said with the option that changes it', async () => {
  const address = { host: '::1', option: '--secure-port' }
  await expect(
    listenOnAll(() => new FailingServer('EADDRINUSE'), [address], 443),
  ).rejects.toMatchObject({
    hint: expect.stringMatching(/another port by --secure-port$/) as string,
  })
})

test('a machine without any of the addresses is an error, even if all are optional', async () => {
  const addresses = [{ host: '::1', optional: true }]
  await expect(
    listenOnAll(() => new FailingServer('EAFNOSUPPORT'), addresses, 0),
  ).rejects.toMatchObject({ code: 'ADDRESS_NOT_AVAILABLE' })
})

test('a free port that is taken on another address is given up for another one', async () => {
  const addresses = [{ host: '127.0.0.1' }, { host: '127.0.0.2' }]
  let made = 0
  const create = () => (++made === 2 ? new FailingServer('EADDRINUSE') : createServer())
  const servers = await listenOnAll(create, addresses, 0)
  const ports = servers.map(portOf)
  expect(ports[0]).toBeGreaterThan(0)
  expect(ports[1]).toBe(ports[0])
  expect(made).toBe(4)
  for (const server of servers) server.close()
})

test('0.0.0.0 and :: can share a port', async () => {
  const addresses = [{ host: '0.0.0.0' }, { host: '::', optional: true }]
  const servers = await listenOnAll(() => createServer((socket) => socket.end()), addresses, 0)
  const socket = connect(portOf(servers[0]!), '127.0.0.1').resume()
  await expect(once(socket, 'close')).resolves.toBeDefined()
  for (const server of servers) server.close()
})
