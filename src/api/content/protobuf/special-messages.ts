import { badRequest } from '../../../core/index.ts'
import { timeFromUnix } from '../../schema/timestamp.ts'
import { parseJson } from '../json-text.ts'
import { type WireReader, wire } from './wire-reader.ts'

/** A field's number times eight plus its wire type, as it stands before the field. */
const tagOf = (number: number, type: number): number => number * 8 + type

/** A Time or MicroTime as the text that JSON has for it; an empty message is no time. */
export function readTimestamp(reader: WireReader, micro: boolean): string | null {
  if (reader.isEmpty) return null
  let seconds = 0
  let nanos = 0
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === tagOf(1, wire.varint)) seconds = reader.int64()
    else if (tag === tagOf(2, wire.varint)) nanos = reader.int32()
    else reader.skip(tag & 7)
  }
  const time = timeFromUnix(seconds, Math.min(Math.max(nanos, 0), 999_999_999), micro)
  if ('problem' in time) throw badRequest(time.problem)
  return time.text
}

/** A Quantity as its text. */
export function readQuantityMessage(reader: WireReader): string {
  let text = '0'
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === tagOf(1, wire.bytes)) text = reader.text()
    else reader.skip(tag & 7)
  }
  return text
}

/** An IntOrString as the number or string that it is. */
export function readIntOrString(reader: WireReader): number | string {
  let isString = false
  let int = 0
  let string = ''
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === tagOf(1, wire.varint)) isString = reader.int64() === 1
    else if (tag === tagOf(2, wire.varint)) int = reader.int32()
    else if (tag === tagOf(3, wire.bytes)) string = reader.text()
    else reader.skip(tag & 7)
  }
  return isString ? string : int
}

/** A message around a list of strings. */
export function readStrings(reader: WireReader): string[] {
  const items: string[] = []
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === tagOf(1, wire.bytes)) items.push(reader.text())
    else reader.skip(tag & 7)
  }
  return items
}

/** A RawExtension or FieldsV1: bytes that are a JSON text. */
export function readRawJson(reader: WireReader): unknown {
  let raw: Buffer | undefined
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === tagOf(1, wire.bytes)) raw = reader.bytes()
    else reader.skip(tag & 7)
  }
  return raw === undefined || raw.length === 0 ? null : parseJson(raw).value
}
