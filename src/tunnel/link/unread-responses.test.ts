import { readdirSync, readFileSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { silentLogger, systemClock } from '../../core/index.ts'
import {
  defaultWindowBytes,
  FrameReader,
  frame,
  frameFlag,
  frameType,
  numberFrame,
  preface,
} from '../../grpc/http2/frames.ts'
import { encodeHeaders } from '../../grpc/http2/hpack.ts'
import { type HeaderField, Http2Connection } from '../../grpc/http2/index.ts'
import { maxQueuedBytes, maxSocketBytes } from '../../grpc/http2/limits.ts'
import type { Authentication } from '../../grpc/index.ts'
import { encodeDataHead, encodePacket, packetType } from '../protocol/index.ts'
import { LinkServer, type LinkServerOptions } from './index.ts'

/** A connection whose peer is this test. It reads nothing of what is written, or everything. */
class PeerSocket extends Duplex {
  #reads: boolean
  #waiting: (() => void) | undefined
  written = 0
  /** What was written, if the peer reads. */
  readonly seen: Buffer[] = []

  constructor(reads: boolean) {
    super({ readableHighWaterMark: 1 })
    this.#reads = reads
    this.on('error', () => {})
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const read = (): void => {
      this.written += chunk.length
      // The memory is used again afterwards.
      this.seen.push(Buffer.from(chunk))
      done()
    }
    if (this.#reads) read()
    else this.#waiting = read
  }

  /** From now on it reads everything. */
  readAll(): void {
    this.#reads = true
    this.#waiting?.()
  }

  setNoDelay(): this {
    return this
  }

  /** Sends frames as a kernel hands them over, and lets the other end react. */
  async send(frames: readonly Buffer[]): Promise<void> {
    const bytes = Buffer.concat(frames)
    for (let at = 0; at < bytes.length && !this.destroyed; at += 65_536) {
      this.push(bytes.subarray(at, at + 65_536))
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

const times = 10_000
/**
 * What may wait: the queue's limit, the frame that went over it, the opening SETTINGS and a last GOAWAY; and DATA for as
 * much as the peer's window allows.
 */
const boundBytes = maxQueuedBytes + 4_096 + defaultWindowBytes

const text = (value: string): Buffer => {
  const length =
    value.length < 127
      ? [value.length]
      : [0x7f, ((value.length - 127) % 128) | 0x80, (value.length - 127) >> 7]
  return Buffer.concat([Buffer.from(length), Buffer.from(value, 'latin1')])
}
/** A field that the decoder remembers, so that one byte repeats it. */
const remembered = ([name, value]: HeaderField): Buffer =>
  Buffer.concat([Buffer.from([0x40]), text(name), text(value)])
const again = Buffer.from([0xbe])

const fields = (changes: Readonly<Record<string, string>> = {}): HeaderField[] =>
  Object.entries({
    ':method': 'POST',
    ':scheme': 'http',
    ':path': '/AgentService/Connect',
    'content-type': 'application/grpc',
    agentid: 'a',
    ...changes,
  })

const headers = (streamId: number, block: Buffer, flags = 0): Buffer =>
  frame(frameType.HEADERS, frameFlag.END_HEADERS | flags, streamId, block)

/** The same request on ever new streams; `longest` is sent once and repeated by one byte. */
const requests = (changes: Readonly<Record<string, string>>, flags = 0, longest?: HeaderField) =>
  Array.from({ length: times }, (_, index) => {
    const long = longest ? [index === 0 ? remembered(longest) : again] : []
    const all = fields(changes)
    const pseudo = encodeHeaders(all.filter(([name]) => name.startsWith(':')))
    const regular = encodeHeaders(all.filter(([name]) => !name.startsWith(':')))
    return headers(2 * index + 1, Buffer.concat([pseudo, ...long, regular]), flags)
  })

const repeated = (...frames: readonly Buffer[]): Buffer[] =>
  Array.from({ length: times }, () => frames).flat()

const onStreams = (make: (streamId: number) => readonly Buffer[]): Buffer[] =>
  Array.from({ length: times }, (_, index) => make(2 * index + 1)).flat()

const block = encodeHeaders(fields())
const admitted: Authentication = { metadata: { serverid: 's', servercount: '1' } }
const refusedByCheck: Authentication = { grpcStatus: 2, message: 'no' }

interface Flood {
  readonly type: keyof typeof frameType | 'unknown'
  readonly frames: () => readonly Buffer[]
  readonly admission?: Authentication
}

const data = (streamId: number, ...parts: readonly Buffer[]): Buffer =>
  frame(frameType.DATA, 0, streamId, Buffer.concat(parts))
const dial = (random: bigint): Buffer =>
  encodePacket({
    type: packetType.DIAL_REQ,
    protocol: 'tcp',
    address: 'x'.repeat(1_000),
    random,
    dest: 0,
  })

/** Everything that a peer can send and that makes us send something, and everything that should not. */
const floods: Readonly<Record<string, Flood>> = {
  'a content type that is not gRPC, repeated by HPACK': {
    type: 'HEADERS',
    frames: () =>
      requests({ 'content-type': 'text/plain' }, 0, ['content-type', 'é'.repeat(4_000)]),
  },
  'a content type that is not gRPC, and the end of the request': {
    type: 'HEADERS',
    frames: () => requests({ 'content-type': 'text/plain' }, frameFlag.END_STREAM),
  },
  'a method that is not POST': {
    type: 'HEADERS',
    frames: () => requests({ ':method': 'é'.repeat(400) }),
  },
  'a path of another service': {
    type: 'HEADERS',
    frames: () => requests({ ':path': `/${'é'.repeat(400)}/x` }),
  },
  'a method of this service that does not exist': {
    type: 'HEADERS',
    frames: () => requests({ ':path': `/AgentService/${'é'.repeat(400)}` }),
  },
  'a credential that is refused': {
    type: 'HEADERS',
    frames: () => requests({}),
    admission: refusedByCheck,
  },
  'a credential that is refused, and the end of the request': {
    type: 'HEADERS',
    frames: () => requests({}, frameFlag.END_STREAM),
    admission: refusedByCheck,
  },
  'more streams than there may be': { type: 'HEADERS', frames: () => requests({}) },
  'streams that are opened and left': {
    type: 'RST_STREAM',
    frames: () => onStreams((id) => [headers(id, block), numberFrame(frameType.RST_STREAM, id, 8)]),
  },
  'streams whose window overflows': {
    type: 'WINDOW_UPDATE',
    frames: () =>
      onStreams((id) => [
        headers(id, block),
        numberFrame(frameType.WINDOW_UPDATE, id, 2 ** 31 - 1),
      ]),
  },
  'headers in pieces': {
    type: 'CONTINUATION',
    frames: () =>
      onStreams((id) => [
        frame(frameType.HEADERS, 0, id, encodeHeaders(fields({ ':method': 'GET' }))),
        frame(frameType.CONTINUATION, frameFlag.END_HEADERS, id, Buffer.alloc(0)),
      ]),
  },
  'headers of one stream again and again': {
    type: 'HEADERS',
    frames: () => repeated(headers(1, block)),
  },
  pings: { type: 'PING', frames: () => repeated(frame(frameType.PING, 0, 0, Buffer.alloc(8))) },
  'pings in between requests that are answered': {
    type: 'PING',
    frames: () =>
      onStreams((id) => [
        ...Array.from({ length: 20 }, () => frame(frameType.PING, 0, 0, Buffer.alloc(8))),
        headers(id, block),
        numberFrame(frameType.RST_STREAM, id, 8),
      ]),
  },
  'answers to pings': {
    type: 'PING',
    frames: () => repeated(frame(frameType.PING, frameFlag.ACK, 0, Buffer.alloc(8))),
  },
  settings: {
    type: 'SETTINGS',
    frames: () => repeated(frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))),
  },
  priorities: {
    type: 'PRIORITY',
    frames: () => repeated(frame(frameType.PRIORITY, 0, 1, Buffer.alloc(5))),
  },
  'a push': {
    type: 'PUSH_PROMISE',
    frames: () => repeated(frame(frameType.PUSH_PROMISE, 4, 1, Buffer.alloc(8))),
  },
  goodbyes: {
    type: 'GOAWAY',
    frames: () => repeated(frame(frameType.GOAWAY, 0, 0, Buffer.alloc(8))),
  },
  'frames of no known type': {
    type: 'unknown',
    frames: () => repeated(frame(99, 0, 1, Buffer.alloc(10))),
  },
  'data of no stream': { type: 'DATA', frames: () => repeated(data(1, Buffer.alloc(10))) },
  'empty data': { type: 'DATA', frames: () => [headers(1, block), ...repeated(data(1))] },
  'dials in a direction that was not agreed on': {
    type: 'DATA',
    frames: () => [headers(1, block), ...repeated(data(1, dial(1n)))],
  },
  'data of tunnelled connections that do not exist': {
    type: 'DATA',
    frames: () => [
      headers(1, block),
      ...repeated(data(1, encodeDataHead(7, 0, 1), Buffer.alloc(1))),
    ],
  },
  'closing of tunnelled connections that do not exist': {
    type: 'DATA',
    frames: () => [
      headers(1, block),
      ...repeated(data(1, encodePacket({ type: packetType.CLOSE_REQ, connectId: 7, dest: 0 }))),
    ],
  },
  'answers to dials that were never sent': {
    type: 'DATA',
    frames: () => [
      headers(1, block),
      ...repeated(
        data(
          1,
          encodePacket({ type: packetType.DIAL_RSP, random: 1n, error: '', connectId: 7, dest: 0 }),
        ),
      ),
    ],
  },
}

type Service = Pick<LinkServerOptions, 'path' | 'maxStreams'>
const agentService: Service = { path: '/AgentService/Connect', maxStreams: 10 }
/** As kube-apiserver uses it, with many streams. */
const proxyService: Service = { path: '/ProxyService/Proxy', maxStreams: 1_000 }

/** Makes requests for agents into requests for the other service. */
const forService = (frames: readonly Buffer[], { path }: Service): Buffer[] => {
  const [from, to] = [text('/AgentService/Connect'), text(path)]
  return frames.map((each) => {
    const at = each.indexOf(from)
    if (at < 0 || path === '/AgentService/Connect') return each
    const payload = Buffer.concat([each.subarray(9, at), to, each.subarray(at + from.length)])
    return frame(each[3] ?? 0, each[4] ?? 0, each.readUInt32BE(5), payload)
  })
}

function serve(socket: PeerSocket, admission: Authentication, served = agentService): void {
  const service = new LinkServer({
    ...served,
    capabilities: [],
    log: silentLogger,
    authenticate: () => Promise.resolve(admission),
    onLink: (link) => link.start({ dial: (each) => each.refuse('no'), drain: () => {} }),
  })
  service.cleartextServer().emit('connection', socket)
}

const opening = Buffer.concat([preface, frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))])

describe('a peer that does not read', () => {
  test('[SEC-R701] every type of frame has its row', () => {
    const covered = new Set(Object.values(floods).map(({ type }) => type))
    expect([...covered].toSorted()).toEqual([...Object.keys(frameType), 'unknown'].toSorted())
  })

  describe.each([
    ['an agent', agentService],
    ['a front end', proxyService],
  ])('as %s', (_who, served) => {
    test.each(Object.entries(floods))(
      `[SEC-R701] ${times} times %s wait in bounded memory`,
      async (_name, { frames, admission = admitted }) => {
        const socket = new PeerSocket(false)
        serve(socket, admission, served)
        await socket.send([opening, ...forService(frames(), served)])
        expect(socket.writableLength).toBeGreaterThan(0)
        expect(socket.writableLength).toBeLessThan(boundBytes)
        socket.destroy()
      },
    )
  })

  /** Our client against a server that does the same. */
  const fromServers = ['PING', 'SETTINGS', 'PRIORITY', 'GOAWAY', 'PUSH_PROMISE', 'unknown', 'DATA']
  test.each(Object.entries(floods).filter(([, { type }]) => fromServers.includes(type)))(
    `[SEC-R701] as a server: ${times} times %s wait in bounded memory at our client`,
    async (_name, { frames }) => {
      const socket = new PeerSocket(false)
      const connection = clientOn(socket)
      const stream = connection.open(fields())
      stream.observe({ headers: () => {}, closed: () => {} })
      await socket.send([frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0)), ...frames()])
      expect(socket.writableLength).toBeLessThan(boundBytes)
      socket.destroy()
    },
  )
})

