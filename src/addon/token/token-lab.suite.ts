import { generateKeyPairSync, type KeyObject, sign, type X509Certificate } from 'node:crypto'
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
import type { CaBundle } from './ca-bundle.ts'
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

/** Parts of a token that differ from a good one; undefined leaves a member out. */
export interface Forgery {
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
  /** In place of the claims, as it stands. */
  readonly payload?: string | Buffer
}

/** A token that our minter would never make, signed like a good one. */
export function forgedToken(signer: AddonSigner, forgery: Forgery = {}): string {
  const { key, kid, x5c, alg } = signer.current
  const now = Math.floor(labNow / 1000)
  const claims = {
    iss: 'sallyport.dev/addon',
    sub: 'bob',
    aud: ['kube-system/dashboard'],
    exp: now + 60,
    iat: now,
    nbf: now,
    ...forgery.claims,
  }
  const header = { alg, typ: 'k8s-addon+jwt', kid, x5c, ...forgery.header }
  const payload = forgery.payload ?? JSON.stringify(claims)
  return signedToken(JSON.stringify(header), payload, key)
}

/** Any two texts as a token, signed with a key of any kind. */
export function signedToken(header: string, payload: string | Buffer, key: KeyObject): string {
  const input = `${segmentOf(header)}.${segmentOf(payload)}`
  const digest = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  const signature = sign(digest, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return `${input}.${signature.toString('base64url')}`
}

/** Text or bytes as a segment of a token. */
export const segmentOf = (value: string | Buffer): string =>
  Buffer.from(value).toString('base64url')

/** A bundle of CAs that tests can replace. */
export class LabBundle implements CaBundle {
  certificates: readonly X509Certificate[]
  readonly #listeners: (() => void)[] = []

  constructor(...cas: readonly LabCertificate[]) {
    this.certificates = cas.map(({ certificate }) => certificate)
  }

  replace(...cas: readonly LabCertificate[]): void {
    this.certificates = cas.map(({ certificate }) => certificate)
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }
}
