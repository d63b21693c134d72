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
import { type WireReader, wire } from './wire-reader.ts'

type Fields = Record<string, unknown>

/**
 * Decodes a message into the JSON form of its struct, as far as its bytes go: what is absent stays
 * absent and zero values stay; the check of structure brings it into its final form.
 */
export function decodeMessage(reader: WireReader, struct: TableStruct, into: Fields = {}): Fields {
  while (!reader.done) {
    const tag = reader.tag()
    const type = tag & 7
    const field = struct.fieldByNumber(tag >>> 3)
    if (field !== undefined) readField(reader, type, field, into)
    else {
      const inlined = struct.inlined.find((inner) => inner.number === tag >>> 3)
      if (inlined !== undefined && type === wire.bytes)
        decodeMessage(reader.message(), inlined.struct, into)
      else reader.skip(type)
    }
  }
  return into
}

function readField(reader: WireReader, type: number, field: FieldSchema, into: Fields): void {
  if (field.map) readEntry(expectMessage(reader, type, field), field, into)
  else if (field.wrapped) into[field.jsonName] = readStrings(expectMessage(reader, type, field))
  else if (field.list) readItem(reader, type, field, into)
  else into[field.jsonName] = readValue(reader, type, field, into[field.jsonName])
}

function readItem(reader: WireReader, type: number, field: FieldSchema, into: Fields): void {
  const known = into[field.jsonName]
  const items: unknown[] = Array.isArray(known) ? known : []
  into[field.jsonName] = items
  if (type === wire.bytes && isVarint(field.type)) {
    const packed = reader.message()
    while (!packed.done) items.push(readVarint(packed, field))
  } else items.push(readValue(reader, type, field))
}

/** A map is a list of messages with the key as field 1 and the value as field 2. */
function readEntry(reader: WireReader, field: FieldSchema, into: Fields): void {
  let key = ''
  let value: unknown = null
  while (!reader.done) {
    const tag = reader.tag()
    const type = tag & 7
    if (tag >>> 3 === 1 && type === wire.bytes) key = reader.text()
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

function readVarint(reader: WireReader, field: FieldSchema): unknown {
  if (field.type === 'boolean') return reader.bool()
  return field.bits === 32 ? reader.int32() : reader.int64()
}

function expectMessage(reader: WireReader, type: number, field: FieldSchema): WireReader {
  if (type !== wire.bytes) throw wrongWireType(type, field)
  return reader.message()
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
  if (field.type === 'bytes') return reader.bytes().toString('base64')
  const message = reader.message()
  return field.struct === undefined
    ? readSpecial(message, field.type)
    : decodeMessage(message, structByName(field.struct.name), ownRecord(known))
}

function readSpecial(message: WireReader, type: FieldType): unknown {
  if (type === 'time' || type === 'microtime') return readTimestamp(message, type === 'microtime')
  if (type === 'quantity') return readQuantityMessage(message)
  return type === 'intOrString' ? readIntOrString(message) : readRawJson(message)
}