const clientOn = (socket: PeerSocket): Http2Connection =>
  new Http2Connection(
    socket as never,
    { side: 'client', maxStreams: 1, clock: systemClock },
    { request: () => {}, idle: () => {}, closed: () => {} },
  )

/** Fills the queue without reaching another limit: pings, and in between requests that are answered. */
const filling = (): Buffer[] => [
  opening,
  ...(floods['pings in between requests that are answered']?.frames() ?? []),
]

describe('a full queue', () => {
  test('[SEC-R701] stops reading, and goes on when the peer reads again', async () => {
    const socket = new PeerSocket(false)
    serve(socket, admitted)
    await socket.send(filling().slice(0, 4_000))
    expect(socket.isPaused()).toBe(true)
    expect(socket.destroyed).toBe(false)
    const unread = socket.readableLength
    socket.readAll()
    await expect.poll(() => socket.isPaused()).toBe(false)
    await expect.poll(() => socket.readableLength).toBeLessThan(Math.max(unread, 1))
    socket.destroy()
  })

  test('[SEC-R701] loses no byte of a frame that had begun before', () => {
    const sent = frame(frameType.PING, 0, 0, Buffer.from('12345678'))
    for (let split = 1; split < sent.length; split++) {
      let isFull = false
      const received: string[] = []
      const reader = new FrameReader(
        {
          dataBegins: () => {},
          data: () => {},
          dataEnds: () => {},
          frame: ({ payload }) => received.push(payload.toString()),
          mustPause: () => isFull,
        },
        16_384,
        Buffer.alloc(0),
      )
      reader.push(sent.subarray(0, split))
      isFull = true
      const unread = reader.push(sent.subarray(split))
      isFull = false
      if (unread) reader.push(unread)
      expect(received).toEqual(['12345678'])
    }
  })

  test('[SEC-R701] of which nothing leaves for 30 seconds ends its connection', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const socket = new PeerSocket(false)
      const connection = clientOn(socket)
      connection.open(fields())
      await socket.send(
        Array.from({ length: 3_000 }, (_, index) => index).flatMap((index) =>
          index % 900 === 0
            ? [frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))]
            : [frame(frameType.PING, 0, 0, Buffer.alloc(8))],
        ),
      )
      vi.advanceTimersByTime(29_999)
      expect(socket.destroyed).toBe(false)
      vi.advanceTimersByTime(1)
      expect(socket.destroyed).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })
})

