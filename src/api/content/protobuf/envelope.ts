import { badRequest } from '../../../core/index.ts'
import { WireReader, wire } from './wire-reader.ts'

/** What Kubernetes puts around a protobuf message. */
export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  readonly raw: Buffer
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])

function readTypeMeta(bytes: Buffer): { apiVersion: string; kind: string } {
  const reader = new WireReader(bytes)
  const found = { apiVersion: '', kind: '' }
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (number === 1 && type === wire.bytes) found.apiVersion = reader.text()
    else if (number === 2 && type === wire.bytes) found.kind = reader.text()
    else reader.skip(type)
  }
  return found
}

/** Opens the envelope of a body: four magic bytes, then a message of type, content and encoding. */
export function openEnvelope(body: Uint8Array): Envelope {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes.length === 0) throw badRequest('empty data')
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw badRequest(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  if (bytes.length === magic.length) throw badRequest('empty body')
  const reader = new WireReader(bytes.subarray(magic.length))
  const found: { apiVersion: string; kind: string; raw: Buffer } = {
    apiVersion: '',
    kind: '',
    raw: Buffer.alloc(0),
  }
  while (!reader.done) {
    const { number, type } = reader.tag()
    if (type !== wire.bytes) reader.skip(type)
    else if (number === 1) Object.assign(found, readTypeMeta(reader.bytes()))
    else if (number === 2) found.raw = reader.bytes()
    else if (number === 3 && reader.text() !== '')
      throw badRequest('the protobuf message has a content encoding, which is not supported')
    else if (number > 3) reader.skip(type)
  }
  return found
}
