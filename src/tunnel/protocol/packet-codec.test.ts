import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PacketDecoder } from './decode.ts'
import { encodeDataHead, encodePacket } from './encode.ts'
import type { ControlPacket } from './packet.ts'
import { type PacketTypeName, ProtocolError, packetType } from './packet.ts'

interface Seen {
  readonly packets: ControlPacket[]
  /** Payload by connection and direction, joined. */
  readonly data: Map<string, string>
  readonly unknown: number[]
  readonly types: PacketTypeName[]
}

function decoderInto(seen: Seen, maxMessageBytes?: number): PacketDecoder {
  return new PacketDecoder(
    {
      seen: (type) => seen.types.push(type),
      packet: (packet) => seen.packets.push(packet),
      data: (connectId, dest, chunk) => {
        const key = `${connectId}/${dest}`
        seen.data.set(key, (seen.data.get(key) ?? '') + chunk.toString('hex'))
      },
      unknown: (wireType) => seen.unknown.push(wireType),
    },
    maxMessageBytes,
  )
}

const nothingSeen = (): Seen => ({ packets: [], data: new Map(), unknown: [], types: [] })

function decodeAll(chunks: readonly Buffer[], maxMessageBytes?: number): Seen {
  const seen = nothingSeen()
  const decoder = decoderInto(seen, maxMessageBytes)
  for (const chunk of chunks) decoder.push(chunk)
  decoder.end()
  return seen
}

function failureOf(act: () => unknown): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}

function message(hex: string): Buffer {
  const body = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(body.length, 1)
  return Buffer.concat([prefix, body])
}

const dataPacket = (connectId: number, dest: number, payload: Buffer): Buffer =>
  Buffer.concat([encodeDataHead(connectId, dest, payload.length), payload])

const golden: [string, string, ControlPacket][] = [
  [
    'DIAL_REQ',
    '12150a03746370120c31302e302e302e313a343433186f',
    {
      type: packetType.DIAL_REQ,
      protocol: 'tcp',
      address: '10.0.0.1:443',
      random: 111n,
      dest: 0,
    },
  ],
  [
    'DIAL_RSP',
    '08011a041001186f',
    { type: packetType.DIAL_RSP, error: '', connectId: 1, random: 111n, dest: 0 },
  ],
  ['CLOSE_REQ', '08022a020801', { type: packetType.CLOSE_REQ, connectId: 1, dest: 0 }],
  ['CLOSE_RSP', '080332021001', { type: packetType.CLOSE_RSP, connectId: 1, error: '', dest: 0 }],
  ['DIAL_CLS', '08053a02086f', { type: packetType.DIAL_CLS, random: 111n, dest: 0 }],
  ['DRAIN', '08064200', { type: packetType.DRAIN, dest: 0 }],
]

describe('golden vectors', () => {
  test.each(golden)('[TUN-W1] %s is encoded as upstream does', (_name, hex, packet) => {
    expect(encodePacket(packet)).toEqual(message(hex))
  })

  test.each(golden)('[TUN-W1] %s is decoded as upstream means it', (_name, hex, packet) => {
    expect(decodeAll([message(hex)]).packets).toEqual([packet])
  })

  test('[TUN-W1] DATA is encoded and decoded as upstream does', () => {
    const hi = message('0804220608011a026869')
    expect(dataPacket(1, 0, Buffer.from('hi'))).toEqual(hi)
    expect(decodeAll([hi]).data).toEqual(new Map([['1/0', Buffer.from('hi').toString('hex')]]))
  })
})

test('[TUN-I15] a text that is meant to fill memory and logs is cut', () => {
  const address = 'x'.repeat(2 ** 20)
  const dial = { type: packetType.DIAL_REQ, protocol: 'tcp', address, random: 1n, dest: 0 } as const
  const [packet] = decodeAll([encodePacket(dial)]).packets
  expect(packet).toEqual({ ...dial, address: 'x'.repeat(1_024) })
})

