/** One block of a PEM text. */
export interface PemBlock {
  readonly label: string
  readonly hasHeaders: boolean
  readonly bytes: Buffer
}

const begin = /^-----BEGIN ([^-]+)-----\s*$/

function blockOf(label: string, lines: readonly string[]): PemBlock | undefined {
  const body = lines.filter((line) => !line.includes(':')).join('')
  const packed = body.replace(/\s+/g, '')
  const bytes = Buffer.from(packed, 'base64')
  // Node skips what is not base64; a block that holds such characters is no block.
  const isBase64 = /^[A-Za-z0-9+/]*={0,2}$/.test(packed) && packed.length % 4 === 0
  const hasHeaders = lines.some((line) => line.includes(':'))
  return isBase64 ? { label, hasHeaders, bytes } : undefined
}

/** The blocks of a PEM text in their order; text around them is skipped. Linear in its length. */
export function pemBlocks(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  let label: string | undefined
  let lines: string[] = []
  for (const line of text.split('\n')) {
    if (label !== undefined && line.trimEnd() === `-----END ${label}-----`) {
      const block = blockOf(label, lines)
      if (block) blocks.push(block)
      label = undefined
      continue
    }
    const start = begin.exec(line)
    if (start) [label, lines] = [start[1] ?? '', []]
    else if (label !== undefined) lines.push(line)
  }
  return blocks
}
