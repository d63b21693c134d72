import { ProtobufReader, tagOf, wireType } from '../../grpc/index.ts'
import {
  type ControlPacket,
  type Data,
  destinationOf,
  ProtocolError,
  packetType,
  type UnknownPacket,
} from './packet.ts'

const varint = (field: number): number => tagOf(field, wireType.varint)
const bytesTag = (field: number): number => tagOf(field, wireType.bytes)

/** Longer addresses and error texts are cut: they would only fill memory and logs. */
const maxTextBytes = 1_024

/** Fields of all payloads, under shared names. */
interface Payload {
  text1: string
  text2: string
  number1: number
  number2: number
  random: bigint
  bytes: Buffer
}

type FieldReader = (payload: Payload, reader: ProtobufReader) => void
/** Readers of a payload's fields by tag. */
type Shape = ReadonlyMap<number, FieldReader>

function readText(reader: ProtobufReader): string {
  const text = reader.bytes()
  return text.toString('utf8', 0, Math.min(text.length, maxTextBytes))
}

const text1: FieldReader = (payload, reader) => {
  payload.text1 = readText(reader)
}
const text2: FieldReader = (payload, reader) => {
  payload.text2 = readText(reader)
}
const number1: FieldReader = (payload, reader) => {
  payload.number1 = reader.safeUint()
}
const number2: FieldReader = (payload, reader) => {
  payload.number2 = reader.safeUint()
}
const random: FieldReader = (payload, reader) => {
  payload.random = reader.int64BigInt()
}
const bytes: FieldReader = (payload, reader) => {
  payload.bytes = reader.bytes()
}

const shapes: ReadonlyMap<number, Shape> = new Map<number, Shape>([
  [
    2,
    new Map([
      [bytesTag(1), text1],
      [bytesTag(2), text2],
      [varint(3), random],
    ]),
  ],
  [
    3,
    new Map([
      [bytesTag(1), text1],
      [varint(2), number1],
      [varint(3), random],
    ]),
  ],
  [
    4,
    new Map([
      [varint(1), number1],
      [bytesTag(3), bytes],
    ]),
  ],
  [5, new Map([[varint(1), number1]])],
  [
    6,
    new Map([
      [bytesTag(1), text1],
      [varint(2), number1],
    ]),
  ],
  [7, new Map([[varint(1), random]])],
  [8, new Map()],
  [
    100,
    new Map([
      [varint(1), number1],
      [varint(2), number2],
    ]),
  ],
  [101, new Map([[varint(1), number1]])],
])

const noBytes = Buffer.alloc(0)

/** Skips an unknown field. Groups are refused: no version of the protocol has one. */
function skip(reader: ProtobufReader, tag: number): void {
  const type = tag % 8
  if (type === wireType.groupStart) throw new ProtocolError('packet contains a group')
  reader.skip(type)
}

function readPayload(reader: ProtobufReader, shape: Shape): Payload {
  const payload: Payload = {
    text1: '',
    text2: '',
    number1: 0,
    number2: 0,
    random: 0n,
    bytes: noBytes,
  }
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    const read = shape.get(tag)
    if (read) read(payload, reader)
    else skip(reader, tag)
  }
  return payload
}

interface Envelope {
  type: number
  dest: number
  /** Field number and content of the payload; the last one counts, as in protobuf. */
  field: number
  payload: Payload | undefined
}

function readEnvelope(reader: ProtobufReader): Envelope {
  const envelope: Envelope = { type: 0, dest: 0, field: 0, payload: undefined }
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    const field = Math.floor(tag / 8)
    const shape = tag % 8 === wireType.bytes ? shapes.get(field) : undefined
    if (tag === varint(1)) envelope.type = reader.uint64()
    else if (tag === varint(9)) envelope.dest = reader.uint64()
    else if (shape) {
      envelope.field = field
      envelope.payload = readPayload(reader.message(), shape)
    } else skip(reader, tag)
  }
  return envelope
}

type Build = (payload: Payload, dest: number) => ControlPacket | Data

/** The field of the payload and how to build the packet, by type. */
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

/**
 * Parses a complete packet; `data` of a DATA packet shares the memory.
 * @throws ProtobufError
 * @throws ProtocolError
 */
export function parsePacket(
  message: Buffer,
  start = 0,
  end = message.length,
): ControlPacket | Data | UnknownPacket {
  const envelope = readEnvelope(new ProtobufReader(message, undefined, start, end))
  const builder = builders.get(envelope.type)
  if (!builder) return { type: undefined, wireType: envelope.type }
  // A type without its payload crashes other implementations.
  if (envelope.payload === undefined || envelope.field !== builder.field)
    throw new ProtocolError('packet lacks the payload of its type')
  return builder.build(envelope.payload, destinationOf(envelope.dest))
}
