import { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { Http2Connection } from './connection.ts'
import { errorCode, frame, frameFlag, frameType, numberFrame, preface } from './frames.ts'
import { encodeHeaders, type HeaderField } from './hpack.ts'
import { maxRefusals } from './limits.ts'

/** A connection whose peer is this test and reads everything. */
class PeerSocket extends Duplex {
  readonly #written: Buffer[] = []

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // The memory is reused afterwards.
    this.#written.push(Buffer.from(chunk))
    done()
  }

  async send(frames: readonly Buffer[]): Promise<void> {
    for (let at = 0; at < frames.length; at += 50) {
      this.push(Buffer.concat(frames.slice(at, at + 50)))
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Frames that we have sent: type and the last 4 bytes of the payload as a number. */
  sent(): { type: number; code: number }[] {
    const bytes = Buffer.concat(this.#written)
    const frames: { type: number; code: number }[] = []
    for (let at = bytes.indexOf(preface) === 0 ? preface.length : 0; at < bytes.length; ) {
      const length = bytes.readUIntBE(at, 3)
      const end = at + 9 + length
      frames.push({ type: bytes[at + 3] ?? 0, code: length < 4 ? 0 : bytes.readUInt32BE(end - 4) })
      at = end
    }
    return frames
  }

  get resets(): number[] {
    return this.sent()
      .filter(({ type }) => type === frameType.RST_STREAM)
      .map(({ code }) => code)
  }

  get goAway(): number | undefined {
    return this.sent().find(({ type }) => type === frameType.GOAWAY)?.code
  }
}

const maxStreams = 3

/** A server that never responds, so that only the peer closes a stream. */
function serve(): PeerSocket {
  const socket = new PeerSocket()
  new Http2Connection(
    socket as never,
    { side: 'server', maxStreams, clock: systemClock },
    { request: () => {}, idle: () => {}, closed: () => {} },
  )
  return socket
}

const opening = Buffer.concat([preface, frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))])
const requestFields: readonly HeaderField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
]
const headers = (id: number, fields: readonly HeaderField[], flags = 0): Buffer =>
  frame(frameType.HEADERS, frameFlag.END_HEADERS | flags, id, encodeHeaders(fields))
const request = (id: number, ...more: readonly HeaderField[]): Buffer =>
  headers(id, [...requestFields, ...more])
const data = (id: number, text: string, flags = 0): Buffer =>
  frame(frameType.DATA, flags, id, Buffer.from(text))
const initialWindow = (bytes: number): Buffer => {
  const setting = Buffer.from([0, 4, 0, 0, 0, 0])
  setting.writeUInt32BE(bytes, 2)
  return frame(frameType.SETTINGS, 0, 0, setting)
}

interface Cause {
  readonly type: keyof typeof frameType
  /** The last frame of these makes us reset stream `id`. */
  readonly frames: (id: number) => readonly Buffer[]
  readonly code: number
}

const { PROTOCOL_ERROR, FLOW_CONTROL_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM } = errorCode

/** Every way in which a frame of a peer makes us reset a stream (CVE-2025-8671, "MadeYouReset"). */
const causes: Readonly<Record<string, Cause>> = {
  'a malformed request': {
    type: 'HEADERS',
    frames: (id) => [request(id, ['X-Upper', '1'])],
    code: PROTOCOL_ERROR,
  },
  'a request without a path': {
    type: 'HEADERS',
    frames: (id) => [headers(id, requestFields.slice(0, 2))],
    code: PROTOCOL_ERROR,
  },
  'an invalid content-length': {
    type: 'HEADERS',
    frames: (id) => [request(id, ['content-length', '-1'])],
    code: PROTOCOL_ERROR,
  },
  'a content-length without content': {
    type: 'HEADERS',
    frames: (id) => [
      headers(id, [...requestFields, ['content-length', '1']], frameFlag.END_STREAM),
    ],
    code: PROTOCOL_ERROR,
  },
  'trailers that do not end the stream': {
    type: 'HEADERS',
    frames: (id) => [request(id), headers(id, [['x-trailer', '1']])],
    code: PROTOCOL_ERROR,
  },
  'trailers with a pseudo-header field': {
    type: 'HEADERS',
    frames: (id) => [request(id), headers(id, [[':path', '/']], frameFlag.END_STREAM)],
    code: PROTOCOL_ERROR,
  },
  'one stream more than allowed': {
    type: 'HEADERS',
    frames: (id) => [request(id)],
    code: REFUSED_STREAM,
  },
  'a malformed request in two frames': {
    type: 'CONTINUATION',
    frames: (id) => [
      frame(frameType.HEADERS, 0, id, encodeHeaders(requestFields)),
      frame(
        frameType.CONTINUATION,
        frameFlag.END_HEADERS,
        id,
        encodeHeaders([['connection', 'close']]),
      ),
    ],
    code: PROTOCOL_ERROR,
  },
  'more content than announced': {
    type: 'DATA',
    frames: (id) => [request(id, ['content-length', '1']), data(id, 'ab')],
    code: PROTOCOL_ERROR,
  },
  'less content than announced': {
    type: 'DATA',
    frames: (id) => [request(id, ['content-length', '2']), data(id, 'a', frameFlag.END_STREAM)],
    code: PROTOCOL_ERROR,
  },
  'a window that overflows': {
    type: 'WINDOW_UPDATE',
    frames: (id) => [request(id), numberFrame(frameType.WINDOW_UPDATE, id, 2 ** 31 - 1)],
    code: FLOW_CONTROL_ERROR,
  },
  'an initial window that makes the window overflow': {
    type: 'SETTINGS',
    frames: (id) => [
      initialWindow(0),
      request(id),
      numberFrame(frameType.WINDOW_UPDATE, id, 2 ** 31 - 1),
      initialWindow(1),
    ],
    code: FLOW_CONTROL_ERROR,
  },
}

