import { DerInvalid, type DerValue, derChildren, derTag, expectTag, readDer } from './der.ts'

/** The alternative names of a certificate or a request, by kind. */
export interface SubjectAltNames {
  readonly dnsNames: readonly string[]
  readonly ipAddresses: readonly string[]
  readonly emailAddresses: readonly string[]
  readonly uris: readonly string[]
  /** How many there are of kinds that nobody issues. */
  readonly others: number
}

/** No names at all. */
export const noAltNames: SubjectAltNames = {
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
  others: 0,
}

const kindOfTag = { 0x81: 'emailAddresses', 0x82: 'dnsNames', 0x86: 'uris' } as const
const ipTag = 0x87

/** Reads the content of a subjectAltName extension. */
export function readAltNames(extension: Buffer): SubjectAltNames {
  const names = {
    dnsNames: [] as string[],
    ipAddresses: [] as string[],
    emailAddresses: [] as string[],
    uris: [] as string[],
    others: 0,
  }
  for (const name of derChildren(expectTag(readDer(extension), derTag.sequence))) {
    if (name.tag === ipTag) names.ipAddresses.push(readIp(name.content))
    else if (isTextTag(name.tag)) names[kindOfTag[name.tag]].push(readAscii(name))
    else names.others++
  }
  return names
}

const isTextTag = (tag: number): tag is keyof typeof kindOfTag => tag in kindOfTag

function readAscii({ content }: DerValue): string {
  if (content.length > 0 && content.every((byte) => byte > 0x20 && byte < 0x7f)) {
    return content.toString('latin1')
  }
  throw new DerInvalid('an alternative name has characters that do not belong there')
}

function readIp(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  if (bytes.length !== 16) throw new DerInvalid('an IP address has neither 4 nor 16 bytes')
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16))
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
