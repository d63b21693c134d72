import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { der, extension, oid } from './certificate-lab.suite.ts'
import { publicKeyOf } from './keys.ts'

/** A request to be built byte by byte: what is left out is as it should be. */
export interface LabCsrOrder {
  readonly subject: Buffer
  readonly key?: KeyObject
  /** Who signs, if not the key in the request. */
  readonly signer?: KeyObject
  readonly algorithm?: Buffer
  readonly hash?: string | null
  readonly extensions?: readonly Buffer[]
  readonly label?: string
}

/** The object identifiers of signature algorithms. */
export const signatureOid = {
  ecdsaSha256: oid('2a8648ce3d040302'),
  ecdsaSha1: oid('2a8648ce3d0401'),
  rsaSha256: oid('2a864886f70d01010b'),
  ed25519: oid('2b6570'),
} as const

/** A subjectAltName extension. */
export const altNames = (...names: readonly Buffer[]): Buffer =>
  extension(oid('551d11'), false, der(0x30, ...names))

/** A new P-256 key. */
export const ecKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

/** Builds a certificate signing request in PEM form. */
export function labCsr(order: LabCsrOrder): string {
  const key = order.key ?? ecKey()
  const extensions = order.extensions ?? []
  const attributes = extensions.length
    ? [der(0x30, oid('2a864886f70d01090e'), der(0x31, der(0x30, ...extensions)))]
    : []
  const info = der(
    0x30,
    der(0x02, Buffer.from([0])),
    order.subject,
    publicKeyOf(key).export({ type: 'spki', format: 'der' }),
    der(0xa0, ...attributes),
  )
  const hash = order.hash === undefined ? 'sha256' : order.hash
  const signature = sign(hash, info, order.signer ?? key)
  const algorithm = der(0x30, order.algorithm ?? signatureOid.ecdsaSha256)
  const whole = der(0x30, info, algorithm, der(0x03, Buffer.from([0]), signature))
  const label = order.label ?? 'CERTIFICATE REQUEST'
  return `-----BEGIN ${label}-----\n${whole.toString('base64')}\n-----END ${label}-----\n`
}
