import { once } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { errorCode } from './http2/index.ts'
import { createGrpcServer, GrpcConnection, type GrpcMethod, type ServerCall } from './index.ts'
import { encodeMessage, MessageReader } from './messages.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
const signal = new AbortController().signal

/** A method that gets all messages of a call once its client has ended. */
const method = (serve: (call: ServerCall, messages: Buffer[]) => void): GrpcMethod => ({
  authenticate: () => Promise.resolve({ metadata: { 'x-server': 's' } }),
  serve: (call, _request, metadata) => {
    const messages: Buffer[] = []
    const reader = new MessageReader((message) => messages.push(message))
    call.respond(metadata)
    call.stream.start({
      data: (chunk) => reader.push(chunk),
      progress: () => {},
      finished: () => serve(call, messages),
      closed: () => {},
    })
  },
})

const methods: Readonly<Record<string, GrpcMethod>> = {
  '/Test/Echo': method((call, messages) => {
    for (const message of messages) call.stream.write([encodeMessage(message)])
    call.end(0)
  }),
  '/Test/Fail': method((call) => call.end(5, 'no such thing: ünknown 100%')),
  '/Test/Silent': method((call) => call.end(0)),
  '/Test/Hang': method(() => {}),
  '/Test/Partial': method((call) => {
    call.stream.write([encodeMessage(Buffer.from('long')).subarray(0, 6)])
    call.end(0)
  }),
  '/Test/Reset': method((call) => call.stream.reset(errorCode.INTERNAL_ERROR)),
  '/Test/Compressed': method((call) => {
    call.stream.write([Buffer.from([1, 0, 0, 0, 0])])
    call.end(0)
  }),
  '/Test/Refused': {
    authenticate: () => Promise.resolve({ grpcStatus: 16, message: 'no' }),
    serve: () => {},
  },
}

async function connect(): Promise<GrpcConnection> {
  const server = createGrpcServer({ methods, log: silentLogger })
  const listener = server.cleartextServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  closers.push(() => {
    server.close()
    return new Promise((resolve) => listener.close(resolve))
  })
  return connectTo((listener.address() as AddressInfo).port)
}

async function connectTo(port: number): Promise<GrpcConnection> {
  const connection = await GrpcConnection.connect(
    { host: '127.0.0.1', port, tls: 'cleartext' },
    signal,
  )
  closers.push(() => connection.destroy())
  return connection
}

const collect = async (messages: AsyncIterable<Buffer>): Promise<string[]> => {
  const texts: string[] = []
  for await (const message of messages) texts.push(message.toString())
  return texts
}

describe('a unary call', () => {
  test.each([0, 1, 70_000, 4 * 1024 * 1024])('sends and receives %i bytes', async (length) => {
    const connection = await connect()
    const request = Buffer.alloc(length, 7)
    const response = await connection.unary('/Test/Echo', request, { signal })
    expect(response.equals(request)).toBe(true)
  })

  test.each([
    ['/Test/Fail', 5, /no such thing: ünknown 100%/],
    ['/Test/Refused', 16, /no/],
    ['/Test/Other', 12, /unknown method Other/],
    ['/Test/Silent', 13, /0 messages/],
    ['/Test/Partial', 14, /without a status/],
    ['/Test/Reset', 14, /error code 2/],
    ['/Test/Compressed', 13, /compressed/],
  ])('of %s fails with status %i', async (path, grpcStatus, message) => {
    const connection = await connect()
    const calling = connection.unary(path, Buffer.alloc(0), { signal })
    await expect(calling).rejects.toMatchObject({
      code: 'GRPC_ERROR',
      grpcStatus,
      message: expect.stringMatching(message),
    })
  })

  test('fails if the response is above its limit', async () => {
    const connection = await connect()
    const options = { signal, maxMessageBytes: 10 }
    await expect(connection.unary('/Test/Echo', Buffer.alloc(11), options)).rejects.toMatchObject({
      grpcStatus: 13,
    })
  })

  test('fails at its deadline, of which the server knows', async () => {
    const connection = await connect()
    const options = { signal, timeoutMs: 20 }
    await expect(connection.unary('/Test/Hang', Buffer.alloc(0), options)).rejects.toMatchObject({
      grpcStatus: 4,
    })
    expect(connection.http2.streamCount).toBe(0)
  })

  test('fails when its signal aborts, and when it had aborted before', async () => {
    const connection = await connect()
    const abort = new AbortController()
    const calling = connection.unary('/Test/Hang', Buffer.alloc(0), { signal: abort.signal })
    abort.abort()
    await expect(calling).rejects.toMatchObject({ grpcStatus: 1 })
    await expect(
      connection.unary('/Test/Echo', Buffer.alloc(0), { signal: abort.signal }),
    ).rejects.toMatchObject({ grpcStatus: 1 })
  })

  test('fails when the connection is lost', async () => {
    const connection = await connect()
    const calling = connection.unary('/Test/Hang', Buffer.alloc(0), { signal })
    connection.destroy()
    await expect(calling).rejects.toMatchObject({ grpcStatus: 14 })
    await connection.closed
  })

  test('leaves no stream and sends no RST_STREAM: many follow each other', async () => {
    const connection = await connect()
    for (let times = 0; times < 300; times++)
      await connection.unary('/Test/Echo', Buffer.from('x'), { signal })
    expect(connection.http2.streamCount).toBe(0)
  })
})

