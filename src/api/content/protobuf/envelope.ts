import { badRequest } from '../../../core/index.ts'
import { WireReader } from './wire-reader.ts'

/** What Kubernetes puts around a protobuf message. */
export interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  /** Reads the message; there may be none. */
  readonly message: WireReader
}

const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00])
/** Field numbers times eight, plus two for content with a length. */
const first = 1 * 8 + 2
const second = 2 * 8 + 2
const third = 3 * 8 + 2

function readTypeMeta(reader: WireReader): { apiVersion: string; kind: string } {
  const found = { apiVersion: '', kind: '' }
  while (!reader.done) {
    const tag = reader.tag()
    if (tag === first) found.apiVersion = reader.text()
    else if (tag === second) found.kind = reader.text()
    else reader.skip(tag & 7)
  }
  return found
}

function readUnknown(reader: WireReader): Envelope {
  let typeMeta = { apiVersion: '', kind: '' }
  let message = new WireReader(magic, 0, 0)
  while (!reader.done) {
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
export function openEnvelope(body: Uint8Array): Envelope {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes.length === 0) throw badRequest('empty data')
  if (!bytes.subarray(0, magic.length).equals(magic))
    throw badRequest(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    )
  if (bytes.length === magic.length) throw badRequest('empty body')
  return readUnknown(new WireReader(bytes, magic.length))
}
