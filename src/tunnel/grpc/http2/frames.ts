/** HTTP/2's frame types (RFC 9113 §6). */
export const frameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const

/** The flags of frames; END_STREAM and ACK share a bit. */
export const frameFlag = {
  END_STREAM: 0x1,
  ACK: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const

/** The settings that matter here (RFC 9113 §6.5.2). */
export const settingId = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const

/** What a client says before its first frame. */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** The length of every frame's header. */
export const frameHeaderBytes = 9

/** The window of a stream or connection of which nothing else has been said, and the largest one. */
export const defaultWindowBytes = 65_535
export const maxWindowBytes = 2 ** 31 - 1

/** The frame size that every end takes. */
export const defaultFrameBytes = 16_384

/** A frame's header; the payload follows. */
export function frameHeader(type: number, flags: number, streamId: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(frameHeaderBytes)
  header.writeUIntBE(length, 0, 3)
  header[3] = type
  header[4] = flags
  header.writeUInt32BE(streamId, 5)
  return header
}

/** A whole frame with a short payload. */
export const frame = (type: number, flags: number, streamId: number, payload: Buffer): Buffer =>
  Buffer.concat([frameHeader(type, flags, streamId, payload.length), payload])

/** A frame whose payload is one 32-bit number: WINDOW_UPDATE or RST_STREAM. */
export function numberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4)
  payload.writeUInt32BE(value)
  return frame(type, 0, streamId, payload)
}

/** A SETTINGS frame. */
export function settingsFrame(settings: ReadonlyMap<number, number>): Buffer {
  const payload = Buffer.allocUnsafe(settings.size * 6)
  let offset = 0
  for (const [id, value] of settings) {
    payload.writeUInt16BE(id, offset)
    payload.writeUInt32BE(value, offset + 2)
    offset += 6
  }
  return frame(frameType.SETTINGS, 0, 0, payload)
}

/** The identifiers and values in a SETTINGS frame, in order. */
export function* settingsIn(payload: Buffer): Generator<readonly [number, number]> {
  for (let offset = 0; offset + 6 <= payload.length; offset += 6)
    yield [payload.readUInt16BE(offset), payload.readUInt32BE(offset + 2)]
}

/** A GOAWAY frame. */
export function goAwayFrame(lastStreamId: number, code: number): Buffer {
  const payload = Buffer.allocUnsafe(8)
  payload.writeUInt32BE(lastStreamId)
  payload.writeUInt32BE(code, 4)
  return frame(frameType.GOAWAY, 0, 0, payload)
}