/** Frames that make us send no RST_STREAM, whatever they contain. */
const never = ['PRIORITY', 'RST_STREAM', 'PUSH_PROMISE', 'PING', 'GOAWAY'] as const

describe('streams that we reset because of the peer', () => {
  test('[SEC-R702] every frame type either has a cause or never makes us reset a stream', () => {
    const covered = new Set<string>([...Object.values(causes).map(({ type }) => type), ...never])
    expect([...covered].toSorted()).toEqual(Object.keys(frameType).toSorted())
  })

  test.each(Object.entries(causes))(
    '[SEC-R702] %s is a stream error; repeated, it ends the connection',
    async (_name, { frames, code }) => {
      const socket = serve()
      const isRefusal = code === REFUSED_STREAM
      const first = isRefusal ? maxStreams : 0
      const sent = Array.from({ length: maxStreams * first + 2 * maxRefusals }, (_, index) =>
        isRefusal && index < maxStreams ? [request(2 * index + 1)] : frames(2 * index + 1),
      )
      await socket.send([opening, ...sent.slice(0, first + 1).flat()])
      expect(socket.resets).toEqual([code])
      expect(socket.goAway).toBeUndefined()
      await socket.send(sent.slice(first + 1).flat())
      expect(socket.goAway).toBe(ENHANCE_YOUR_CALM)
      expect(socket.resets.length).toBeLessThanOrEqual(maxRefusals)
    },
  )

  test.each(never)('[SEC-R702] %s never makes us reset a stream', async (type) => {
    const payloads = [0, 1, 4, 5, 8, 9].flatMap((length) => [
      Buffer.alloc(length),
      Buffer.alloc(length, 0xff),
      Buffer.alloc(length, 1),
    ])
    for (const id of [0, 1, 2, 3])
      for (const flags of [0, 1, 4, 8, 0x20, 0xff])
        for (const payload of payloads) {
          const socket = serve()
          await socket.send([opening, request(1), frame(frameType[type], flags, id, payload)])
          expect(socket.resets).toEqual([])
        }
  })

  test('the other streams of the connection go on', async () => {
    const socket = serve()
    await socket.send([opening, request(1), request(3, ['X-Upper', '1']), data(1, 'a'), request(5)])
    expect(socket.resets).toEqual([PROTOCOL_ERROR])
    expect(socket.goAway).toBeUndefined()
  })

  test('frames that were in flight when we reset a stream are ignored', async () => {
    const socket = serve()
    const late = [data(1, 'a'), headers(1, [['x-trailer', '1']], frameFlag.END_STREAM)]
    await socket.send([opening, request(1, ['X-Upper', '1']), ...late, request(3)])
    expect(socket.resets).toEqual([PROTOCOL_ERROR])
    expect(socket.goAway).toBeUndefined()
  })
})

test('a client may cancel as many of its streams as it likes', async () => {
  const socket = new PeerSocket()
  const connection = new Http2Connection(
    socket as never,
    { side: 'client', maxStreams: 0, clock: systemClock },
    { request: () => {}, idle: () => {}, closed: () => {} },
  )
  for (let times = 0; times < 5 * maxRefusals; times++) connection.open(requestFields).cancel()
  await socket.send([frame(frameType.SETTINGS, 0, 0, Buffer.alloc(0))])
  expect(socket.goAway).toBeUndefined()
})
