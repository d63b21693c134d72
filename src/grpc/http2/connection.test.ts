import { once } from 'node:events'
import http2 from 'node:http2'
import net, { type AddressInfo, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { Http2Connection } from './connection.ts'
import { frame, frameFlag, frameHeader, frameType, numberFrame, preface } from './frames.ts'
import { encodeHeaders } from './hpack.ts'
import type { Http2Stream } from './stream.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Served {
  readonly stream: Http2Stream
  readonly fields: readonly (readonly [string, string])[]
}

/** A server of ours on a real port, and what became of its connections. */
async function serve(onRequest: (served: Served) => void = () => {}) {
  const ends: (Error | undefined)[] = []
  let report: (error?: Error) => void = () => {}
  const server = net.createServer((socket) => {
    const connection: Http2Connection = new Http2Connection(
      socket,
      { side: 'server', maxStreams: 10, clock: systemClock },
      {
        request: (stream, fields) => onRequest({ stream, fields }),
        idle: () => {},
        closed: (error) => {
          ends.push(error)
          report(error)
        },
      },
    )
    closers.push(() => connection.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => new Promise((resolve) => server.close(resolve)))
  const { port } = server.address() as AddressInfo
  const closed = new Promise<Error | undefined>((resolve) => {
    report = resolve
  })
  return { port, closed }
}

async function connectRaw(port: number): Promise<Socket> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  closers.push(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

const echo = ({ stream }: Served): void => {
  stream.sendHeaders([[':status', '200']])
  stream.start({
    data: (chunk) => stream.write([chunk]),
    progress: () => {},
    finished: () => stream.end([['grpc-status', '0']]),
    closed: () => {},
  })
}

const opening = Buffer.concat([preface, frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))])
const requestFields = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
] as const
const request = (streamId: number, flags = frameFlag.END_HEADERS): Buffer =>
  frame(frameType.HEADERS, flags, streamId, encodeHeaders(requestFields))

