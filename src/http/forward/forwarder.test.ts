import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { upgradingClient } from '../upgrade.ts'
import { Http1Upstream } from '../upstream/index.ts'
import type { ForwardOptions, ForwardPolicy } from './forwarder.ts'
import { forward } from './forwarder.ts'
import { forwardUpgrade, type UpgradeOptions, type UpgradeResult } from './splice.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n'

const policy: ForwardPolicy = {
  responseHeaders: ({ rawHeaders }) =>
    rawHeaders.filter((_text, index) => !isHop(rawHeaders, index)),
  failure: (error) => (error instanceof Error ? error : new Error(String(error))),
}
const isHop = (headers: readonly string[], index: number): boolean =>
  /^(?:connection|transfer-encoding|trailer|upgrade)$/i.test(headers[index & ~1] ?? '')

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A server that forwards to another one, which `serve` plays. */
async function lab(
  serve: (head: string, connection: Socket) => void,
  options: Partial<ForwardOptions & UpgradeOptions> = {},
) {
  const heads: string[] = []
  let connections = 0
  const origin = createTcpServer((socket) => {
    connections += 1
    socket.on('error', () => {})
    socket.on('data', (bytes: Buffer) => {
      heads.push(String(bytes))
      serve(String(bytes), socket)
    })
  }).listen(0, '127.0.0.1')
  await once(origin, 'listening')
  const open = async (): Promise<Socket> => {
    const socket = connect((origin.address() as AddressInfo).port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  const upstream = new Http1Upstream(open, systemClock, 10)
  const outcomes: (string | UpgradeResult)[] = []
  const note = (outcome: Promise<unknown>, response: ServerResponse): void => {
    outcome.then(
      (result) => outcomes.push((result as UpgradeResult | undefined) ?? 'forwarded'),
      (error: Error) => {
        outcomes.push(error.message)
        if (!response.headersSent)
          response.writeHead(502, { 'Content-Length': error.message.length }).end(error.message)
      },
    )
  }
  const optionsFor = (request: IncomingMessage): ForwardOptions => ({
    upstream,
    path: request.url ?? '/',
    headers: ['Host', 'h'],
    policy,
    ...options,
  })
  const server = createServer((request, response) =>
    note(forward(request, response, optionsFor(request)), response),
  )
  server.on('upgrade', (request: IncomingMessage, _socket, head: Buffer) => {
    const client = upgradingClient(request, head)
    const upgrade = { ...optionsFor(request), protocol: 'websocket' }
    note(forwardUpgrade(request, client, upgrade), client.response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.closeAllConnections()
    server.close()
    upstream.destroy()
    origin.close()
  })
  const { port } = server.address() as AddressInfo
  const socketTo = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1')
    closing.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket.on('error', () => {})
  }
  /** Sends bytes and reads until the connection ends. */
  const raw = async (bytes: string): Promise<string> => {
    const socket = await socketTo()
    socket.write(bytes)
    return text(socket)
  }
  return { raw, socketTo, heads, outcomes, connections: () => connections }
}

const get = (method = 'GET', ...lines: string[]): string =>
  [`${method} / HTTP/1.1`, 'Host: h', 'Connection: close', ...lines, '', ''].join('\r\n')

describe('a request', () => {
  test('says where it comes from and that trailers are welcome, whatever its policy says', async () => {
    const it = await lab((_head, connection) => void connection.write(ok))
    await it.raw(get('GET', 'X-Forwarded-For: a', 'X-Forwarded-For: b', 'TE: gzip, trailers'))
    expect(it.heads[0]).toContain('X-Forwarded-For: a, b, 127.0.0.1\r\n')
    expect(it.heads[0]).toContain('TE: trailers\r\n')
  })

  test.each([
    ['GET', true],
    ['HEAD', true],
    ['OPTIONS', true],
    ['POST', false],
    ['PUT', false],
    ['DELETE', false],
    ['PATCH', false],
  ])('of %s is sent again after a kept connection was closed: %s', async (method, isRepeated) => {
    let requests = 0
    const it = await lab((_head, connection) => {
      requests += 1
      if (requests === 2) connection.destroy()
      else connection.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
    expect(await it.raw(get(method))).toMatch(/^HTTP\/1.1 204 /)
    expect(await it.raw(get(method))).toMatch(isRepeated ? /^HTTP\/1.1 204 / : /^HTTP\/1.1 502 /)
    expect([requests, it.connections()]).toEqual(isRepeated ? [3, 2] : [2, 1])
  })

  test('with a body is never sent again', async () => {
    let requests = 0
    const it = await lab((head, connection) => {
      if (!head.startsWith('GET')) return
      requests += 1
      if (requests === 2) connection.destroy()
      else connection.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
    await it.raw(get())
    expect(await it.raw(`${get('GET', 'Content-Length: 1')}x`)).toMatch(/^HTTP\/1.1 502 /)
    expect(requests).toBe(2)
  })

  test('of a client that disconnects is cancelled', async () => {
    let isClosed = false
    const it = await lab(
      (_head, connection) => void connection.on('close', () => (isClosed = true)),
    )
    const socket = await it.socketTo()
    socket.write(get())
    await vi.waitUntil(() => it.heads.length === 1)
    socket.destroy()
    await vi.waitUntil(() => isClosed && it.outcomes.length === 1)
    expect(it.outcomes).toEqual(['forwarded'])
  })

  test('that is aborted before a response rejects with the reason', async () => {
    const controller = new AbortController()
    const it = await lab(() => controller.abort(new Error('revoked')), {
      signal: controller.signal,
    })
    expect(await it.raw(get())).toMatch(/^HTTP\/1.1 502 [^]*revoked$/)
  })
})

describe('a response', () => {
  test('that is complete has a length, whatever it was framed by', async () => {
    const it = await lab(
      (_head, connection) => void connection.write(`${chunked}\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n`),
    )
    expect(await it.raw(get())).toMatch(/\r\nContent-Length: 2\r\n[^]*\r\n\r\nok$/)
  })

  test('in chunks has the trailers that it announces', async () => {
    const it = await lab(
      (_head, connection) =>
        void connection.write(
          `${chunked}Trailer: Grpc-Status\r\n\r\n2\r\nok\r\n0\r\nGrpc-Status: 0\r\nX-A: b\r\n\r\n`,
        ),
    )
    const response = await it.raw(get())
    expect(response).toMatch(/\r\nTrailer: Grpc-Status\r\n/)
    expect(response.endsWith('2\r\nok\r\n0\r\nGrpc-Status: 0\r\n\r\n')).toBe(true)
  })

  test('is complete although bytes follow it, which are dropped with their connection', async () => {
    const it = await lab((_head, connection) => void connection.write(ok + ok.replace('ok', 'no')))
    expect(await it.raw(get())).toMatch(/\r\n\r\nok$/)
    expect(await it.raw(get())).toMatch(/\r\n\r\nok$/)
    expect(it.connections()).toBe(2)
  })

  test('in single bytes is sent in few pieces [SEC-R607]', async () => {
    const bytes = 10_000
    const it = await lab(
      (_head, connection) => void connection.write(`${chunked}\r\n${'1\r\nx\r\n'.repeat(bytes)}`),
    )
    const socket = await it.socketTo()
    let received = ''
    socket.on('data', (piece) => (received += String(piece)))
    socket.write(get())
    await vi.waitUntil(() => received.split('x').length > bytes)
    const sizes = received.match(/^[0-9a-f]+\r$/gm) ?? []
    expect(sizes.length).toBeLessThan(10)
  })

  test.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok', /\r\n\r\nok$/],
    ['chunks', `${chunked}\r\n2\r\nok\r\n`, /\r\n2\r\nok\r\n$/],
  ])('with %s that breaks off breaks off at the client', async (_what, bytes, received) => {
    const it = await lab((_head, connection) => void connection.end(bytes))
    expect(await it.raw(get())).toMatch(received)
    await vi.waitUntil(() => it.outcomes.length === 1)
    expect(it.outcomes).toEqual(['forwarded'])
  })

  test('whose head cannot be sent leaves nothing of it in the refusal', async () => {
    const bad: ForwardPolicy = { ...policy, responseHeaders: () => ['X-A', 'b', 'X-B', 'a\nb'] }
    const it = await lab((_head, connection) => void connection.write(ok.replace('OK', 'Odd')), {
      policy: bad,
    })
    const response = await it.raw(get())
    expect(response).toMatch(/^HTTP\/1.1 502 Bad Gateway\r\n/)
    expect(response).not.toContain('X-A')
  })

  test('is ended by an abort', async () => {
    const controller = new AbortController()
    let isClosed = false
    const it = await lab(
      (_head, connection) => {
        connection.on('close', () => (isClosed = true))
        connection.write('HTTP/1.1 200 OK\r\n\r\nok')
      },
      { signal: controller.signal },
    )
    const socket = await it.socketTo()
    socket.write(get())
    await once(socket, 'data')
    controller.abort(new Error('revoked'))
    await once(socket.resume(), 'close')
    await vi.waitUntil(() => isClosed)
    expect(it.outcomes).toEqual(['forwarded'])
  })

  test('is counted and waits for its meter', async () => {
    const counted: number[] = []
    const toClient = (bytes: number): number => {
      counted.push(bytes)
      return 1
    }
    let send = (_more: string): void => {}
    const it = await lab(
      (_head, connection) => {
        connection.write('HTTP/1.1 200 OK\r\n\r\nab')
        send = (more) => void connection.end(more)
      },
      { meters: { toClient, toUpstream: () => 0 } },
    )
    const socket = await it.socketTo()
    socket.write(get())
    await once(socket, 'data')
    send('c')
    expect(await text(socket)).toBe('1\r\nc\r\n0\r\n\r\n')
    expect(counted).toEqual([2, 1])
  })

  test('whose end has to wait is ended by its meter', async () => {
    const end = vi.spyOn(ServerResponse.prototype, 'end')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const it = await lab((_head, connection) => void connection.write(ok), {
        meters: { toClient: () => 1_000, toUpstream: () => 0 },
      })
      const socket = await it.socketTo()
      socket.write(get())
      expect(String((await once(socket, 'data'))[0])).toMatch(/\r\n\r\nok$/)
      expect(end).not.toHaveBeenCalled()
      vi.advanceTimersByTime(1_000)
      await once(socket, 'end')
    } finally {
      vi.useRealTimers()
      end.mockRestore()
    }
  })

  test('is rewritten as it comes, and has no length then', async () => {
    const upper = () => [
      new Transform({
        transform: (chunk, _encoding, done) => done(null, String(chunk).toUpperCase()),
      }),
    ]
    const it = await lab((_head, connection) => void connection.write(ok), {
      policy: { ...policy, transform: () => upper },
    })
    const response = await it.raw(get())
    expect(response).toMatch(/OK\r\n0\r\n\r\n$/)
    expect(response).not.toContain('Content-Length')
    expect(await it.raw(get('HEAD'))).not.toContain('Content-Length')
  })

  test('that is rewritten breaks off at the client if it breaks off', async () => {
    const same = () => [new Transform({ transform: (chunk, _encoding, done) => done(null, chunk) })]
    const it = await lab((_head, connection) => void connection.end(`${chunked}\r\n2\r\nok\r\n`), {
      policy: { ...policy, transform: () => same },
    })
    const socket = await it.socketTo()
    socket.write(get())
    expect(await text(socket)).not.toContain('0\r\n\r\n')
  })

  test('that its policy refuses costs no connection', async () => {
    let isClosed = false
    const transform = (): never => {
      throw new Error('too many pages')
    }
    const it = await lab(
      (_head, connection) => {
        connection.on('close', () => (isClosed = true))
        connection.write('HTTP/1.1 200 OK\r\n\r\nok')
      },
      { policy: { ...policy, transform } },
    )
    expect(await it.raw(get())).toMatch(/^HTTP\/1.1 502 [^]*too many pages$/)
    await vi.waitUntil(() => isClosed)
  })
})

describe('an upgrade', () => {
  const upgrade = ['GET / HTTP/1.1', 'Host: h', 'Connection: Upgrade', 'Upgrade: websocket', '', '']
  const agree = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nX-A: b\r\n\r\n'

  test('joins both ends, with what each has sent early', async () => {
    const it = await lab((head, connection) => {
      if (head.startsWith('GET')) connection.write(`${agree}hello `)
      else connection.write(head.toUpperCase())
    })
    const socket = await it.socketTo()
    let received = ''
    socket.on('data', (piece) => (received += String(piece)))
    socket.write(`${upgrade.join('\r\n')}early`)
    await vi.waitUntil(() => received.endsWith('hello EARLY'))
    expect(received).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n[^]*\r\nX-A: b\r\n/)
    expect(it.heads[0]).not.toContain('early')
    socket.destroy()
    await vi.waitUntil(() => it.outcomes.length === 1)
    expect(it.outcomes).toEqual([{ status: 101, end: 'closed' }])
  })

  test.each([
    ['another protocol', agree.replace('websocket', 'foo')],
    ['two protocols', agree.replace('X-A: b', 'Upgrade: websocket')],
    ['no protocol', agree.replace('Upgrade: websocket\r\n', '')],
  ])('to %s is not joined', async (_what, bytes) => {
    let isClosed = false
    const it = await lab((_head, connection) => {
      connection.on('close', () => (isClosed = true))
      connection.write(bytes)
    })
    expect(await it.raw(upgrade.join('\r\n'))).toMatch(/^HTTP\/1.1 502 /)
    await vi.waitUntil(() => isClosed)
  })

  test('that is refused ends both connections, and nothing behind it is sent', async () => {
    let isClosed = false
    const it = await lab((_head, connection) => {
      connection.on('close', () => (isClosed = true))
      connection.write(ok)
    })
    const response = await it.raw(upgrade.join('\r\n') + get('GET'))
    expect(response).toMatch(/^HTTP\/1.1 200 OK\r\n[^]*Connection: close\r\n[^]*ok$/)
    await vi.waitUntil(() => isClosed)
    expect([it.heads.length, it.outcomes]).toEqual([1, [{ status: 200, end: 'refused' }]])
  })

  test('ends when nothing passes for too long', async () => {
    const it = await lab((_head, connection) => void connection.write(agree), { idleMs: 20 })
    expect(await it.raw(upgrade.join('\r\n'))).toMatch(/^HTTP\/1.1 101 /)
    await vi.waitUntil(() => it.outcomes.length === 1)
    expect(it.outcomes).toEqual([{ status: 101, end: 'idle' }])
  })

  test('ends with its signal', async () => {
    const controller = new AbortController()
    const it = await lab((_head, connection) => void connection.write(agree), {
      signal: controller.signal,
    })
    const socket = await it.socketTo()
    socket.write(upgrade.join('\r\n'))
    await once(socket, 'data')
    controller.abort()
    await once(socket.resume(), 'close')
    await vi.waitUntil(() => it.outcomes.length === 1)
    expect(it.outcomes).toEqual([{ status: 101, end: 'closed' }])
  })
})
