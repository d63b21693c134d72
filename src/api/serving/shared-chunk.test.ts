import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type Http2Server,
} from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { writeShared } from './watch-events.ts'

const running: (Server | Http2Server)[] = []
afterEach(() => {
  for (const server of running.splice(0)) server.close()
})

async function serve(server: Server | Http2Server): Promise<number> {
  running.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const lines = [
  '{"type":"ADDED"}\n',
  `{"type":"ADDED","text":"${'long'.repeat(50_000)}"}\n`,
  '{"type":"MODIFIED","text":"é"}\n',
].map((line) => Buffer.from(line))

function answer(response: ServerResponse, write: typeof writeShared): void {
  response.sendDate = false
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.flushHeaders()
  for (const line of [...lines, Buffer.alloc(0), lines[1]!]) write(response, line)
  response.end()
}

/** All bytes that come back for `sent`, until the server closes. */
async function received(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(sent)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

const get = (version: string, path = '/') =>
  `GET ${path} HTTP/${version}\r\nHost: x\r\nConnection: close\r\n\r\n`

test.each([
  ['HTTP/1.1', get('1.1')],
  ['HTTP/1.0, which knows no chunks', get('1.0')],
  ['a HEAD request, which gets none', get('1.1').replace('GET', 'HEAD')],
])('%s sees the same bytes as from Node', async (_name, request) => {
  const ours = await serve(createServer((_, response) => answer(response, writeShared)))
  const nodes = await serve(
    createServer((_, response) => answer(response, (to, data) => void to.write(data))),
  )
  const expected = await received(nodes, request)
  expect(expected).toContain('200 OK')
  expect(await received(ours, request)).toBe(expected)
})

test('an answer that waits behind another one on its connection is not sent before it', async () => {
  const first: ServerResponse[] = []
  const port = await serve(
    createServer((request, response) => {
      if (request.url === '/first') first.push(response)
      else {
        answer(response, writeShared)
        first[0]?.end('the first answer')
      }
    }),
  )
  const pipelined = get('1.1', '/first').replace('Connection: close\r\n', '') + get('1.1')
  const text = await received(port, pipelined)
  expect(text.indexOf('the first answer')).toBeGreaterThan(0)
  expect(text.indexOf('the first answer')).toBeLessThan(text.indexOf('"ADDED"'))
  expect(text.endsWith('0\r\n\r\n')).toBe(true)
})

test('over HTTP/2 nothing is framed twice', async () => {
  const port = await serve(
    // The compatibility API promises the HTTP/1.1 shape; TypeScript has two unrelated types for it.
    createHttp2Server((_, response) => answer(response as unknown as ServerResponse, writeShared)),
  )
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  const stream = session.request({ ':path': '/' })
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  session.close()
  expect(Buffer.concat(chunks)).toEqual(Buffer.concat([...lines, lines[1]!]))
})
