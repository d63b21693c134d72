import { badRequest, isRecord, type Work } from '../../core/index.ts'
import { ProtobufError, ProtobufReader, tagOf, wireType } from '../../grpc/index.ts'
import { setOwn } from '../schema/check-structure.ts'
import { structByName } from '../schema/schema-of.ts'
import type { FieldSchema, FieldType } from '../schema/schema-types.ts'
import type { TableStruct } from '../schema/struct-schema.ts'
import { timeFromUnix } from '../schema/timestamp.ts'
import { parseJson } from './json.ts'
import { maxWork } from './limits.ts'

/** Turns a malformed message into a 400. */
function refusing<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ProtobufError)) throw error
    throw badRequest(error.message)
  }
}

/** A Time or MicroTime as the text that JSON has for it; an empty message is no time. */
function readTimestamp(reader: ProtobufReader, micro: boolean): string | null {
  if (reader.isAtEnd) return null
  let seconds = 0
  let nanos = 0
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === tagOf(1, wireType.varint)) seconds = reader.int64()
    else if (tag === tagOf(2, wireType.varint)) nanos = reader.int32()
    else reader.skip(tag & 7)
  }
  const time = timeFromUnix(seconds, Math.min(Math.max(nanos, 0), 999_999_999), micro)
  if ('problem' in time) throw badRequest(time.problem)
  return time.text
}

/** A Quantity as its text. */
function readQuantityMessage(reader: ProtobufReader): string {
  let text = '0'
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === tagOf(1, wireType.bytes)) text = reader.text()
    else reader.skip(tag & 7)
  }
  return text
}

/** An IntOrString as the number or string that it is. */
function readIntOrString(reader: ProtobufReader): number | string {
  let isString = false
  let int = 0
  let string = ''
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === tagOf(1, wireType.varint)) isString = reader.int64() === 1
    else if (tag === tagOf(2, wireType.varint)) int = reader.int32()
    else if (tag === tagOf(3, wireType.bytes)) string = reader.text()
    else reader.skip(tag & 7)
  }
  return isString ? string : int
}

/** A message around a list of strings. */
function readStrings(reader: ProtobufReader): string[] {
  const items: string[] = []
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === tagOf(1, wireType.bytes)) items.push(reader.text())
    else reader.skip(tag & 7)
  }
  return items
}

/** A RawExtension or FieldsV1: bytes that are a JSON text. */
function readRawJson(reader: ProtobufReader): unknown {
  let raw: Buffer | undefined
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === tagOf(1, wireType.bytes)) raw = reader.bytes()
    else reader.skip(tag & 7)
  }
  return raw === undefined || raw.length === 0 ? null : parseJson(raw, reader.work).value
}

type Fields = Record<string, unknown>

/**
 * Decodes a message into the JSON form of its struct, as far as its bytes go: what is absent stays
 * absent and zero values stay; the check of structure brings it into its final form.
 */
export const decodeMessage = (reader: ProtobufReader, struct: TableStruct): Fields =>
  refusing(() => readMessage(reader, struct))

function readMessage(reader: ProtobufReader, struct: TableStruct, into: Fields = {}): Fields {
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    const type = tag & 7
    const field = struct.fieldByNumber(tag >>> 3)
    if (field !== undefined) readField(reader, type, field, into)
    else {
      const inlined = struct.inlined.find((inner) => inner.number === tag >>> 3)
      if (inlined !== undefined && type === wireType.bytes)
        readMessage(reader.message(), inlined.struct, into)
      else reader.skip(type)
    }
  }
  return into
}

function readField(reader: ProtobufReader, type: number, field: FieldSchema, into: Fields): void {
  if (field.map) readEntry(expectMessage(reader, type, field), field, into)
  else if (field.wrapped) into[field.jsonName] = readStrings(expectMessage(reader, type, field))
  else if (field.list) readItem(reader, type, field, into)
  else into[field.jsonName] = readValue(reader, type, field, into[field.jsonName])
}

