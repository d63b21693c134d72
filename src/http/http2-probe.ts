import { createServer, type ServerOptions } from 'node:http2'
import { Duplex } from 'node:stream'

/**
 * Options by which Node.js passes on header values that begin or end with white space. Node.js 20 has
 * no such option and drops the header.
 */
export const http2HeaderOptions: ServerOptions & {
  readonly strictFieldWhitespaceValidation: boolean
} = { strictFieldWhitespaceValidation: false }

const maxProbeMs = 2_000
const probeHeader = 'impersonate-user'

/** Fields that RFC 9113 §8.2.1 calls malformed: each must arrive as sent, or its request must be rejected. */
const malformedFields: readonly (readonly [name: string, value: string])[] = [
  ...[
    ' a',
    'a ',
    '\ta',
    'a\t',
    ' ',
    'a\0',
    '\0a',
    'a\u0001b',
    'a\u007f',
    'a\r\n',
    'a\nb',
    '\ra',
  ].map((value) => [probeHeader, value] as const),
  ...[`${probeHeader} `, `${probeHeader}\0`, 'impersonate user', `${probeHeader}\u00e9`].map(
    (name) => [name, 'a'] as const,
  ),
]

let verdict: Promise<boolean> | undefined

/**
 * Whether this runtime's HTTP/2 layer delivers every malformed header as it was sent, or rejects the
 * request. A layer that drops the header and serves the request is not safe: an impersonated request
 * would run with the rights of its caller. Measured once per process, with a request for each field on
 * an HTTP/2 connection in memory.
 */
export function deliversMalformedHeaders(): Promise<boolean> {
  verdict ??= probe()
  return verdict
}

function probe(): Promise<boolean> {
  const server = createServer(http2HeaderOptions)
  // Only the server's reading side matters: what it sends back is not needed.
  const transport = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  return new Promise<boolean>((resolve) => {
    const timer = setTimeout(resolve, maxProbeMs, false)
    const conclude = (isSafe: boolean): void => {
      clearTimeout(timer)
      resolve(isSafe)
    }
    server.on('sessionError', () => conclude(false))
    server.on('session', (session) => session.on('close', () => conclude(false)))
    server.on('request', ({ stream, rawHeaders }) => {
      stream.on('error', () => {})
      const field = malformedFields[(stream.id ?? 0) >> 1]
      // Requests of one connection are read in order: with the last one, all are decided.
      if (field === undefined) conclude(true)
      else if (!isDelivered(rawHeaders, field)) conclude(false)
    })
    server.emit('connection', transport)
    transport.push(Buffer.concat(probeFrames()))
  }).finally(() => transport.destroy())
}

function isDelivered(
  rawHeaders: readonly string[],
  [name, value]: readonly [name: string, value: string],
): boolean {
  return rawHeaders.some((each, index) => each === name && rawHeaders[index + 1] === value)
}

const headersFrame = 1
const settingsFrame = 4
const endOfStreamAndHeaders = 5

/** The connection preface and a GET per malformed field, with a well-formed one at the end. */
function probeFrames(): Buffer[] {
  const get = [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/'],
    [':authority', 'localhost'],
  ] as const
  return [
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(settingsFrame, 0, 0, Buffer.alloc(0)),
    ...[...malformedFields, [probeHeader, 'a'] as const].map((field, index) =>
      frame(
        headersFrame,
        endOfStreamAndHeaders,
        2 * index + 1,
        Buffer.concat([...get, field].map(literalField)),
      ),
    ),
  ]
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A literal field without indexing and without Huffman coding (RFC 7541 §6.2.2); at most 126 bytes each. */
function literalField([name, value]: readonly [name: string, value: string]): Buffer {
  const bytes = [name, value].map((text) => Buffer.from(text, 'latin1'))
  return Buffer.concat([
    Buffer.from([0]),
    ...bytes.flatMap((each) => [Buffer.from([each.length]), each]),
  ])
}