test('[TUN-I15] a message whose payload does not come last arrives whole, in however many pieces', () => {
  const payload = Buffer.alloc(2 ** 20, 7)
  const inner = Buffer.concat([Buffer.from('1a808040', 'hex'), payload, Buffer.from('0801', 'hex')])
  const body = Buffer.concat([Buffer.from('080422868040', 'hex'), inner])
  const whole = message(body.toString('hex'))
  const seen = nothingSeen()
  const decoder = decoderInto(seen)
  decoder.push(whole.subarray(0, 100))
  for (let at = 100; at < whole.length - 1; at++) decoder.push(whole.subarray(at, at + 1))
  expect(seen.data.size).toBe(0)
  decoder.push(whole.subarray(-1))
  expect(seen.data.get('1/0')).toBe(payload.toString('hex'))
})

const dest = fc.constantFrom(0, 1, 2)
const connectId = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const random = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const text = fc.string({ unit: 'grapheme', maxLength: 30 })
const control: fc.Arbitrary<ControlPacket> = fc.oneof(
  fc.record({
    type: fc.constant(packetType.DIAL_REQ),
    protocol: text,
    address: text,
    random,
    dest,
  }),
  fc.record({ type: fc.constant(packetType.DIAL_RSP), error: text, connectId, random, dest }),
  fc.record({ type: fc.constant(packetType.CLOSE_REQ), connectId, dest }),
  fc.record({ type: fc.constant(packetType.CLOSE_RSP), error: text, connectId, dest }),
  fc.record({ type: fc.constant(packetType.DIAL_CLS), random, dest }),
  fc.record({ type: fc.constant(packetType.DRAIN), dest }),
  fc.record({ type: fc.constant(packetType.CREDIT), connectId, bytes: connectId, dest }),
  fc.record({ type: fc.constant(packetType.FIN), connectId, dest }),
)
const data = fc.record({
  type: fc.constant(packetType.DATA),
  connectId: fc.nat({ max: 3 }),
  dest,
  payload: fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes)),
})
const packets = fc.array(fc.oneof(control, data), { maxLength: 12 })

type AnyPacket = ControlPacket | { type: 4; connectId: number; dest: number; payload: Buffer }

const encode = (packet: AnyPacket): Buffer =>
  packet.type === packetType.DATA
    ? dataPacket(packet.connectId, packet.dest, packet.payload)
    : encodePacket(packet)

function cut(stream: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = []
  let position = 0
  for (let turn = 0; position < stream.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    chunks.push(stream.subarray(position, position + size))
    position += size
  }
  return chunks
}

describe('streams of packets', () => {
  test('[TUN-W1, TUN-W3] any packets, cut at any places, come out as they went in', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(packets, sizes, (sent, chunkSizes) => {
        const stream = Buffer.concat(sent.map((packet) => encode(packet)))
        const seen = decodeAll(cut(stream, chunkSizes))
        expect(seen.packets).toEqual(sent.filter((packet) => packet.type !== packetType.DATA))
        expect(seen.data).toEqual(decodeAll([stream]).data)
        expect(seen.types.length).toBe(sent.length)
      }),
    )
  })

  test('[TUN-W25] payload is handed on in the memory in which it came', () => {
    const packet = dataPacket(7, 0, Buffer.alloc(10_000, 1))
    const parts: Buffer[] = []
    const decoder = new PacketDecoder({
      seen: () => {},
      packet: () => {},
      data: (_id, _dest, chunk) => parts.push(chunk),
      unknown: () => {},
    })
    decoder.push(packet)
    expect(parts).toHaveLength(1)
    expect(parts[0]?.buffer).toBe(packet.buffer)
  })

  test('[TUN-W25] payload is handed on before the packet is complete', () => {
    const seen = nothingSeen()
    decoderInto(seen).push(dataPacket(7, 0, Buffer.alloc(10_000, 1)).subarray(0, 500))
    expect(seen.data.get('7/0')?.length).toBeGreaterThan(900)
  })
})

