import { Http2Error } from './http2-error.ts'

/** How many bits stand for each byte (RFC 7541, appendix B); the code is canonical, so that is all there is to know. */
// biome-ignore format: a table of sixteen columns
const bitLengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
]
const longestCode = 30

/** The first code of each length, and the bytes that have codes of that length, in order. */
const codes = Array.from({ length: longestCode + 1 }, (_, length) => ({
  first: 0,
  bytes: bitLengths.flatMap((bits, byte) => (bits === length ? [byte] : [])),
}))
for (const [length, code] of codes.entries()) {
  const shorter = codes[length - 1]
  if (shorter) code.first = (shorter.first + shorter.bytes.length) * 2
}

/** Decodes a Huffman-coded text (RFC 7541 §5.2). */
export function decodeHuffman(coded: Buffer): string {
  const out: number[] = []
  let code = 0
  let length = 0
  for (const byte of coded)
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1)
      length++
      const candidates = codes[length]
      if (!candidates) throw new Http2Error('COMPRESSION_ERROR', 'a text is coded wrongly')
      const decoded = candidates.bytes[code - candidates.first]
      if (decoded === undefined) continue
      out.push(decoded)
      code = 0
      length = 0
    }
  // What is left over is padding: fewer than eight bits, all of them set.
  if (length > 7 || code !== 2 ** length - 1)
    throw new Http2Error('COMPRESSION_ERROR', 'a text is padded wrongly')
  return Buffer.from(out).toString('latin1')
}
