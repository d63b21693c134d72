import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { StoredRecord } from '../../storage/index.ts'
import { combineCrc32 } from './combine-crc32.ts'
import { type ListPart, listParts, piecesOf } from './list-pieces.ts'
import type { RunCache } from './run-cache.ts'
import { writePaced } from './write-paced.ts'

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
 * Compresses lists part by part and keeps the pieces: one gzip stream is put together from deflated
 * parts, and only those that changed since the last list are compressed again.
 */
export class CompressedRuns {
  readonly #pieces = new WeakMap<ListPart, Piece>()
  readonly #plain: RunCache

  constructor(plain: RunCache) {
    this.#plain = plain
  }

  async send(
    response: ServerResponse,
    head: Buffer,
    runs: readonly (readonly StoredRecord[])[],
    tail: Buffer,
  ): Promise<void> {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
      Vary: 'Accept-Encoding',
    })
    await writePaced(response, gzipStream(this.#piecesOf(head, runs, tail)))
    response.end()
  }

  *#piecesOf(
    head: Buffer,
    runs: readonly (readonly StoredRecord[])[],
    tail: Buffer,
  ): Generator<Piece> {
    yield deflatePiece(head)
    let isFirst = true
    for (const part of listParts(runs)) {
      if (!isFirst) yield comma
      isFirst = false
      yield this.#piece(part)
    }
    yield deflatePiece(tail)
  }

  #piece(part: ListPart): Piece {
    const known = this.#pieces.get(part)
    if (known) return known
    const piece = deflatePiece(Buffer.concat(piecesOf(part, this.#plain)))
    this.#pieces.set(part, piece)
    return piece
  }
}

/** A gzip stream out of pieces: its length and checksum, at the end, follow from theirs. */
function* gzipStream(pieces: Iterable<Piece>): Generator<Buffer> {
  let crc = 0
  let length = 0
  yield gzipHead
  for (const piece of pieces) {
    crc = combineCrc32(crc, piece.crc, piece.length)
    length += piece.length
    yield piece.deflated
  }
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc, 0)
  trailer.writeUInt32LE(length % 2 ** 32, 4)
  yield Buffer.concat([finalBlock, trailer])
}
