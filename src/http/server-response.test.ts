import { once } from 'node:events'
import { createServer, type RequestListener, request, type ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import {
  EventfulHttp2Response,
  EventfulServerResponse,
  holdResponse,
  onHeaders,
} from './server-response.ts'

const versions = ['HTTP/1.1', 'HTTP/2'] as const
const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

type Handler = (response: ServerResponse) => unknown

/** The response to one request, or undefined if the connection was closed without one. */
async function responseOf(version: (typeof versions)[number], handler: Handler) {
  const listener: RequestListener = (_request, response) => void handler(response)
  const server: Server =
    version === 'HTTP/1.1'
      ? createServer({ ServerResponse: EventfulServerResponse }, listener)
      : createHttp2Server({ Http2ServerResponse: EventfulHttp2Response }, listener as never) // two unrelated types, one shape
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  return version === 'HTTP/1.1' ? overHttp1(port) : overHttp2(port)
}

async function overHttp1(port: number) {
  const [incoming] = await once(request({ port, agent: false }).end(), 'response')
  return { code: incoming.statusCode, headers: incoming.headers, body: await textOf(incoming) }
}

async function overHttp2(port: number) {
  const session = connect(`http://127.0.0.1:${port}`)
  closers.push(() => session.close())
  const stream = session.request({ ':path': '/' })
  const [headers] = await once(stream, 'response')
  return { code: headers[':status'], headers, body: await textOf(stream) }
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}

describe.each(versions)('a response over %s', (version) => {
  test.each<[string, Handler]>([
    ['writeHead', (response) => response.writeHead(201, { 'X-A': '1' }).end('hello')],
    ['the first write', (response) => (response.write('hel'), response.end('lo'))],
    ['flushHeaders', (response) => (response.flushHeaders(), response.end('hello'))],
    ['end', (response) => response.end('hello')],
  ])('reports once that its headers are sent, by %s', async (_how, send) => {
    const sent: boolean[] = []
    const { body } = await responseOf(version, (response) => {
      onHeaders(response, () => sent.push(response.headersSent))
      send(response)
    })
    expect([body, sent]).toEqual(['hello', [true]])
  })

  test.each<[string, Handler]>([
    [
      'pieces',
      (r) => (
        r.writeHead(203, { 'X-A': '1' }), r.write('he'), r.write(Buffer.from('llo')), r.end()
      ),
    ],
    ['one piece', (r) => (r.setHeader('X-A', '1'), r.writeHead(203).end('hello'))],
  ])(
    'that is held is sent at its end, with headers made from the whole body: %s',
    async (_how, send) => {
      const events: string[] = []
      const { code, headers, body } = await responseOf(version, (response) => {
        onHeaders(response, () => events.push('headers'))
        holdResponse(response, {
          maxBytes: 5,
          complete: (whole) => {
            events.push('complete')
            response.setHeader('X-Size', whole.length)
          },
        })
        send(response)
      })
      expect([code, headers['x-a'], headers['x-size'], body]).toEqual([203, '1', '5', 'hello'])
      expect(events).toEqual(['complete', 'headers'])
    },
  )

  test('that is held is limited in size', async () => {
    const thrown: unknown[] = []
    const response = responseOf(version, (held) => {
      holdResponse(held, { maxBytes: 4, complete: () => {} })
      try {
        held.end('hello')
      } catch (error) {
        thrown.push(error)
        held.destroy(new Error('too large'))
      }
    })
    await expect(response).rejects.toThrow(/hang up|closed|INTERNAL_ERROR/)
    expect(String(thrown)).toContain('too large to be held')
  })
})
