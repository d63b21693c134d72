import { type KeyObject, sign } from 'node:crypto'
import { publicKeyOf } from '../../pki/trust/index.ts'

/** Whom a certificate is asked for. */
export interface RequestedSubject {
  readonly commonName: string
  readonly organizations: readonly string[]
}

const tag = {
  integer: 0x02,
  bitString: 0x03,
  oid: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  attributes: 0xa0,
} as const

const oid = {
  commonName: Buffer.from([0x55, 0x04, 0x03]),
  organization: Buffer.from([0x55, 0x04, 0x0a]),
  ecdsaWithSha256: Buffer.from('2a8648ce3d040302', 'hex'),
} as const

/** A certificate signing request (PKCS#10) of a P-256 key, in PEM form. */
export function certificateRequest(key: KeyObject, subject: RequestedSubject): string {
  const info = der(
    tag.sequence,
    der(tag.integer, Buffer.from([0])),
    nameOf(subject),
    publicKeyOf(key).export({ type: 'spki', format: 'der' }),
    der(tag.attributes),
  )
  const algorithm = der(tag.sequence, der(tag.oid, oid.ecdsaWithSha256))
  const signature = der(tag.bitString, Buffer.from([0]), sign('sha256', info, key))
  const base64 = der(tag.sequence, info, algorithm, signature).toString('base64')
  const lines = base64.match(/.{1,64}/g) ?? []
  return [
    '-----BEGIN CERTIFICATE REQUEST-----',
    ...lines,
    '-----END CERTIFICATE REQUEST-----',
    '',
  ].join('\n')
}

function nameOf({ commonName, organizations }: RequestedSubject): Buffer {
  const attribute = (type: Buffer, value: string): Buffer =>
    der(tag.set, der(tag.sequence, der(tag.oid, type), der(tag.utf8String, Buffer.from(value))))
  return der(
    tag.sequence,
    ...organizations.map((name) => attribute(oid.organization, name)),
    attribute(oid.commonName, commonName),
  )
}

function der(identifier: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length > 0xffff) throw new RangeError('a request this long is no request')
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([identifier, ...size]), content])
}
