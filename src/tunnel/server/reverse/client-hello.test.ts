import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { portOf } from '../../ports/listen.ts'
import { readClientHello } from './client-hello.ts'

/** The first bytes that a real TLS client sends. */
async function realHello(servername: string | undefined): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connectTls({
    host: '127.0.0.1',
    port: portOf(server),
    rejectUnauthorized: false,
    ...(servername !== undefined && { servername }),
  })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  client.destroy()
  server.close()
  return hello
}

describe('a ClientHello', () => {
  test('says which server it is for', async () => {
    const hello = await realHello('API.Example.com')
    expect(readClientHello(hello)).toEqual({ state: 'hello', serverName: 'api.example.com' })
  })

  test('may ask for nobody', async () => {
    expect(readClientHello(await realHello(undefined))).toEqual({ state: 'hello' })
  })

  test('is not complete before its last byte, and may come in any parts', async () => {
    const hello = await realHello('a.example')
    for (let length = 0; length < hello.length; length++) {
      expect(readClientHello(hello.subarray(0, length)).state).toBe('incomplete')
    }
    expect(readClientHello(Buffer.concat([hello, hello])).state).toBe('hello')
  })

  test('may be spread over several records', async () => {
    const hello = await realHello('a.example')
    const body = hello.subarray(5)
    const records = [body.subarray(0, 3), body.subarray(3, 50), body.subarray(50)].map((part) => {
      const header = Buffer.from([22, 3, 1, part.length >> 8, part.length & 255])
      return Buffer.concat([header, part])
    })
    expect(readClientHello(Buffer.concat(records))).toEqual({
      state: 'hello',
      serverName: 'a.example',
    })
  })
})

test.each([
  ['HTTP', Buffer.from('GET / HTTP/1.1\r\n')],
  ['SSH', Buffer.from('SSH-2.0-x')],
  ['an alert', Buffer.from([21, 3, 3, 0, 2, 1, 0])],
  ['a ServerHello', Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
  ['a record of no length', Buffer.from([22, 3, 1, 0, 0])],
  ['a record beyond all sizes', Buffer.from([22, 3, 1, 0xff, 0xff])],
  ['SSL 2', Buffer.from([0x80, 0x2e, 1, 3, 1])],
])('%s is no ClientHello', (_name, bytes) => {
  expect(readClientHello(bytes).state).toBe('not-tls')
})

test('no bytes at all make the reader fail', async () => {
  const hello = await realHello('a.example')
  const states = ['incomplete', 'not-tls', 'hello']
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
      expect(states).toContain(readClientHello(Buffer.from(bytes)).state)
    }),
  )
  fc.assert(
    fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, value) => {
      const broken = Buffer.from(hello)
      broken[at] = value
      expect(states).toContain(readClientHello(broken).state)
    }),
  )
})
