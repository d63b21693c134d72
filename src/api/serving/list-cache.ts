import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, crc32, deflateRawSync } from 'node:zlib'
import type { StoredRecord } from '../../storage/index.ts'
import { itemHeadBytes, runLength } from '../registry/object-bytes.ts'
import { writePaced } from './response.ts'

type Run = readonly StoredRecord[]

/** Keeps what was rendered from runs of records, least recently used out first, within a budget of bytes. */
export class RunCache {
  readonly #budget: number
  readonly #render: (run: Run) => Buffer
  readonly #rendered = new Map<Run, Buffer>()
  #bytes = 0

  constructor(budgetBytes: number, render: (run: Run) => Buffer) {
    this.#budget = budgetBytes
    this.#render = render
  }

  get(run: Run): Buffer {
    const known = this.#rendered.get(run)
    if (known) {
      this.#rendered.delete(run)
      this.#rendered.set(run, known)
      return known
    }
    const bytes = this.#render(run)
    // One huge run must not push out everything else.
    if (bytes.length <= this.#budget / 4) this.#keep(run, bytes)
    return bytes
  }

  #keep(run: Run, bytes: Buffer): void {
    this.#rendered.set(run, bytes)
    this.#bytes += bytes.length
    for (const [oldest, rendered] of this.#rendered) {
      if (this.#bytes <= this.#budget) return
      this.#rendered.delete(oldest)
      this.#bytes -= rendered.length
    }
  }
}

/*
 * The CRC-32 of two pieces of data put together, from the CRCs of the pieces: the first one is moved
 * over as many zero bytes as the second is long, a linear map over GF(2) that is built from squares.
 */
const polynomial = 0xedb88320

type Matrix = Uint32Array

function times(matrix: Matrix, vector: number): number {
  let sum = 0
  for (let bit = 0, rest = vector; rest !== 0; bit++, rest >>>= 1) {
    if (rest & 1) sum ^= matrix[bit] ?? 0
  }
  return sum >>> 0
}

const square = (matrix: Matrix): Matrix => matrix.map((column) => times(matrix, column))

function oneZeroBit(): Matrix {
  const matrix = new Uint32Array(32)
  matrix[0] = polynomial
  for (let bit = 1; bit < 32; bit++) matrix[bit] = 2 ** (bit - 1)
  return matrix
}

/** `zeroBytes[n]` moves a CRC over 2^n zero bytes. */
const zeroBytes: readonly Matrix[] = (() => {
  const matrices = [square(square(square(oneZeroBit())))]
  for (let n = 1; n < 32; n++) matrices.push(square(matrices[n - 1] ?? oneZeroBit()))
  return matrices
})()

/** CRC-32 of A followed by B, given the CRCs of both and the length of B in bytes (below 4 GiB). */
export function combineCrc32(crcOfA: number, crcOfB: number, lengthOfB: number): number {
  let moved = crcOfA
  for (let n = 0, rest = lengthOfB; rest !== 0; n++, rest >>>= 1) {
    const matrix = zeroBytes[n]
    if (rest & 1 && matrix) moved = times(matrix, moved)
  }
  return (moved ^ crcOfB) >>> 0
}

type Run_listPieces = readonly StoredRecord[]

const comma = Buffer.from(',')
/** A run that is larger is not rendered as a whole: nobody could afford a copy per reader. */
const maxRenderedBytes = 2 ** 20

const lengths = new WeakMap<Run_listPieces, number>()

function lengthOf(run: Run_listPieces): number {
  const known = lengths.get(run)
  if (known !== undefined) return known
  const length = runLength(run)
  lengths.set(run, length)
  return length
}

/** The parts of a list that are rendered, compressed and kept as one: whole runs, or records of large ones. */
export type ListPart = Run_listPieces | StoredRecord

/** Splits runs so that no part is large unless its one record is. */
function* listParts(runs: readonly Run_listPieces[]): Generator<ListPart> {
  for (const run of runs) {
    if (run.length === 0) continue
    if (lengthOf(run) <= maxRenderedBytes) yield run
    else yield* run
  }
}

const isRun = (part: ListPart): part is Run_listPieces => Array.isArray(part)

/** The bytes of a part as pieces; a record's own bytes are not copied. */
function piecesOf(part: ListPart, rendered: RunCache): readonly Buffer[] {
  return isRun(part) ? [rendered.get(part)] : [itemHeadBytes(part), part.value]
}

/** How long the items of a list are together, with the commas between them. */
export function lengthOfItems(runs: readonly Run_listPieces[]): number {
  const filled = runs.filter((run) => run.length > 0)
  return filled.reduce((sum, run) => sum + lengthOf(run), Math.max(0, filled.length - 1))
}

/** The bytes of all items, with commas between them. */
export function* itemPieces(
  runs: readonly Run_listPieces[],
  rendered: RunCache,
): Generator<Buffer> {
  let isFirst = true
  for (const part of listParts(runs)) {
    if (!isFirst) yield comma
    isFirst = false
    yield* piecesOf(part, rendered)
  }
}

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
const comma_gzipRuns = deflatePiece(Buffer.from(','))

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
      if (!isFirst) yield comma_gzipRuns
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
