/** What the first bytes of a connection say about the server it is meant for. */
export type HelloReading =
  /** Not all of it is there yet. */
  | { readonly state: 'incomplete' }
  /** These bytes do not begin a TLS connection. */
  | { readonly state: 'not-tls' }
  /** A whole ClientHello; `serverName` in lower case if it asks for one. */
  | { readonly state: 'hello'; readonly serverName?: string }

const handshakeRecord = 22
const clientHello = 1
const serverNameExtension = 0
const hostNameType = 0
const maxRecordBytes = 16_384 + 256

/** Reads the server name of a ClientHello without taking anything away (RFC 8446 §4.1.2, RFC 6066 §3). */
export function readClientHello(bytes: Buffer): HelloReading {
  const handshake = joinRecords(bytes)
  if (handshake === undefined) return { state: 'not-tls' }
  if (handshake.length > 0 && handshake[0] !== clientHello) return { state: 'not-tls' }
  if (handshake.length < 4) return { state: 'incomplete' }
  const end = 4 + handshake.readUIntBE(1, 3)
  if (handshake.length < end) return { state: 'incomplete' }
  const serverName = serverNameIn(handshake.subarray(4, end))
  return { state: 'hello', ...(serverName !== undefined && { serverName }) }
}

/** The handshake bytes of all records so far, a last part included; `undefined` if these are no such records. */
function joinRecords(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const isHandshake = bytes[at] === handshakeRecord
    const isTls = bytes.length < at + 2 || bytes[at + 1] === 3
    if (!isHandshake || !isTls) return undefined
    if (bytes.length < at + 5) break
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || length > maxRecordBytes) return undefined
    parts.push(bytes.subarray(at + 5, at + 5 + length))
    at += 5 + length
  }
  return Buffer.concat(parts)
}

function serverNameIn(hello: Buffer): string | undefined {
  try {
    const cursor = new Cursor(hello)
    cursor.skip(2 + 32)
    cursor.block(1) // session id
    cursor.block(2) // cipher suites
    cursor.block(1) // compression methods
    const extensions = new Cursor(cursor.block(2))
    while (!extensions.isAtEnd) {
      const type = extensions.number(2)
      const content = extensions.block(2)
      if (type === serverNameExtension) return hostNameIn(content)
    }
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function hostNameIn(extension: Buffer): string | undefined {
  const list = new Cursor(new Cursor(extension).block(2))
  while (!list.isAtEnd) {
    const type = list.number(1)
    const name = list.block(2)
    if (type === hostNameType) return name.toString('latin1').toLowerCase()
  }
  return undefined
}

/** Walks over length-prefixed fields; a RangeError means that one reaches beyond the end. */
class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  skip(count: number): void {
    if (this.#at + count > this.#bytes.length) throw new RangeError('beyond the end')
    this.#at += count
  }

  number(width: 1 | 2): number {
    const value = this.#bytes.readUIntBE(this.#at, width)
    this.#at += width
    return value
  }

  block(width: 1 | 2): Buffer {
    const length = this.number(width)
    const from = this.#at
    this.skip(length)
    return this.#bytes.subarray(from, from + length)
  }
}