/** Windows that are opened in the smallest steps, `steps` times. */
const smallSteps: Readonly<Record<string, (steps: number) => readonly Buffer[]>> = {
  'the window of a stream': (steps) => [
    numberFrame(frameType.WINDOW_UPDATE, 0, 2 ** 30),
    ...Array.from({ length: steps }, () => numberFrame(frameType.WINDOW_UPDATE, 1, 1)),
  ],
  'the window of the connection': (steps) => [
    numberFrame(frameType.WINDOW_UPDATE, 1, 2 ** 30),
    ...Array.from({ length: steps }, () => numberFrame(frameType.WINDOW_UPDATE, 0, 1)),
  ],
  'the first window of all streams': (steps) => [
    numberFrame(frameType.WINDOW_UPDATE, 0, 2 ** 30),
    ...Array.from({ length: steps / 2_500 }, (_, frameIndex) =>
      frame(
        frameType.SETTINGS,
        0,
        0,
        Buffer.concat(
          Array.from({ length: 2_500 }, (_each, index) => {
            const setting = Buffer.from([0, 4, 0, 0, 0, 0])
            setting.writeUInt32BE(defaultWindowBytes + 2_500 * frameIndex + index + 1, 2)
            return setting
          }),
        ),
      ),
    ),
  ],
}

