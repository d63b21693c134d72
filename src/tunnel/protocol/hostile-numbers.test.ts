import { describe, expect, test } from 'vitest'
import { allCapabilities, type LinkSide } from '../link/index.ts'
import { RawPeer } from '../link/raw-peer.suite.ts'
import { type ControlPacket, encodePacket, PacketDecoder, ProtocolError } from './index.ts'

/** Encodings of numbers at every edge, as bytes on the wire. */
const numbers: Readonly<Record<string, readonly number[]>> = {
  zero: [0],
  one: [1],
  two: [2],
  three: [3],
  'one in two bytes': [0x81, 0],
  'one in ten bytes': [0x81, ...Array(8).fill(0x80), 0],
  '2^31 - 1': [0xff, 0xff, 0xff, 0xff, 0x07],
  '2^31': [0x80, 0x80, 0x80, 0x80, 0x08],
  '2^32': [0x80, 0x80, 0x80, 0x80, 0x10],
  '2^53 - 1': [...Array(7).fill(0xff), 0x0f],
  '2^53': [...Array(7).fill(0x80), 0x10],
  '2^63 - 1': [...Array(8).fill(0xff), 0x7f],
  '2^63': [...Array(9).fill(0x80), 0x01],
  'minus one': [...Array(9).fill(0xff), 0x01],
  'more than 64 bits in ten bytes': [...Array(9).fill(0xff), 0x7f],
  'eleven bytes': [...Array(10).fill(0xff), 0x01],
  'eleven bytes of zero': [...Array(10).fill(0x80), 0],
}

/** Each packet type: the field of its payload, and the number fields inside. */
const shapes: Readonly<Record<string, readonly [type: number, field: number, numbers: number[]]>> =
  {
    DIAL_REQ: [0, 2, [3]],
    DIAL_RSP: [1, 3, [2, 3]],
    CLOSE_REQ: [2, 5, [1]],
    CLOSE_RSP: [3, 6, [2]],
    DATA: [4, 4, [1]],
    DIAL_CLS: [5, 7, [1]],
    DRAIN: [6, 8, []],
    CREDIT: [100, 100, [1, 2]],
    FIN: [101, 101, [1]],
  }

const tag = (field: number, wireType: number): number[] => {
  const value = field * 8 + wireType
  return value < 128 ? [value] : [(value % 128) | 0x80, value >> 7]
}

const message = (body: readonly number[]): Buffer => Buffer.from([0, 0, 0, 0, body.length, ...body])

/** Messages in which one number at a time, of the envelope or of the payload, has this encoding. */
function* messagesWith(name: string, encoding: readonly number[]): Generator<Buffer> {
  const [type, field, inside] = shapes[name] ?? [0, 0, []]
  // A DATA packet is read in another way if its payload is the last thing in it.
  const bytes = name === 'DATA' ? [[...tag(3, 2), 1, 0x78], []] : [[]]
  for (const last of bytes) {
    const small = inside.flatMap((number) => [...tag(number, 0), 7])
    const content = [...small, ...last]
    const payload = [...tag(field, 2), content.length, ...content]
    yield message([0x08, ...encoding, ...payload])
    yield message([0x08, type, 0x48, ...encoding, ...payload])
    yield message([0x08, type, ...payload, 0x48, ...encoding])
    yield message([0x08, type, ...tag(field, 2), ...encoding])
    yield message([0x08, type, ...payload, ...tag(15, 0), ...encoding])
    for (const hostile of inside) {
      const fields = inside.flatMap((number) => [
        ...tag(number, 0),
        ...(number === hostile ? encoding : [7]),
      ])
      const inner = [...fields, ...last]
      yield message([0x08, type, ...tag(field, 2), inner.length, ...inner])
    }
  }
}

const isExact = (value: unknown): boolean =>
  typeof value === 'bigint' || (Number.isSafeInteger(value) && Number(value) >= 0)

/** Numbers of what is decoded; a ProtocolError ends it. */
function decodedNumbers(bytes: Buffer): unknown[] {
  const found: unknown[] = []
  const decoder = new PacketDecoder({
    seen: () => {},
    packet: (packet: ControlPacket) => {
      const values = Object.values(packet).filter((value) => typeof value !== 'string')
      found.push(...values)
      if (values.every(isExact)) found.push(encodePacket(packet).length)
    },
    data: (connectId, dest) => found.push(connectId, dest),
    unknown: () => {},
  })
  try {
    decoder.push(bytes)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
  }
  return found
}

describe.each(Object.entries(numbers))('a number of a packet that is %s', (_number, encoding) => {
  test.each(Object.keys(shapes))('[SEC-R706] is exact in %s, or ends the link', (name) => {
    for (const bytes of messagesWith(name, encoding))
      expect(decodedNumbers(bytes).filter((value) => !isExact(value))).toEqual([])
  })

  test.each<LinkSide>(['server', 'agent', 'gateway', 'front-end'])(
    '[SEC-R706] makes the %s send little, or ends the link',
    async (side) => {
      for (const capabilities of [[], allCapabilities])
        for (const name of Object.keys(shapes))
          for (const bytes of messagesWith(name, encoding)) {
            const peer = new RawPeer(side, capabilities)
            peer.events?.data(bytes)
            for (const dial of peer.dials.splice(0)) dial.refuse('no')
            await peer.quiet()
            expect(peer.sent.length).toBeLessThanOrEqual(2)
            peer.link.close()
          }
    },
  )
})
