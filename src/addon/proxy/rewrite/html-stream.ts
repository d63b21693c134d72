import { Transform } from 'node:stream'
import { constants, createBrotliCompress, createDeflate, createGunzip, createGzip } from 'node:zlib'
import { HtmlRewriter } from './html-rewriter.ts'
import { brotliOf, inflateOf, Unpacking } from './unpacking.ts'

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