function readItem(reader: ProtobufReader, type: number, field: FieldSchema, into: Fields): void {
  const known = into[field.jsonName]
  const items: unknown[] = Array.isArray(known) ? known : []
  into[field.jsonName] = items
  if (type === wireType.bytes && isVarint(field.type)) {
    const packed = reader.message()
    while (!packed.isAtEnd) {
      packed.work?.spend('tokens', 1)
      items.push(readVarint(packed, field))
    }
  } else items.push(readValue(reader, type, field))
}

/** A map is a list of messages with the key as field 1 and the value as field 2. */
function readEntry(reader: ProtobufReader, field: FieldSchema, into: Fields): void {
  let key = ''
  let value: unknown = null
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    const type = tag & 7
    if (tag >>> 3 === 1 && type === wireType.bytes) key = reader.text()
    else if (tag >>> 3 === 2)
      value = field.wrapped
        ? readStrings(expectMessage(reader, type, field))
        : readValue(reader, type, field)
    else reader.skip(type)
  }
  const entries = ownRecord(into[field.jsonName])
  setOwn(entries, key, value)
  into[field.jsonName] = entries
}

/** What an earlier part of the same message has left, to be added to. */
const ownRecord = (known: unknown): Fields => (isRecord(known) ? known : {})

const isVarint = (type: FieldType): boolean => type === 'integer' || type === 'boolean'

function readVarint(reader: ProtobufReader, field: FieldSchema): unknown {
  if (field.type === 'boolean') return reader.bool()
  return field.bits === 32 ? reader.int32() : reader.int64()
}

function expectMessage(reader: ProtobufReader, type: number, field: FieldSchema): ProtobufReader {
  if (type !== wireType.bytes) throw wrongWireType(type, field)
  return reader.message()
}

const wrongWireType = (type: number, field: FieldSchema) =>
  badRequest(`proto: wrong wireType = ${type} for field ${field.jsonName}`)

function readValue(
  reader: ProtobufReader,
  type: number,
  field: FieldSchema,
  known?: unknown,
): unknown {
  if (isVarint(field.type)) {
    if (type !== wireType.varint) throw wrongWireType(type, field)
    return readVarint(reader, field)
  }
  if (type !== wireType.bytes) throw wrongWireType(type, field)
  if (field.type === 'string') return reader.text()
  if (field.type === 'bytes') return reader.bytes().toString('base64')
  const message = reader.message()
  return field.struct === undefined
    ? readSpecial(message, field.type)
    : readMessage(message, structByName(field.struct.name), ownRecord(known))
}

function readSpecial(message: ProtobufReader, type: FieldType): unknown {
  if (type === 'time' || type === 'microtime') return readTimestamp(message, type === 'microtime')
  if (type === 'quantity') return readQuantityMessage(message)
  return type === 'intOrString' ? readIntOrString(message) : readRawJson(message)
}

/** What Kubernetes puts around a protobuf message. */
export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  /** Reads the message; there may be none. */
  readonly message: ProtobufReader
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])
const [first, second, third] = [1, 2, 3].map((field) => tagOf(field, wireType.bytes))

function readTypeMeta(reader: ProtobufReader): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' }
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === first) found.apiVersion = reader.text()
    else if (tag === second) found.kind = reader.text()
    else reader.skip(tag & 7)
  }
  return found
}

function readUnknown(reader: ProtobufReader): Envelope {
  let typeMeta = { apiVersion: '', kind: '' }
  let message = new ProtobufReader(magic, reader.work, 0, 0)
  while (!reader.isAtEnd) {
    const tag = reader.tag()
    if (tag === first) typeMeta = readTypeMeta(reader.message())
    else if (tag === second) message = reader.message()
    else if (tag !== third) reader.skip(tag & 7)
    else if (reader.text() !== '')
      throw badRequest('the protobuf message has a content encoding, which is not supported')
  }
  return { ...typeMeta, message }
}

/** Opens the envelope of a body: four magic bytes, then a message of type, content and encoding. */
export function openEnvelope(body: Uint8Array, work: Work = maxWork()): Envelope {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes.length === 0) throw badRequest('empty data')
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw badRequest(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  if (bytes.length === magic.length) throw badRequest('empty body')
  return refusing(() => readUnknown(new ProtobufReader(bytes, work, magic.length)))
}
