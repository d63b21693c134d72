import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { StoredRecord } from '../../storage/index.ts'
import { combineCrc32 } from './combine-crc32.ts'

/** Answers below this size are not worth compressing; the same bound as Kubernetes'. */
export const minGzipBytes = 128 * 1024

/** True when the client takes gzip. */
export function acceptsGzip(request: IncomingMessage): boolean {
  const header = request.headers['accept-encoding']
  return (
    typeof header === 'string' && /(^|[\s,])gzip($|[\s,;])(?!\s*q=0(\.0*)?($|[\s,]))/.test(header)
  )
}

interface Piece {
  readonly deflated: Buffer
  readonly crc: number
  readonly length: number
}

// The fastest level, as Kubernetes takes it. Each piece ends on a byte boundary and not with a final block, so
// that pieces can follow each other in one stream.
const deflatePiece = (bytes: Buffer): Piece => ({
  deflated: deflateRawSync(bytes, { level: 1, finishFlush: constants.Z_FULL_FLUSH }),
  crc: crc32(bytes),
  length: bytes.length,
})

const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff])
const finalBlock = Buffer.from([0x03, 0x00])
const comma = deflatePiece(Buffer.from(','))

/**
 * Compresses lists run by run and keeps the pieces: one gzip stream is put together from deflated
 * runs, and only the runs that changed since the last list are compressed again.
 */
export class CompressedRuns {
  readonly #pieces = new WeakMap<readonly StoredRecord[], Piece>()
  readonly #plain: (run: readonly StoredRecord[]) => Buffer

  constructor(plain: (run: readonly StoredRecord[]) => Buffer) {
    this.#plain = plain
  }

  send(
    response: ServerResponse,
    head: Buffer,
    runs: readonly (readonly StoredRecord[])[],
    tail: Buffer,
  ): void {
    const pieces = [deflatePiece(head)]
    runs.forEach((run, index) => {
      if (index > 0) pieces.push(comma)
      pieces.push(this.#piece(run))
    })
    pieces.push(deflatePiece(tail))
    const body = Buffer.concat([
      gzipHead,
      ...pieces.map((piece) => piece.deflated),
      finalBlock,
      trailer(pieces),
    ])
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
      Vary: 'Accept-Encoding',
      'Content-Length': body.length,
    })
    response.end(body)
  }

  #piece(run: readonly StoredRecord[]): Piece {
    const known = this.#pieces.get(run)
    if (known) return known
    const piece = deflatePiece(this.#plain(run))
    this.#pieces.set(run, piece)
    return piece
  }
}

function trailer(pieces: readonly Piece[]): Buffer {
  let crc = 0
  let length = 0
  for (const piece of pieces) {
    crc = combineCrc32(crc, piece.crc, piece.length)
    length += piece.length
  }
  const bytes = Buffer.alloc(8)
  bytes.writeUInt32LE(crc, 0)
  bytes.writeUInt32LE(length % 2 ** 32, 4)
  return bytes
}
