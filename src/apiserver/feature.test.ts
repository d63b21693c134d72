import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { directDialer } from './feature.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listener(): Promise<number> {
  const server = createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

const never = new AbortController().signal

test('it opens a TCP connection', async () => {
  const connection = await directDialer().dial({ host: '127.0.0.1', port: await listener() }, never)
  expect(String((await once(connection, 'data'))[0])).toBe('hello')
})

test('what cannot be reached is a 503 that says what and why', async () => {
  const port = await listener()
  servers.pop()?.close()
  const dialed = directDialer().dial({ host: '127.0.0.1', port }, never)
  await expect(dialed).rejects.toMatchObject({
    reason: 'ServiceUnavailable',
    message: `cannot reach 127.0.0.1:${port}: connection refused`,
  })
})

test('a caller that gives up gets its own reason', async () => {
  const given = new Error('the client has gone')
  const port = await listener()
  const dialed = directDialer().dial({ host: '127.0.0.1', port }, AbortSignal.abort(given))
  await expect(dialed).rejects.toBe(given)
})