describe('payload for a peer that does not read', () => {
  const steps = 100_000
  /** What the windows allow before the first step. */
  const first = defaultWindowBytes

  test.each(Object.entries(smallSteps))(
    '[SEC-R707] is not cut into single bytes by %s, and arrives whole when it reads',
    async (_name, open) => {
      const socket = new PeerSocket(false)
      const connection = clientOn(socket)
      const stream = connection.open(fields())
      stream.observe({ headers: () => {}, closed: () => {} })
      const payload = Buffer.from(Array.from({ length: first + steps }, (_, index) => index % 251))
      stream.write([payload])
      await socket.send([frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0)), ...open(steps)])
      expect(socket.writableLength).toBeLessThan(maxSocketBytes + boundBytes)
      socket.readAll()
      await expect.poll(() => dataIn(socket.seen).length).toBe(payload.length)
      expect(dataIn(socket.seen).equals(payload)).toBe(true)
      socket.destroy()
    },
  )

  test('[SEC-R707] waits for its turn on every stream of the connection', async () => {
    const socket = new PeerSocket(false)
    const connection = clientOn(socket)
    const streams = Array.from({ length: 20 }, () => connection.open(fields()))
    await socket.send([
      frame(frameType.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 1, 0, 0])),
      numberFrame(frameType.WINDOW_UPDATE, 0, 2 ** 30),
    ])
    for (const stream of streams)
      for (let at = 0; at < 60; at++) stream.write([Buffer.alloc(1_000)])
    expect(socket.writableLength).toBeLessThan(maxSocketBytes + boundBytes)
    socket.readAll()
    await expect.poll(() => dataIn(socket.seen).length).toBe(20 * 60 * 1_000)
    socket.destroy()
  })
})

