import { DerInvalid, type DerValue, derChildren, derOid, derTag, expectTag } from './der.ts'

/** The type of a common name. */
export const commonNameOid = '2.5.4.3'
const organizationOid = '2.5.4.10'

/** Whom a certificate or a request names, as Kubernetes reads it. */
export interface SubjectName {
  /** The last one if there are several; empty if there is none. */
  readonly commonName: string
  /** All of them, in order. */
  readonly organizations: readonly string[]
  /** Types of all further attributes, common names before the last too, for those who must refuse them. */
  readonly otherTypes: readonly string[]
}

/**
 * Reads a name from its bytes. The text that Node makes of a subject cannot be taken apart again: a
 * line break or `+` inside a value looks like the end of it.
 */
export function readName(name: DerValue): SubjectName {
  let commonName: string | undefined
  const organizations: string[] = []
  const otherTypes: string[] = []
  for (const set of derChildren(expectTag(name, derTag.sequence))) {
    for (const attribute of derChildren(expectTag(set, derTag.set))) {
      const [type, value] = derChildren(expectTag(attribute, derTag.sequence))
      const oid = derOid(type)
      if (oid === commonNameOid) {
        if (commonName !== undefined) otherTypes.push(oid)
        commonName = readText(value)
      } else if (oid === organizationOid) organizations.push(readText(value))
      else otherTypes.push(oid)
    }
  }
  return { commonName: commonName ?? '', organizations, otherTypes }
}

const asciiTags: readonly number[] = [
  derTag.printableString,
  derTag.ia5String,
  derTag.numericString,
]

function readText(value: DerValue | undefined): string {
  if (!value) throw new DerInvalid('a name has no value')
  const { tag, content } = value
  if (tag === derTag.utf8String) return decode('utf-8', content)
  if (tag === derTag.bmpString) {
    if (content.length % 2 !== 0) throw new DerInvalid('a BMPString has half a character')
    return decode('utf-16le', Buffer.from(content).swap16())
  }
  const isAscii = asciiTags.includes(tag)
  if (!isAscii && tag !== derTag.teletexString) {
    throw new DerInvalid('a name is in a form that is not supported')
  }
  if (isAscii && content.some((byte) => byte > 0x7f)) {
    throw new DerInvalid('an ASCII string has other characters')
  }
  return content.toString('latin1')
}

function decode(encoding: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new DerInvalid(`a name is not valid ${encoding}`)
  }
}
