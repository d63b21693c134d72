import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Clock } from '../../core/index.ts'
import {
  der,
  extension,
  type LabCertificate,
  type LabOrder,
  labCertificate,
  labNow,
  named,
  oid,
  usage,
} from '../../pki/certificate-lab.suite.ts'
import { type AddonSigner, addonSigningKey } from './signing-key.ts'

/** A clock that stands still until it is turned. */
export class LabClock implements Clock {
  #ms = labNow

  now(): number {
    return this.#ms
  }

  monotonic(): number {
    return this.#ms
  }

  turn(ms: number): void {
    this.#ms += ms
  }
}

/** The names of a certificate. */
export const sans = (...names: readonly string[]): Buffer =>
  extension(oid('551d11'), false, der(0x30, ...names.map((name) => der(0x82, name))))

/** A CA as clusters have it. */
export const labCa = (): Promise<LabCertificate> =>
  labCertificate({ subject: named('kubernetes'), ca: true })

/** A certificate under the CA; the API server's unless the order says otherwise. */
export const labLeaf = (
  issuer: LabCertificate,
  order: Partial<LabOrder> = {},
): Promise<LabCertificate> =>
  labCertificate({
    issuer,
    subject: named('kube-apiserver'),
    usages: [usage.serverAuth],
    extensions: [sans('kubernetes', 'kubernetes.default.svc')],
    ...order,
  })

/** Whoever holds these certificates, signing add-on tokens with the first one's key. */
export const labSigner = (...chain: readonly LabCertificate[]): AddonSigner => {
  const [leaf] = chain
  if (!leaf) throw new TypeError('a signer needs a certificate')
  const x5c = chain.map(({ certificate }) => certificate.raw.toString('base64'))
  return { current: addonSigningKey(leaf.key, x5c) }
}

/** Keys of every kind that an API server may serve with. */
export const keyKinds: readonly (readonly [alg: string, key: () => KeyObject])[] = [
  ['ES256', () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey],
  ['ES384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey],
  ['RS256', () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
  ['EdDSA', () => generateKeyPairSync('ed25519').privateKey],
]