describe('legal packets in other shapes', () => {
  const hi = Buffer.from('hi').toString('hex')

  test.each([
    ['the payload before the type', '220608011a026869 0804'],
    ['the bytes before the connection id', '0804 22061a0268690801'],
    ['an unknown field behind', '0804 220608011a026869 f201026f6b'],
    ['an unknown field in between', '0804 f201026f6b 220608011a026869'],
    [
      'unknown numbers of every wire type',
      '0804 980601 a1060000000000000000 ad0600000000 220608011a026869',
    ],
    ['an error text beside the data', '0804 2208 0801 1200 1a026869'],
  ])('[TUN-W2] DATA with %s is understood', (_name, hex) => {
    for (const size of [1, 3, 1_000])
      expect(decodeAll(cut(message(hex), [size])).data).toEqual(new Map([['1/0', hi]]))
  })

  test('[TUN-W2] a packet of an unknown type is reported and passed over', () => {
    const seen = decodeAll([message('0863 9a060101'), message('08064200')])
    expect(seen.unknown).toEqual([99])
    expect(seen.packets).toEqual([{ type: packetType.DRAIN, dest: 0 }])
  })

  test.each([0n, 1n, 2n ** 63n - 1n, -1n, -(2n ** 63n)])(
    '[TUN-W2] random %s keeps all its bits',
    (value) => {
      const packet = { type: packetType.DIAL_CLS, random: value, dest: 0 }
      expect(decodeAll([encodePacket(packet)]).packets).toEqual([packet])
    },
  )
})

describe('what is refused', () => {
  test.each([
    ['an empty message', ''],
    ['a type without its payload', '0801'],
    ['a type with another payload', '0801 2a020801'],
    ['a negative connection id', '0802 2a0b 08ffffffffffffffffff01'],
    ['a connection id above 2^53', '0802 2a0a 08808080808080808001'],
    ['a field that is longer than the packet', '0802 2aff01'],
    ['a packet that ends within a field', '0802 2a'],
    ['a number without an end', '08ffffffffffffffffffffff01'],
    ['a field without a number', '0001'],
    ['a group', '0b0c'],
  ])('[TUN-W2] %s', (_name, hex) => {
    expect(() => decodeAll([message(hex)])).toThrow(ProtocolError)
  })

  test('[TUN-W3] a compressed message is refused', () => {
    expect(() => decodeAll([Buffer.from('010000000208064200', 'hex')])).toThrow(/compressed/)
  })

  test('[TUN-W3] 4 MiB are taken and one byte more is refused before it comes', () => {
    const limit = 4 * 1024 * 1024
    const head = encodeDataHead(1, 0, limit - 14)
    expect(head.readUInt32BE(1)).toBe(limit)
    const seen = decodeAll([head, Buffer.alloc(limit - 14)])
    expect(seen.data.get('1/0')?.length).toBe(2 * (limit - 14))
    expect(() => decodeAll([encodeDataHead(1, 0, limit - 13)])).toThrow(/limit/)
  })

  test('[TUN-W3] a stream that ends within a packet is noticed', () => {
    const packet = message('08022a020801')
    for (let length = 1; length < packet.length; length++)
      expect(() => decodeAll([packet.subarray(0, length)])).toThrow(ProtocolError)
  })

  test('[TUN-W3] any bytes whatever end in packets or a ProtocolError', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 20 }),
        fc.boolean(),
        (chunks, isPrefixed) => {
          const stream = chunks.map((bytes) =>
            isPrefixed ? message(Buffer.from(bytes).toString('hex')) : Buffer.from(bytes),
          )
          expect(failureOf(() => decodeAll(stream))).toSatisfy(
            (error) => error === undefined || error instanceof ProtocolError,
          )
        },
      ),
      { numRuns: 2_000 },
    )
  })
})
