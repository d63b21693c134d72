import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ConnectionLimit } from './connection-limit.ts'
import { portOf } from './listen.ts'

let server: Server
let limit: ConnectionLimit
let dropped = 0
const clients: Socket[] = []

beforeEach(async () => {
  dropped = 0
  limit = new ConnectionLimit(3, { dropped: () => dropped++ })
  server = createServer().listen(0, '0.0.0.0')
  limit.watch(server)
  await once(server, 'listening')
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  server.close()
  await once(server, 'close')
})

/** A connection from an address of this machine, and the server's end of it. */
async function open(localAddress = '127.0.0.1'): Promise<{ client: Socket; accepted: Socket }> {
  const client = connect({ port: portOf(server), host: '127.0.0.1', localAddress })
  client.on('error', () => {}).resume()
  clients.push(client)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  return { client, accepted }
}

test('[TUN-F18] connections beyond the limit are destroyed', async () => {
  for (const _ of [1, 2, 3]) await open()
  const { accepted } = await open()
  expect([accepted.destroyed, limit.size, dropped]).toEqual([true, 3, 1])
})

test('[TUN-F18] an address with few connections gets in for one of those with most', async () => {
  const [first] = [await open(), await open(), await open()]
  const { accepted } = await open('127.0.0.2')
  expect([accepted.destroyed, first.accepted.destroyed, limit.size]).toEqual([false, true, 3])
})

test('a connection that has closed or proven itself counts no more', async () => {
  const { client, accepted } = await open()
  const gone = once(accepted.resume(), 'close')
  client.end()
  await gone
  expect(limit.size).toBe(0)
  const { accepted: known } = await open()
  limit.release(known)
  expect(limit.size).toBe(0)
  known.destroy()
  await once(known, 'close')
  expect(limit.size).toBe(0)
})
