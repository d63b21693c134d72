import { Transform, type TransformCallback } from 'node:stream'
import {
  constants,
  createBrotliCompress,
  createBrotliDecompress,
  createDeflate,
  createGunzip,
  createGzip,
  createInflate,
  createInflateRaw,
} from 'node:zlib'
import { HtmlRewriter } from './html-rewriter.ts'

/** Unpacks in a way that its first bytes decide, and no faster than it is read: a few bytes may stand for many. */
class Unpacking extends Transform {
  readonly #choose: (first: Buffer) => Transform
  #inner: Transform | undefined

  constructor(choose: (first: Buffer) => Transform) {
    super()
    this.#choose = choose
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#inner ??= this.#open(chunk)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    this.#inner.write(chunk, () => done())
  }

  override _read(size: number): void {
    this.#inner?.resume()
    super._read(size)
  }

  override _flush(done: TransformCallback): void {
    if (!this.#inner) {
      done()
      return
    }
    this.#inner.once('end', () => done())
    this.#inner.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#inner?.destroy()
    done(error)
  }

  #open(first: Buffer): Transform {
    const inner = this.#choose(first)
    inner.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) inner.pause()
    })
    inner.on('error', (error) => this.destroy(error))
    return inner
  }
}

/** `deflate` in both forms that are sent under that name: with the head of zlib, and without. */
function inflateOf(first: Buffer): Transform {
  const [method = 0, flags = 0] = first
  // RFC 1950 section 2.2: method 8, and the two bytes together are a multiple of 31.
  const isZlib = (method & 0x0f) === 8 && (method * 256 + flags) % 31 === 0
  return isZlib ? createInflate() : createInflateRaw()
}

/** What programs choose by themselves: 4 MiB. Whoever sends a page can ask for as much memory as it says here. */
const widestWindow = 22

/** `br`, unless its first byte asks for a window that no page needs. */
function brotliOf([first = 0]: Buffer): Transform {
  if (windowBits(first) <= widestWindow) return createBrotliDecompress()
  throw new Error('the page is packed with too large a window')
}

/** RFC 7932 section 9.1; the lowest bits come first. */
function windowBits(first: number): number {
  if ((first & 1) === 0) return 16
  const wide = (first >> 1) & 7
  if (wide !== 0) return 17 + wide
  const narrow = (first >> 4) & 7
  return narrow === 0 ? 17 : 8 + narrow
}

type Coder = () => Transform

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH, BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants

/** For pages that are made as they are asked for: the default is made for files that are packed once. */
const brotli = {
  flush: BROTLI_OPERATION_FLUSH,
  params: { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 18 },
}

/** How the codings of HTTP are undone and done again; what is written is flushed, so that a page shows as it comes. */
const coders: ReadonlyMap<string, readonly [decode: Coder, encode: Coder]> = new Map([
  ['gzip', [createGunzip, () => createGzip({ flush: Z_SYNC_FLUSH })]],
  ['x-gzip', [createGunzip, () => createGzip({ flush: Z_SYNC_FLUSH })]],
  ['deflate', [() => new Unpacking(inflateOf), () => createDeflate({ flush: Z_SYNC_FLUSH })]],
  ['br', [() => new Unpacking(brotliOf), () => createBrotliCompress(brotli)]],
])

/** Whether a body in this coding can be read. */
export const isReadableCoding = (coding: string): boolean =>
  coding === '' || coding === 'identity' || coders.has(coding)

/** The streams through which a page passes one after another. */
export function htmlStreams(
  coding: string,
  rewriteUrl: (url: string) => string,
): readonly [Transform, ...Transform[]] {
  const rewriter = new HtmlRewriter(rewriteUrl)
  const rewriting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const ready = rewriter.push(chunk.toString('latin1'))
      done(null, ready === '' ? undefined : Buffer.from(ready, 'latin1'))
    },
    flush(done) {
      const rest = rewriter.end()
      done(null, rest === '' ? undefined : Buffer.from(rest, 'latin1'))
    },
  })
  const [decode, encode] = coders.get(coding) ?? []
  return decode && encode ? [decode(), rewriting, encode()] : [rewriting]
}

/** The only coding whose reader may need megabytes. */
export const costlyCoding = 'br'

/**
 * The headers of a request, which asks for no coding that we cannot read, and only for those whose readers are small
 * unless there is room: browsers take more of them than we do, and a page in one of those would keep its addresses.
 */
export function withReadableCodings(
  headers: readonly string[],
  hasRoom: () => boolean = () => true,
): string[] {
  return headers.map((text, index) => {
    const isValue = index % 2 === 1
    return isValue && headers[index - 1]?.toLowerCase() === 'accept-encoding'
      ? readable(text, hasRoom)
      : text
  })
}

/** Whether a request is likely to be answered with a page: browsers that are sent to one say so. */
export const wantsPage = (headers: readonly string[]): boolean =>
  headers.some(
    (text, index) =>
      index % 2 === 1 && headers[index - 1]?.toLowerCase() === 'accept' && /text\/html/i.test(text),
  )

function readable(accepted: string, hasRoom: () => boolean): string {
  const kept = accepted
    .split(',')
    .map((item) => item.trim())
    .filter((item) => {
      const coding = item.split(';', 1)[0]?.trim().toLowerCase() ?? ''
      return coding !== '' && isReadableCoding(coding) && (coding !== costlyCoding || hasRoom())
    })
  return kept.join(', ') || 'identity'
}
