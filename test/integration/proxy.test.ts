import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawHeaderValues } from '../../src/http/index.ts'
import { proxyOptions } from '../../src/local-proxy/options/index.ts'
import { type LabProxy, ProxyLab } from '../../src/local-proxy/proxy-lab.suite.ts'

let lab: ProxyLab
let proxy: LabProxy
beforeAll(async () => {
  lab = await ProxyLab.open()
  proxy = await lab.proxy()
})
beforeEach(() => {
  lab.api.seen.length = 0
})
afterAll(() => lab.close())

describe('[CRED-P1] a request', () => {
  test('goes to the cluster with the credential of the user', async () => {
    const answer = await proxy.ask('/api/v1/pods?limit=5&x=%2F', ['Accept: application/json'])
    expect(answer.status).toBe(200)
    const { url, rawHeaders } = lab.api.last
    expect(url).toBe('/api/v1/pods?limit=5&x=%2F')
    expect(rawHeaderValues(rawHeaders, 'authorization')).toEqual(['Bearer janes-token'])
    expect(rawHeaderValues(rawHeaders, 'host')).toEqual([new URL(lab.server).host])
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-for')).toEqual(['127.0.0.1'])
  })

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s carries its body', async (method) => {
    const body = '{"a":1}'
    const request = httpRequest({ port: proxy.port, path: '/api/v1/x', method })
    request.setHeader('content-length', body.length)
    const [response] = (await once(request.end(body), 'response')) as [IncomingMessage]
    await text(response)
    expect(lab.api.last).toMatchObject({ method, body })
  })

  test.each(['POST', 'DELETE', 'GET'])('%s carries a body in chunks', async (method) => {
    const head = [`${method} /x HTTP/1.1`, 'Host: localhost', 'Connection: close'].join('\r\n')
    const chunks = '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
    await proxy.raw(`${head}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`)
    expect(lab.api.last).toMatchObject({ method, body: 'abcde' })
  })

  test('without a body gets none', async () => {
    await proxy.ask('/x', [], 'POST')
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'transfer-encoding')).toEqual([])
    expect(rawHeaderValues(lab.api.last.rawHeaders, 'content-length')).toEqual(['0'])
  })

  test('leaves behind what belongs to its own connection', async () => {
    await proxy.ask('/x', [
      'Keep-Alive: 1',
      'TE: gzip, trailers',
      'X-A: 1',
      'X-Forwarded-For: 10.0.0.1',
    ])
    const { rawHeaders } = lab.api.last
    expect(rawHeaderValues(rawHeaders, 'keep-alive')).toEqual([])
    // Stated anew: the proxy forwards trailers.
    expect(rawHeaderValues(rawHeaders, 'te')).toEqual(['trailers'])
    expect(rawHeaderValues(rawHeaders, 'x-a')).toEqual(['1'])
    expect(rawHeaderValues(rawHeaders, 'x-forwarded-for')).toEqual(['10.0.0.1, 127.0.0.1'])
  })

  test('gets the trailers that its response announces, if they decide nothing', async () => {
    lab.api.answers.set('/trailers', (_request, response) => {
      response.writeHead(200, { trailer: 'Grpc-Status, Set-Cookie' })
      response.addTrailers({ 'Grpc-Status': '0', 'Set-Cookie': 'a=b' })
      response.end('hi')
    })
    const { port } = proxy
    const request = httpRequest({ port, path: '/trailers', headers: { te: 'trailers' } })
    const [response] = (await once(request.end(), 'response')) as [IncomingMessage]
    expect(await text(response)).toBe('hi')
    expect(response.trailers).toEqual({ 'grpc-status': '0' })
  })

  test('that asks for HEAD gets the length and no body', async () => {
    lab.api.answers.set('/head', (_request, response) =>
      response.writeHead(200, { 'content-length': 1234 }).end(),
    )
    const answer = await proxy.ask('/head', [], 'HEAD')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '1234' }, body: '' })
  })

  test('to a server that is gone is answered with 502 and the reason', async () => {
    const gone = await ProxyLab.open()
    const alone = await gone.proxy()
    gone.api.close()
    const answer = await alone.ask('/api')
    await gone.close()
    expect(answer.status).toBe(502)
    expect(answer.body).toContain('ECONNREFUSED')
    expect(answer.body).not.toContain('janes-token')
  })
})

describe('a stream', () => {
  let held: ServerResponse
  const hold = (path: string): Promise<void> =>
    new Promise((resolve) => {
      lab.api.answers.set(path, (_request, response) => {
        held = response
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.flushHeaders()
        resolve()
      })
    })

  test('of an answer arrives part by part, its head at once', async () => {
    const opened = hold('/watch')
    const request = httpRequest({ port: proxy.port, path: '/watch' }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await opened
    for (const part of ['one', 'two']) {
      held.write(part)
      const [chunk] = (await once(response, 'data')) as [Buffer]
      expect(String(chunk)).toBe(part)
    }
    held.end()
    await once(response, 'end')
  })

  test('that its client leaves is left at the server too', async () => {
    const opened = hold('/left')
    const request = httpRequest({ port: proxy.port, path: '/left' }).end()
    request.on('error', () => {})
    await Promise.all([once(request, 'response'), opened])
    request.destroy()
    await once(held, 'close')
    expect(held.writableFinished).toBe(false)
  })

  test('whose client leaves before it has begun is not begun', async () => {
    const asked = new Promise<IncomingMessage>((resolve) => {
      lab.api.answers.set('/slow', (request) => resolve(request))
    })
    const request = httpRequest({ port: proxy.port, path: '/slow' }).end()
    request.on('error', () => {})
    const { socket } = await asked
    request.destroy()
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })

  test('that breaks off at the server breaks off at the client', async () => {
    const opened = hold('/cut')
    const request = httpRequest({ port: proxy.port, path: '/cut' }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await opened
    held.destroy()
    await expect(text(response)).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('that its client does not read is held back, both ways', async () => {
    const sent = { bytes: 0 }
    lab.api.answers.set('/flood', (_request, response) => {
      const chunk = Buffer.alloc(64 * 1024)
      response.writeHead(200)
      const more = (): void => {
        while (sent.bytes < 256 * 1024 * 1024) {
          sent.bytes += chunk.length
          if (!response.write(chunk)) {
            response.once('drain', more)
            return
          }
        }
      }
      more()
    })
    const socket = await proxy.socket()
    socket.pause()
    socket.write('GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n')
    // The round trips of other requests are the clock: that nothing more comes has no event.
    for (let before = -1; before !== sent.bytes || before === 0; ) {
      before = sent.bytes
      for (let trip = 0; trip < 30; trip++) await proxy.ask('/x')
    }
    expect(sent.bytes).toBeLessThan(64 * 1024 * 1024)
    socket.destroy()
  })
})

test('[CRED-P1] the flags have the defaults of kubectl', () => {
  const defaults = Object.fromEntries(
    Object.entries(proxyOptions).map(([name, option]) => [
      name,
      'default' in option ? option.default : undefined,
    ]),
  )
  expect(defaults).toMatchObject({
    port: 8001,
    address: '127.0.0.1',
    'api-prefix': '/',
    'www-prefix': '/static/',
    'accept-hosts': String.raw`^localhost$,^127\.0\.0\.1$,^\[::1\]$`,
    'accept-paths': '^.*',
    'reject-methods': '^$',
    'disable-filter': false,
    'append-server-path': false,
    keepalive: 0,
  })
})
