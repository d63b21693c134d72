import { badRequest, isRecord } from '../../../core/index.ts'
import { setOwn } from '../../schema/own-property.ts'
import { structByName } from '../../schema/schema-of.ts'
import type { FieldSchema, FieldType } from '../../schema/schema-types.ts'
import type { TableStruct } from '../../schema/struct-schema.ts'
import {
  readIntOrString,
  readQuantityMessage,
  readRawJson,
  readStrings,
  readTimestamp,
} from './special-messages.ts'
import { WireReader, wire } from './wire-reader.ts'

type Fields = Record<string, unknown>

/**
 * Decodes a message into the JSON form of its struct, as far as its bytes go: what is absent stays
 * absent and zero values stay; the check of structure brings it into its final form.
 */
export function decodeMessage(bytes: Buffer, struct: TableStruct, into: Fields = {}): Fields {
  const reader = new WireReader(bytes)
  while (!reader.done) {
    const { number, type } = reader.tag()
    const field = struct.fieldByNumber(number)
    const inlined = struct.inlined.find((inner) => inner.number === number)
    if (inlined !== undefined && type === wire.bytes)
      decodeMessage(reader.bytes(), inlined.struct, into)
    else if (field === undefined) reader.skip(type)
    else readField(reader, type, field, into)
  }
  return into
}

function readField(reader: WireReader, type: number, field: FieldSchema, into: Fields): void {
  if (field.map) readEntry(expectBytes(reader, type, field), field, into)
  else if (field.wrapped) into[field.jsonName] = readStrings(expectBytes(reader, type, field))
  else if (field.list) readItem(reader, type, field, into)
  else into[field.jsonName] = readValue(reader, type, field, into[field.jsonName])
}

function readItem(reader: WireReader, type: number, field: FieldSchema, into: Fields): void {
  const known = into[field.jsonName]
  const items: unknown[] = Array.isArray(known) ? known : []
  into[field.jsonName] = items
  if (type === wire.bytes && isVarint(field.type)) {
    const packed = new WireReader(reader.bytes())
    while (!packed.done) items.push(readVarint(packed, field))
  } else items.push(readValue(reader, type, field))
}

/** A map is a list of messages with the key as field 1 and the value as field 2. */
function readEntry(bytes: Buffer, field: FieldSchema, into: Fields): void {
  const reader = new WireReader(bytes)
  let key = ''
  let value: unknown = null
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (number === 1 && type === wire.bytes) key = reader.text()
    else if (number === 2)
      value = field.wrapped
        ? readStrings(expectBytes(reader, type, field))
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

function readVarint(reader: WireReader, field: FieldSchema): unknown {
  if (field.type === 'boolean') return reader.bool()
  return field.bits === 32 ? reader.int32() : reader.int64()
}

function expectBytes(reader: WireReader, type: number, field: FieldSchema): Buffer {
  if (type !== wire.bytes) throw wrongWireType(type, field)
  return reader.bytes()
}

const wrongWireType = (type: number, field: FieldSchema) =>
  badRequest(`proto: wrong wireType = ${type} for field ${field.jsonName}`)

function readValue(reader: WireReader, type: number, field: FieldSchema, known?: unknown): unknown {
  if (isVarint(field.type)) {
    if (type !== wire.varint) throw wrongWireType(type, field)
    return readVarint(reader, field)
  }
  if (type !== wire.bytes) throw wrongWireType(type, field)
  if (field.type === 'string') return reader.text()
  const bytes = reader.bytes()
  if (field.struct === undefined) return readSpecial(bytes, field.type)
  return decodeMessage(bytes, structByName(field.struct.name), ownRecord(known))
}

function readSpecial(bytes: Buffer, type: FieldType): unknown {
  if (type === 'bytes') return bytes.toString('base64')
  if (type === 'time' || type === 'microtime') return readTimestamp(bytes, type === 'microtime')
  if (type === 'quantity') return readQuantityMessage(bytes)
  return type === 'intOrString' ? readIntOrString(bytes) : readRawJson(bytes)
}