describe('a streaming call', () => {
  test('has messages in both directions and metadata', async () => {
    const connection = await connect()
    const call = connection.call('/Test/Echo', { signal })
    for (const text of ['a', '', 'b']) call.send(Buffer.from(text))
    call.end()
    expect(await call.response).toMatchObject({ 'x-server': ['s'] })
    expect(await collect(call.messages())).toEqual(['a', '', 'b'])
  })

  test('may end with status OK and without a message', async () => {
    const connection = await connect()
    const call = connection.call('/Test/Silent', { signal })
    call.end()
    expect(await collect(call.messages())).toEqual([])
  })

  test('is cancelled when its reader leaves the loop', async () => {
    const connection = await connect()
    const call = connection.call('/Test/Echo', { signal })
    for (let times = 0; times < 10; times++) call.send(Buffer.from('x'))
    call.end()
    for await (const message of call.messages()) if (message.length > 0) break
    expect(connection.http2.streamCount).toBe(0)
  })

  test('holds back a server whose messages are not read, and loses none', async () => {
    const server = http2.createServer()
    let isBlocked = false
    server.on('stream', (stream) => {
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc' },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      const message = encodeMessage(Buffer.alloc(100_000, 1))
      let left = 200
      const write = (): void => {
        while (left > 0 && stream.write(message)) left--
        if (left-- > 0) stream.once('drain', write)
        else stream.end()
        isBlocked = stream.writableNeedDrain
      }
      write()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    const connection = await connectTo((server.address() as AddressInfo).port)
    const call = connection.call('/x', { signal })
    call.end()
    await call.response
    await expect.poll(() => isBlocked).toBe(true)
    let bytes = 0
    for await (const message of call.messages()) bytes += message.length
    expect(bytes).toBe(200 * 100_000)
  })

  test('is not begun on a connection that the server shuts down or that has all its streams', async () => {
    const server = http2.createServer({ settings: { maxConcurrentStreams: 1 } })
    const sessions: http2.ServerHttp2Session[] = []
    server.on('session', (session) => sessions.push(session))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => {
      for (const session of sessions) session.destroy()
      server.close()
    })
    const connection = await connectTo((server.address() as AddressInfo).port)
    await expect.poll(() => connection.http2.maxPeerStreams).toBe(1)
    const first = connection.call('/x', { signal })
    expect(() => connection.call('/x', { signal })).toThrow(/no more streams/)
    first.cancel()
    sessions[0]?.goaway()
    await expect.poll(() => connection.http2.isGoingAway).toBe(true)
    expect(() => connection.call('/x', { signal })).toThrow(/no more streams/)
  })

  test.each([
    [{ ':status': 502 }, /HTTP status 502/],
    [{ ':status': 200, 'content-type': 'text/html' }, /does not speak gRPC/],
  ])('fails if the response is %j', async (headers, message) => {
    const server = http2.createServer()
    server.on('stream', (stream) => {
      stream.respond(headers)
      stream.end('<html>')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    const connection = await connectTo((server.address() as AddressInfo).port)
    await expect(connection.unary('/x', Buffer.alloc(0), { signal })).rejects.toThrow(message)
  })
})
