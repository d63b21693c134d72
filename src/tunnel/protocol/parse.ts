import {
  type ControlPacket,
  type Data,
  destinationOf,
  ProtocolError,
  packetType,
  type UnknownPacket,
} from './packet.ts'
import { cutOff, WireReader } from './wire-reader.ts'

/** The tag of a field with a number, and of one with a length. */
const number = (field: number): number => field << 3
const lengthy = (field: number): number => (field << 3) | 2

/** The fields that payloads have, under the names that they share. */
interface Payload {
  text1: string
  text2: string
  number1: number
  number2: number
  random: bigint
  bytes: Buffer
}

type FieldReader = (payload: Payload, reader: WireReader) => void
type Shape = ReadonlyMap<number, FieldReader>

const text1: FieldReader = (payload, reader) => {
  payload.text1 = reader.text()
}
const text2: FieldReader = (payload, reader) => {
  payload.text2 = reader.text()
}
const number1: FieldReader = (payload, reader) => {
  payload.number1 = reader.safeInteger('a connection id')
}
const number2: FieldReader = (payload, reader) => {
  payload.number2 = reader.safeInteger('a number of bytes')
}
const random: FieldReader = (payload, reader) => {
  payload.random = reader.int64()
}
const bytes: FieldReader = (payload, reader) => {
  const { start, end } = reader.span()
  payload.bytes = reader.bytes.subarray(start, end)
}

const shapes: ReadonlyMap<number, Shape> = new Map<number, Shape>([
  [
    2,
    new Map([
      [lengthy(1), text1],
      [lengthy(2), text2],
      [number(3), random],
    ]),
  ],
  [
    3,
    new Map([
      [lengthy(1), text1],
      [number(2), number1],
      [number(3), random],
    ]),
  ],
  [
    4,
    new Map([
      [number(1), number1],
      [lengthy(3), bytes],
    ]),
  ],
  [5, new Map([[number(1), number1]])],
  [
    6,
    new Map([
      [lengthy(1), text1],
      [number(2), number1],
    ]),
  ],
  [7, new Map([[number(1), random]])],
  [8, new Map()],
  [
    100,
    new Map([
      [number(1), number1],
      [number(2), number2],
    ]),
  ],
  [101, new Map([[number(1), number1]])],
])

const noBytes = Buffer.alloc(0)

function readTag(reader: WireReader): number {
  const tag = reader.varint()
  if (tag === cutOff) throw new ProtocolError('a packet ends within a field')
  if (tag < 8 || tag > 0xffff_ffff) throw new ProtocolError('a field has no number')
  return tag
}

function readPayload(reader: WireReader, shape: Shape): Payload {
  const payload: Payload = {
    text1: '',
    text2: '',
    number1: 0,
    number2: 0,
    random: 0n,
    bytes: noBytes,
  }
  while (reader.position < reader.end) {
    const tag = readTag(reader)
    const read = shape.get(tag)
    if (read) read(payload, reader)
    else reader.skip(tag)
  }
  return payload
}

interface Envelope {
  type: number
  dest: number
  /** The payload's field number and what it holds; of several the last one counts, as protobuf has it. */
  field: number
  payload: Payload | undefined
}

function readEnvelope(reader: WireReader): Envelope {
  const envelope: Envelope = { type: 0, dest: 0, field: 0, payload: undefined }
  while (reader.position < reader.end) {
    const tag = readTag(reader)
    const field = Math.floor(tag / 8)
    const shape = tag % 8 === 2 ? shapes.get(field) : undefined
    if (tag === number(1)) envelope.type = reader.varint()
    else if (tag === number(9)) envelope.dest = reader.varint()
    else if (shape) {
      const { start, end } = reader.span()
      envelope.field = field
      envelope.payload = readPayload(new WireReader(reader.bytes, start, end), shape)
    } else reader.skip(tag)
  }
  if (envelope.type === cutOff || envelope.dest === cutOff)
    throw new ProtocolError('a packet ends within a number')
  return envelope
}

type Build = (payload: Payload, dest: number) => ControlPacket | Data

/** The payload's field and the packet that comes of it, by type. */
const builders: ReadonlyMap<number, { readonly field: number; readonly build: Build }> = new Map<
  number,
  { field: number; build: Build }
>([
  [
    packetType.DIAL_REQ,
    {
      field: 2,
      build: (p, dest) => ({
        type: packetType.DIAL_REQ,
        protocol: p.text1,
        address: p.text2,
        random: p.random,
        dest,
      }),
    },
  ],
  [
    packetType.DIAL_RSP,
    {
      field: 3,
      build: (p, dest) => ({
        type: packetType.DIAL_RSP,
        error: p.text1,
        connectId: p.number1,
        random: p.random,
        dest,
      }),
    },
  ],
  [
    packetType.DATA,
    {
      field: 4,
      build: (p, dest) => ({
        type: packetType.DATA,
        connectId: p.number1,
        data: p.bytes,
        dest,
      }),
    },
  ],
  [
    packetType.CLOSE_REQ,
    {
      field: 5,
      build: (p, dest) => ({ type: packetType.CLOSE_REQ, connectId: p.number1, dest }),
    },
  ],
  [
    packetType.CLOSE_RSP,
    {
      field: 6,
      build: (p, dest) => ({
        type: packetType.CLOSE_RSP,
        error: p.text1,
        connectId: p.number1,
        dest,
      }),
    },
  ],
  [
    packetType.DIAL_CLS,
    { field: 7, build: (p, dest) => ({ type: packetType.DIAL_CLS, random: p.random, dest }) },
  ],
  [packetType.DRAIN, { field: 8, build: (_p, dest) => ({ type: packetType.DRAIN, dest }) }],
  [
    packetType.CREDIT,
    {
      field: 100,
      build: (p, dest) => ({
        type: packetType.CREDIT,
        connectId: p.number1,
        bytes: p.number2,
        dest,
      }),
    },
  ],
  [
    packetType.FIN,
    { field: 101, build: (p, dest) => ({ type: packetType.FIN, connectId: p.number1, dest }) },
  ],
])

/** Reads a whole packet; `data` of a DATA packet is a part of the same memory. */
export function parsePacket(
  message: Buffer,
  start = 0,
  end = message.length,
): ControlPacket | Data | UnknownPacket {
  const envelope = readEnvelope(new WireReader(message, start, end))
  const builder = builders.get(envelope.type)
  if (!builder) return { type: undefined, wireType: envelope.type }
  // A type without its payload crashes some ends of this protocol; here it is an error like any other.
  if (envelope.payload === undefined || envelope.field !== builder.field)
    throw new ProtocolError('a packet lacks the payload of its type')
  return builder.build(envelope.payload, destinationOf(envelope.dest))
}
