import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { wellKnown } from '../../core/index.ts'
import { ConnectionGate } from './connection-gate.ts'

test('the oldest connection over the limit of an address is closed [GND-R83]', async () => {
  const gate = new ConnectionGate({ total: 10, perAddress: 2 })
  const server = createServer((socket) => {
    gate.admit(socket)
    socket.write('welcome')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const opened = async (): Promise<Socket> => {
    const socket = connect(address.port, '127.0.0.1')
    await once(socket, 'data')
    return socket
  }
  const first = await opened()
  const closed = once(first, 'close')
  const others = [await opened(), await opened()]
  await closed
  expect([gate.open, gate.dropped]).toEqual([2, 1])
  for (const socket of others) socket.destroy()
  while (gate.open > 0) await new Promise((resolve) => setImmediate(resolve))
  server.close()
})

let port = 0
function from(remoteAddress: string): Socket {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress,
    remotePort: ++port,
    localAddress: '10.0.0.99',
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
const as = (username: string, ...groups: string[]) => ({ user: { username, groups } })
const admin = as('root', wellKnown.masters)
/** Connections that have proven who they are, one after the other. */
const proven = (gate: ConnectionGate, count: number, address: string, who = as('ann')): Socket[] =>
  Array.from({ length: count }, () => {
    const [socket = from('')] = admitted(gate, 1, address)
    if (!socket.destroyed) gate.authenticated({ socket }, who)
    return socket
  })
const open = (sockets: readonly Socket[]): number =>
  sockets.filter(({ destroyed }) => !destroyed).length

describe('unauthenticated connections make room [SEC-R606]', () => {
  test('two addresses with all connections keep no client out', () => {
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
    const users = proven(gate, 10, '10.0.0.1')
    const strangers = admitted(gate, 40, '10.0.0.2')
    expect([open(users), open(strangers), gate.open]).toEqual([10, 4, 14])
  })

  test('an address with all of its connections keeps out no other client of it', () => {
    const gate = new ConnectionGate({ total: 1_000, perAddress: 20 })
    const users = proven(gate, 5, '10.0.0.1')
    const flood = admitted(gate, 100, '10.0.0.1')
    const [fresh] = admitted(gate, 1, '10.0.0.1')
    expect([open(users), fresh?.destroyed, open(flood)]).toEqual([5, false, 14])
  })

  test('anonymous requests prove nothing', () => {
    const gate = new ConnectionGate({ total: 16, perAddress: 16 })
    proven(gate, 3, '10.0.0.1', as(wellKnown.anonymous))
    expect(gate.unauthenticated).toBe(3)
  })
})

describe('a user with many connections keeps no other user out [SEC-R608]', () => {
  const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']
  const account = (name: string) => as(`${wellKnown.serviceAccountUserPrefix}team:${name}`)
  const greedy: Record<string, (gate: ConnectionGate) => Socket[]> = {
    'one user from one address': (gate) => proven(gate, 200, '10.0.0.1', as('eve')),
    'one user from many addresses': (gate) =>
      addresses.flatMap((address) => proven(gate, 50, address, as('eve'))),
    'service accounts of one namespace': (gate) =>
      addresses.flatMap((address, index) => proven(gate, 50, address, account(`sa-${index}`))),
  }
  const newcomers: Record<string, [ReturnType<typeof as>, string]> = {
    'a user': [as('ann'), '10.0.0.50'],
    'a user of the same address': [as('ann'), '10.0.0.1'],
    'an administrator of the same address': [admin, '10.0.0.1'],
  }
  const cases = Object.keys(greedy).flatMap((attack) =>
    Object.keys(newcomers).map((newcomer) => [attack, newcomer] as const),
  )

  test.each(cases)('%s: %s connects and stays', (attack, newcomer) => {
    const gate = new ConnectionGate({ total: 100, perAddress: 60 })
    const [who, address] = newcomers[newcomer] ?? [admin, '']
    const before = proven(gate, 3, address, who)
    const held = greedy[attack]?.(gate) ?? []
    const after = proven(gate, 3, address, who)
    greedy[attack]?.(gate)
    expect([open(before), open(after)]).toEqual([3, 3])
    expect(open(held)).toBeLessThan(75)
    expect(gate.open).toBeLessThanOrEqual(100)
  })

  test('no number of unauthenticated connections closes those of users', () => {
    const gate = new ConnectionGate({ total: 100, perAddress: 100 })
    const users = proven(gate, 75, '10.0.0.1')
    for (const address of addresses) admitted(gate, 100, address)
    expect([open(users), gate.open]).toEqual([75, 100])
  })

  test('only connections of administrators cannot be closed for others', () => {
    const gate = new ConnectionGate({ total: 4, perAddress: 16 })
    const held = proven(gate, 4, '10.0.0.1', admin)
    expect([open(held), open(admitted(gate, 1, '10.0.0.2'))]).toEqual([4, 0])
    expect([gate.open, gate.dropped]).toEqual([4, 1])
  })
})
