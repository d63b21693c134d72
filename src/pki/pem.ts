import { X509Certificate } from 'node:crypto'
import { SallyportError } from '../core/index.ts'

/** A text that should hold certificates or keys and does not. */
export class PemInvalid extends SallyportError {
  readonly code = 'PEM_INVALID'
}

/** One block of a PEM text. */
export interface PemBlock {
  /** For example `CERTIFICATE`. */
  readonly label: string
  readonly der: Buffer
  /** The line, counted from 1, on which it begins. */
  readonly line: number
}

const boundary = /^-----(BEGIN|END) ([A-Z0-9][A-Z0-9 ]*)-----\s*$/
/**
 * OpenSSL also takes a boundary with control or non-ASCII characters behind it, or after 254 characters of the same
 * line. A block that only one of two readers sees would be trusted without having been checked.
 */
const unclearBoundary = /-----\s*(?:BEGIN|END)/i

/** Splits a PEM text into its blocks; text between blocks is a comment, as everywhere. Throws PemInvalid. */
export function parsePem(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  let open: { label: string; line: number; body: string[] } | undefined
  for (const [index, content] of text.split('\n').entries()) {
    const line = index + 1
    const mark = boundary.exec(content)
    if (!mark) {
      if (unclearBoundary.test(content))
        throw new PemInvalid(`line ${line}: BEGIN and END need a line of their own`)
      open?.body.push(content)
    } else if (mark[1] === 'BEGIN') {
      if (open)
        throw new PemInvalid(`line ${line}: a block begins inside the one of line ${open.line}`)
      open = { label: mark[2] ?? '', line, body: [] }
    } else {
      if (!open || open.label !== mark[2])
        throw new PemInvalid(`line ${line}: this END has no BEGIN`)
      blocks.push({ label: open.label, line: open.line, der: decodeBody(open.body, open.line) })
      open = undefined
    }
  }
  if (open) throw new PemInvalid(`line ${open.line}: the ${open.label} block has no END`)
  return blocks
}

/** Every certificate of a PEM text, in order; anything else in it, and none at all, is refused. */
export function parseCertificates(text: string): X509Certificate[] {
  const blocks = parsePem(text)
  if (blocks.length === 0) throw new PemInvalid('there is no certificate in it')
  return blocks.map(({ label, der, line }) => {
    if (label !== 'CERTIFICATE') {
      throw new PemInvalid(`line ${line}: a ${label} block where only certificates belong`)
    }
    try {
      return new X509Certificate(der)
    } catch (cause) {
      throw new PemInvalid(`line ${line}: the block is not a certificate`, { cause })
    }
  })
}

/** One PEM text of all certificates, each once; undefined for none. */
export function renderCertificates(certificates: readonly X509Certificate[]): string | undefined {
  const each = new Map(certificates.map((one) => [one.fingerprint256, one.toString()]))
  return each.size === 0 ? undefined : [...each.values()].join('')
}

function decodeBody(lines: readonly string[], line: number): Buffer {
  const base64 = lines.map((part) => part.trim()).join('')
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) {
    throw new PemInvalid(`line ${line}: the block is not base64`)
  }
  return Buffer.from(base64, 'base64')
}
