import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../core/index.ts'
import { Activity } from '../activity.ts'
import { FakeLink } from '../fake-link.suite.ts'
import { NodeListener } from './node-listener.ts'

const clients: Socket[] = []
const link = new FakeLink({ serverCounts: ['1'] })
const listener = new NodeListener(
  { localPort: 0, address: 'api:6443' },
  {
    bindAddress: '127.0.0.1',
    links: () => [link],
    activity: new Activity(),
    clock: systemClock,
    random: () => 0,
    log: silentLogger,
    maxConnections: 3,
  },
)
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  await listener.stop()
})

async function clientFrom(localAddress: string): Promise<Socket> {
  const client = connect({ port: listener.port ?? 0, host: '127.0.0.1', localAddress })
  client.on('error', () => {}).resume()
  clients.push(client)
  await once(client, 'connect')
  return client
}

test('[TUN-F18] a Pod with too many connections to a local port gives way to others', async () => {
  listener.start()
  await expect.poll(() => listener.port).toBeDefined()
  const [first] = [
    await clientFrom('127.0.0.2'),
    await clientFrom('127.0.0.2'),
    await clientFrom('127.0.0.2'),
  ]
  await expect.poll(() => listener.openConnections).toBe(3)
  const refused = await clientFrom('127.0.0.2')
  await once(refused, 'close')
  const other = await clientFrom('127.0.0.3')
  await once(first, 'close')
  await expect.poll(() => listener.openConnections).toBe(3)
  expect(other.destroyed).toBe(false)
})
