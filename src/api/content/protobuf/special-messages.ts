import { badRequest } from '../../../core/index.ts'
import { timeFromUnix } from '../../schema/timestamp.ts'
import { parseJson } from '../json-text.ts'
import { WireReader, wire } from './wire-reader.ts'

/** Calls `visit` for each field of a small message; fields that it does not take are skipped. */
function eachField(
  bytes: Buffer,
  visit: (number: number, type: number, reader: WireReader) => boolean,
): void {
  const reader = new WireReader(bytes)
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (!visit(number, type, reader)) reader.skip(type)
  }
}

/** A Time or MicroTime as the text that JSON has for it; an empty message is no time. */
export function readTimestamp(bytes: Buffer, micro: boolean): string | null {
  if (bytes.length === 0) return null
  let seconds = 0
  let nanos = 0
  eachField(bytes, (number, type, reader) => {
    if (type !== wire.varint) return false
    if (number === 1) seconds = reader.int64()
    else if (number === 2) nanos = reader.int32()
    else return false
    return true
  })
  const time = timeFromUnix(seconds, Math.min(Math.max(nanos, 0), 999_999_999), micro)
  if ('problem' in time) throw badRequest(time.problem)
  return time.text
}

/** A Quantity as its text. */
export function readQuantityMessage(bytes: Buffer): string {
  let text = '0'
  eachField(bytes, (number, type, reader) => {
    if (number !== 1 || type !== wire.bytes) return false
    text = reader.text()
    return true
  })
  return text
}

/** An IntOrString as the number or string that it is. */
export function readIntOrString(bytes: Buffer): number | string {
  let isString = false
  let int = 0
  let string = ''
  eachField(bytes, (number, type, reader) => {
    if (number === 1 && type === wire.varint) isString = reader.int64() === 1
    else if (number === 2 && type === wire.varint) int = reader.int32()
    else if (number === 3 && type === wire.bytes) string = reader.text()
    else return false
    return true
  })
  return isString ? string : int
}

/** A message around a list of strings. */
export function readStrings(bytes: Buffer): string[] {
  const items: string[] = []
  eachField(bytes, (number, type, reader) => {
    if (number !== 1 || type !== wire.bytes) return false
    items.push(reader.text())
    return true
  })
  return items
}

/** A RawExtension or FieldsV1: bytes that are a JSON text. */
export function readRawJson(bytes: Buffer): unknown {
  let raw: Buffer | undefined
  eachField(bytes, (number, type, reader) => {
    if (number !== 1 || type !== wire.bytes) return false
    raw = reader.bytes()
    return true
  })
  return raw === undefined || raw.length === 0 ? null : parseJson(raw).value
}
