import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { responseTo } from './client-response.ts'

let server: Server
let bytes = ''
beforeEach(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(bytes))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(() => server.close())

const send = (method = 'GET') => {
  const { port } = server.address() as AddressInfo
  return responseTo(request({ host: '127.0.0.1', port, method, agent: false }).end())
}

test.each([
  ['a switch of protocols', 'HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['a switch to HTTP/2', 'HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\nPRI'],
  ['interim responses only', 'HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\n\r\n'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.9\r\n'],
  ['nothing', ''],
])('%s is an error and not a wait for ever [SEC-R2302]', async (_name, sent) => {
  bytes = sent
  await expect(send()).rejects.toThrow(Error)
  await expect(send('POST')).rejects.toThrow(Error)
})

test('a response is returned', async () => {
  bytes = 'HTTP/1.1 204 x\r\n\r\n'
  expect((await send()).statusCode).toBe(204)
})

/** Other listeners for responses, and why they cannot wait for ever. */
const otherListeners: Readonly<Record<string, string>> = {
  'credentials/transport/agent.ts': 'only reads headers on the way',
  'credentials/transport/connection-pool.ts': 'only reads headers on the way',
  'credentials/transport/http2-pool.ts': 'HTTP/2 has no switch of protocols',
  'credentials/transport/upgrade.ts': 'requests the switch',
}

test('a new client that waits for responses by itself is listed with a reason [SEC-R2302]', () => {
  const source = join(import.meta.dirname, '..')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/\.(test|suite)\.ts$/.test(file))
    .filter((file) => /on(ce)?\('response'|equest\([^)]*, resolve\)/.test(read(source, file)))
  expect(files.sort()).toEqual([...Object.keys(otherListeners), 'core/client-response.ts'].sort())
})

const read = (source: string, file: string): string => readFileSync(join(source, file), 'utf8')