describe('against node:http2', () => {
  test('[TUN-W3] headers, more bytes than any window, and trailers go both ways', async () => {
    const seen: Served[] = []
    const { port } = await serve((served) => {
      seen.push(served)
      echo(served)
    })
    const session = http2.connect(`http://127.0.0.1:${port}`)
    closers.push(() => session.destroy())
    const stream = session.request({
      ':method': 'POST',
      ':path': '/x',
      'x-some': 'Größe'.slice(0, 2),
    })
    const trailers = once(stream, 'trailers')
    const sent = Buffer.alloc(3_000_000, 'abcdefg')
    stream.end(sent)
    const received: Buffer[] = []
    for await (const chunk of stream) received.push(chunk as Buffer)
    expect(Buffer.concat(received).equals(sent)).toBe(true)
    expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0' })
    expect(seen[0]?.fields).toContainEqual([':path', '/x'])
  })

  test('[TUN-W3] our client talks to it as well, and measures the round trip', async () => {
    const server = http2.createServer()
    server.on('stream', (stream) => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.pipe(stream)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    const socket = await connectRaw((server.address() as AddressInfo).port)
    const connection = new Http2Connection(
      socket,
      { side: 'client', maxStreams: 1, clock: systemClock },
      { request: () => {}, idle: () => connection.close(), closed: () => {} },
    )
    const stream = connection.open([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', '/'],
      [':authority', 'x'],
    ])
    const heads: unknown[] = []
    stream.observe({ headers: (fields) => heads.push(fields), closed: () => {} })
    await new Promise<void>((resolve) => {
      connection.ping(resolve)
    })
    expect(connection.roundTripMs).toBeGreaterThan(0)
    let bytes = 0
    await new Promise<void>((resolve) => {
      stream.start({
        data: (chunk) => {
          bytes += chunk.length
        },
        progress: () => {},
        finished: () => {},
        closed: () => resolve(),
      })
      stream.write([Buffer.alloc(2_000_000)])
      stream.end()
    })
    expect(bytes).toBe(2_000_000)
    expect(heads).toHaveLength(2)
    expect(heads[1]).toContainEqual(['grpc-status', '0'])
  })
})

describe('what a connection bears', () => {
  test('[TUN-W21] a path as :authority, as older clients send it, is no error', async () => {
    const seen: Served[] = []
    let arrived: () => void = () => {}
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const { port } = await serve((served) => {
      seen.push(served)
      arrived()
    })
    const socket = await connectRaw(port)
    const fields = [
      ...requestFields,
      [':authority', '/etc/kubernetes/konnectivity.socket'],
    ] as const
    const block = encodeHeaders(fields)
    socket.write(
      Buffer.concat([opening, frame(frameType.HEADERS, frameFlag.END_HEADERS, 1, block)]),
    )
    await came
    expect(seen[0]?.fields).toEqual(fields)
  })

  test('[TUN-W3] padding, priorities, continued headers and unknown frames are understood', async () => {
    let got = ''
    let arrived: () => void = () => {}
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const { port } = await serve(({ stream }) => {
      stream.start({
        data: (chunk) => {
          got += chunk.toString()
          if (got === 'hello') arrived()
        },
        progress: () => {},
        finished: () => {},
        closed: () => {},
      })
    })
    const socket = await connectRaw(port)
    const block = encodeHeaders(requestFields)
    const padded = Buffer.concat([
      Buffer.from([3]),
      Buffer.alloc(5),
      block.subarray(0, 4),
      Buffer.alloc(3),
    ])
    socket.write(
      Buffer.concat([
        opening,
        frame(frameType.HEADERS, frameFlag.PADDED | frameFlag.PRIORITY, 1, padded),
        frame(frameType.CONTINUATION, frameFlag.END_HEADERS, 1, block.subarray(4)),
        frame(0xfe, 0, 1, Buffer.alloc(10)),
        frame(frameType.PRIORITY, 0, 1, Buffer.alloc(5)),
        frame(frameType.DATA, frameFlag.PADDED, 1, Buffer.from([2, 0x68, 0x65, 0x6c, 0, 0])),
        frame(frameType.DATA, 0, 1, Buffer.from('lo')),
      ]),
    )
    await came
    expect(got).toBe('hello')
  })
})

const refusals: [string, Buffer[]][] = [
  ['something other than HTTP/2', [Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')]],
  [
    'data of a stream that was never opened',
    [opening, frame(frameType.DATA, 0, 5, Buffer.alloc(1))],
  ],
  ['a stream with an even number', [opening, request(2)]],
  [
    'data after its end',
    [opening, request(1), frame(0, 1, 1, Buffer.alloc(1)), frame(0, 0, 1, Buffer.alloc(1))],
  ],
  [
    'headers that are interrupted',
    [opening, request(1, 0 as never), frame(frameType.PING, 0, 0, Buffer.alloc(8))],
  ],
  [
    'headers without end',
    [
      opening,
      request(1, 0 as never),
      ...Array.from({ length: 20 }, () => frame(frameType.CONTINUATION, 0, 1, Buffer.alloc(1))),
    ],
  ],
  [
    'headers that are continued but not begun',
    [opening, frame(frameType.CONTINUATION, 4, 1, Buffer.alloc(1))],
  ],
  ['a frame that is too long', [opening, frameHeader(frameType.PING, 0, 0, 100_000)]],
  ['a window that grows by nothing', [opening, numberFrame(frameType.WINDOW_UPDATE, 0, 0)]],
  ['a window beyond 2^31', [opening, numberFrame(frameType.WINDOW_UPDATE, 0, 2 ** 31 - 1)]],
  ['settings that are cut off', [opening, frame(frameType.SETTINGS, 0, 0, Buffer.alloc(7))]],
  ['a push', [opening, frame(frameType.PUSH_PROMISE, 4, 1, Buffer.alloc(8))]],
  [
    'a frame that is all padding',
    [opening, request(1), frame(0, frameFlag.PADDED, 1, Buffer.from([9, 1]))],
  ],
  [
    'more data than the window of a stream that nobody reads',
    [opening, request(1), ...Array.from({ length: 5 }, () => frame(0, 0, 1, Buffer.alloc(16_000)))],
  ],
]

describe('what a connection refuses', () => {
  test.each(refusals)('[TUN-W3] %s ends the connection with GOAWAY', async (_name, chunks) => {
    const { port, closed } = await serve()
    const socket = await connectRaw(port)
    let answer = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      answer = Buffer.concat([answer, chunk])
    })
    socket.write(Buffer.concat(chunks))
    expect(await closed).toMatchObject({ code: 'HTTP2_ERROR' })
    if (!socket.readableEnded) await once(socket, 'end')
    expect(answer.includes(frameHeader(frameType.GOAWAY, 0, 0, 8))).toBe(true)
  })

  test('[TUN-W3] opening and resetting streams for ever is cut off (CVE-2023-44487)', async () => {
    const { port, closed } = await serve()
    const socket = await connectRaw(port)
    socket.write(opening)
    for (let index = 0; index < 2_100; index++)
      socket.write(
        Buffer.concat([
          request(2 * index + 1),
          numberFrame(frameType.RST_STREAM, 2 * index + 1, 8),
        ]),
      )
    expect((await closed)?.message).toMatch(/resets too many/)
  })

  test('[TUN-W14] changing settings for ever is answered with GOAWAY', async () => {
    const { port, closed } = await serve()
    const socket = await connectRaw(port)
    socket.resume()
    socket.write(opening)
    for (let index = 0; index < 150; index++)
      socket.write(frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0)))
    expect((await closed)?.message).toMatch(/settings too often/)
  })

  test('[TUN-W14] pinging for ever with nothing to say is answered with GOAWAY', async () => {
    const { port, closed } = await serve()
    const socket = await connectRaw(port)
    socket.resume()
    socket.write(opening)
    for (let index = 0; index < 1_100; index++)
      socket.write(frame(frameType.PING, 0, 0, Buffer.alloc(8)))
    expect((await closed)?.message).toMatch(/too many pings/)
  })

  test('[TUN-W3] one stream more than allowed is refused, the others go on', async () => {
    const { port } = await serve(echo)
    const session = http2.connect(`http://127.0.0.1:${port}`)
    closers.push(() => session.destroy())
    await once(session, 'remoteSettings')
    expect(session.remoteSettings.maxConcurrentStreams).toBe(10)
  })

  test('[TUN-W3] any frames whatever leave the process standing', async () => {
    const { port } = await serve(echo)
    const anyFrame = fc
      .tuple(fc.nat(11), fc.nat(255), fc.nat(5), fc.uint8Array({ maxLength: 40 }))
      .map(([type, flags, id, payload]) => frame(type, flags, id, Buffer.from(payload)))
    await fc.assert(
      fc.asyncProperty(fc.array(anyFrame, { maxLength: 12 }), async (frames) => {
        const socket = await connectRaw(port)
        socket.resume()
        socket.end(Buffer.concat([opening, ...frames]))
        await once(socket, 'close')
      }),
      { numRuns: 150 },
    )
    expect(await connectRaw(port)).toMatchObject({ readyState: 'open' })
  })
})
