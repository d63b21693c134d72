import { type KeyObject, sign, X509Certificate } from 'node:crypto'
import { generateEcKey, publicKeyOf } from './keys.ts'

/** The moment at which the lab's certificates are in the middle of their lives. */
export const labNow = Date.parse('2026-03-01T12:00:00Z')
const dayMs = 24 * 60 * 60_000

/** A certificate of the lab, its key and its name. */
export interface LabCertificate {
  readonly certificate: X509Certificate
  readonly key: KeyObject
  readonly subject: Buffer
}

/** Any certificate, sound or not: what is left out is as it should be. */
export interface LabOrder {
  readonly issuer?: LabCertificate
  /** DER of the whole name. */
  readonly subject: Buffer
  readonly ca?: boolean
  readonly pathLength?: number
  /** DER of the object identifiers of the extended key usages. */
  readonly usages?: readonly Buffer[]
  readonly extensions?: readonly Buffer[]
  readonly notBefore?: number
  readonly notAfter?: number
  readonly hash?: 'sha1' | 'sha256'
  readonly key?: KeyObject
}

/** DER of a value with a tag, for contents below 65,536 bytes. */
export function der(tag: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)))
  const { length } = content
  const header =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...header]), content])
}

/** DER of an object identifier, from the hexadecimal form of its content. */
export const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))

/** The extended key usages that matter. */
export const usage = {
  serverAuth: oid('2b06010505070301'),
  clientAuth: oid('2b06010505070302'),
} as const

/** An extension with any content. */
export const extension = (id: Buffer, critical: boolean, value: Buffer): Buffer =>
  der(0x30, id, ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value))

/** An attribute of a name; the string type is UTF8String unless its tag is given. */
export function attribute(type: 'CN' | 'O' | 'OU', value: Buffer | string, tag = 0x0c): Buffer {
  const id = { CN: '550403', O: '55040a', OU: '55040b' }[type]
  return der(0x30, oid(id), der(tag, value))
}

/** A name whose every part is a set of attributes. */
export const distinguishedName = (...sets: readonly (readonly Buffer[])[]): Buffer =>
  der(0x30, ...sets.map((attributes) => der(0x31, ...attributes)))

/** A name with nothing but a common name. */
export const named = (commonName: string): Buffer =>
  distinguishedName([attribute('CN', commonName)])

/** Makes a certificate that our own code would never issue. */
export async function labCertificate(order: LabOrder): Promise<LabCertificate> {
  const key = order.key ?? (await generateEcKey())
  const hash = order.hash ?? 'sha256'
  const algorithm = der(0x30, oid(hash === 'sha1' ? '2a8648ce3d0401' : '2a8648ce3d040302'))
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([0x0a, 0x0b, 0x0c])),
    algorithm,
    order.issuer?.subject ?? order.subject,
    der(0x30, time(order.notBefore ?? labNow - dayMs), time(order.notAfter ?? labNow + dayMs)),
    order.subject,
    publicKeyOf(key).export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, ...extensionsOf(order))),
  )
  const signature = sign(hash, body, order.issuer?.key ?? key)
  const whole = der(0x30, body, algorithm, der(0x03, Buffer.from([0]), signature))
  return { certificate: new X509Certificate(whole), key, subject: order.subject }
}

function extensionsOf(order: LabOrder): Buffer[] {
  const isCa = der(0x01, Buffer.from([0xff]))
  const limit = order.pathLength
  const constraints = [
    ...(order.ca ? [isCa] : []),
    ...(limit === undefined ? [] : [der(0x02, Buffer.from([limit]))]),
  ]
  return [
    extension(oid('551d13'), true, der(0x30, ...constraints)),
    ...(order.usages ? [extension(oid('551d25'), false, der(0x30, ...order.usages))] : []),
    ...(order.extensions ?? []),
  ]
}

const time = (epochMs: number): Buffer =>
  der(0x17, `${new Date(epochMs).toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`)