/** The payload of all DATA frames. */
function dataIn(chunks: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat(chunks)
  const found: Buffer[] = []
  for (let at = preface.length; at < bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    if (bytes[at + 3] === frameType.DATA) found.push(bytes.subarray(at + 9, end))
    at = end
  }
  return Buffer.concat(found)
}

describe('what a peer sent', () => {
  test('[SEC-R703] is put into messages by one function alone', () => {
    const sources = ['src/grpc', 'src/tunnel'].flatMap((directory) =>
      readdirSync(directory, { recursive: true, encoding: 'utf8' }).map(
        (name) => `${directory}/${name}`,
      ),
    )
    const quoting = sources.filter(
      (path) =>
        path.endsWith('.ts') &&
        !/\.(?:test|suite)\.ts$/.test(path) &&
        readFileSync(path, 'utf8').includes('JSON.stringify('),
    )
    // A profile of V8 as a response of its own.
    expect(quoting).toEqual(['src/tunnel/ports/profiling.ts'])
  })
})

describe('a peer that reads', () => {
  test('[SEC-R701] gets every response, in order', async () => {
    const socket = new PeerSocket(true)
    serve(socket, admitted)
    const ping = (index: number): Buffer => {
      const payload = Buffer.alloc(8)
      payload.writeUInt32BE(index)
      return frame(frameType.PING, 0, 0, payload)
    }
    await socket.send([opening, ...Array.from({ length: 900 }, (_, index) => ping(index))])
    const acks = Buffer.concat(socket.seen).toString('latin1').split('\x08\x06\x01')
    expect(acks.length - 1).toBe(900)
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })

  test('[SEC-R702] may be refused 100 times in ten seconds on a connection, which then ends', async () => {
    const socket = new PeerSocket(true)
    serve(socket, admitted)
    await socket.send([opening, ...requests({ 'content-type': 'text/plain' })])
    const all = Buffer.concat(socket.seen)
    expect(all.toString('latin1').split('invalid gRPC request').length - 1).toBe(100)
    const calm = Buffer.from([0, 0, 0, 11])
    expect(all.subarray(-4)).toEqual(calm)
  })

  test('[SEC-R703] reads at most 100 characters of what it sent', async () => {
    const socket = new PeerSocket(true)
    serve(socket, admitted)
    const long = 'x'.repeat(5_000)
    const wrong = [{ 'content-type': long }, { ':method': long }, { ':path': `/${long}/y` }]
    const sent = wrong.map((changes, index) =>
      headers(2 * index + 1, encodeHeaders(fields(changes))),
    )
    await socket.send([opening, ...sent])
    const runs =
      Buffer.concat(socket.seen)
        .toString('latin1')
        .match(/x{20,}/g) ?? []
    expect(runs.map(({ length }) => length)).toEqual([100, 100, 100])
    socket.destroy()
  })
})
