import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ConnectionGate, checkRequestSize, defaultRequestLimits, socketBucket } from './limits.ts'

describe('a request that is too large is refused [GND-R83]', () => {
  const { maxUrlLength, maxHeaderCount, maxHeaderBytes } = defaultRequestLimits
  test.each([
    ['URL', 414, { url: `/${'a'.repeat(maxUrlLength)}`, rawHeaders: [] }],
    ['headers by count', 431, { url: '/', rawHeaders: Array(2 * maxHeaderCount + 2).fill('a') }],
    ['headers by size', 431, { url: '/', rawHeaders: ['a', 'b'.repeat(maxHeaderBytes)] }],
  ])('%s: %i', (_name, httpCode, request) => {
    expect(() => checkRequestSize(request, defaultRequestLimits)).toThrow(
      expect.objectContaining({ httpCode }),
    )
  })

  test('one at the limit passes', () => {
    const request = {
      url: 'a'.repeat(maxUrlLength),
      rawHeaders: ['b'.repeat(maxHeaderBytes - 1), 'c'],
    }
    expect(() => checkRequestSize(request, defaultRequestLimits)).not.toThrow()
  })
})

test.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['fe80::1:2', 'fe80:0:0:0'],
  ['', ''],
])('the party behind address %s is %s', (address, bucket) => {
  expect(socketBucket(address)).toBe(bucket)
})

test('connections over the limit are dropped, and room comes back when one closes [GND-R83]', async () => {
  const gate = new ConnectionGate({ total: 10, perAddress: 2 })
  const server = createServer((socket) => {
    gate.admit(socket)
    if (!socket.destroyed) socket.write('welcome')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const open = () => connect(address.port, '127.0.0.1')
  const served = (socket: Socket) => Promise.race([once(socket, 'data'), once(socket, 'close')])

  const first = open()
  const second = open()
  await Promise.all([once(first, 'data'), once(second, 'data')])
  const third = open()
  await once(third, 'close')
  expect([gate.open, gate.dropped]).toEqual([2, 1])

  first.destroy()
  while (gate.open > 1) await new Promise((resolve) => setImmediate(resolve))
  const [greeting] = await served(open().on('error', () => {}))
  expect(String(greeting)).toBe('welcome')
  second.destroy()
  server.close()
})

describe('unauthenticated connections make room [SEC-R606]', () => {
  let port = 0
  const from = (remoteAddress: string): Socket => {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: ++port,
      destroyed: false,
      destroy: () => {
        socket.destroyed = true
        socket.emit('close')
      },
    })
    return socket as unknown as Socket
  }
  const admitted = (gate: ConnectionGate, count: number, address: string): Socket[] =>
    Array.from({ length: count }, () => {
      const socket = from(address)
      gate.admit(socket)
      return socket
    })
  const open = (sockets: readonly Socket[]): number =>
    sockets.filter(({ destroyed }) => !destroyed).length

  test('two addresses with all connections keep nobody out', () => {
    const gate = new ConnectionGate({ total: 100, perAddress: 50 })
    const flood = [...admitted(gate, 50, '10.0.0.1'), ...admitted(gate, 50, '10.0.0.2')]
    const [fresh] = admitted(gate, 1, '10.0.0.3')
    expect([fresh?.destroyed, open(flood), gate.unauthenticated]).toEqual([false, 24, 25])
  })

  test('the oldest connection of the address with most of them is closed', () => {
    const gate = new ConnectionGate({ total: 16, perAddress: 16 })
    const few = admitted(gate, 1, '10.0.0.1')
    const many = admitted(gate, 3, '10.0.0.2')
    admitted(gate, 1, '10.0.0.3')
    expect([open(few), many.map(({ destroyed }) => destroyed)]).toEqual([1, [true, false, false]])
  })

  test('one that has proven an identity is not closed for others', () => {
    const gate = new ConnectionGate({ total: 16, perAddress: 16 })
    const users = Array.from({ length: 10 }, () => {
      const [socket = from('')] = admitted(gate, 1, '10.0.0.1')
      gate.authenticated({ socket })
      return socket
    })
    const strangers = admitted(gate, 40, '10.0.0.2')
    expect([open(users), open(strangers), gate.open]).toEqual([10, 4, 14])
  })

  test('without any to close, what is too much is dropped', () => {
    const gate = new ConnectionGate({ total: 4, perAddress: 16 })
    for (let i = 0; i < 4; i++)
      for (const socket of admitted(gate, 1, '10.0.0.1')) gate.authenticated({ socket })
    expect(open(admitted(gate, 1, '10.0.0.2'))).toBe(0)
    expect([gate.open, gate.dropped]).toEqual([4, 1])
  })
})
