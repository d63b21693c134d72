import type { HeaderField } from './hpack-decoder.ts'

/** Neither end is to remember these, nor is a proxy between them (RFC 7541 §7.1.3). */
const sensitive: ReadonlySet<string> = new Set(['authorization'])

function integer(value: number, prefixBits: number, pattern: number): number[] {
  const mask = 2 ** prefixBits - 1
  if (value < mask) return [pattern | value]
  const out = [pattern | mask]
  let rest = value - mask
  while (rest >= 128) {
    out.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  out.push(rest)
  return out
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value, 'latin1')
  return Buffer.concat([Buffer.from(integer(bytes.length, 7, 0)), bytes])
}

/** A header block of literals only: a link sends two in its life, so there is nothing to gain from a table. */
export const encodeHeaders = (fields: readonly HeaderField[]): Buffer =>
  Buffer.concat(
    fields.flatMap(([name, value]) => [
      Buffer.from([sensitive.has(name) ? 0x10 : 0x00]),
      text(name),
      text(value),
    ]),
  )
