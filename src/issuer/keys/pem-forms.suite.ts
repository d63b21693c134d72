import { createPublicKey, type KeyObject } from 'node:crypto'
import { type Algorithm, signingKey } from '../../jose/index.ts'
import { privateKeyFor } from '../../jose/jose.suite.ts'
import { labCertificate, named } from '../../pki/certificate-lab.suite.ts'

/** A key file in one of the forms that people have, and what it must never let out. */
export interface PemForm {
  readonly name: string
  readonly pem: string
  readonly kid: string
  readonly alg: Algorithm
  /** Whether it can sign. */
  readonly isPrivate: boolean
  /** Texts of the private half, in every encoding that could slip out. */
  readonly secrets: readonly string[]
}

const exported = (key: KeyObject, type: 'pkcs1' | 'pkcs8' | 'sec1' | 'spki'): string =>
  key.export({ type, format: 'pem' } as never).toString()

const privateNames = ['d', 'p', 'q', 'dp', 'dq', 'qi']

/** Every way to write the private half, in pieces long enough to be no coincidence. */
function secretsOf(key: KeyObject): string[] {
  const jwk: Readonly<Record<string, unknown>> = key.export({ format: 'jwk' })
  const members = privateNames.map((name) => jwk[name]).filter((value) => typeof value === 'string')
  const spelled = members.flatMap((value) => {
    const bytes = Buffer.from(value, 'base64url')
    return [value, bytes.toString('base64'), bytes.toString('hex')]
  })
  const der = key.export({ type: 'pkcs8', format: 'der' }).toString('base64')
  return [...spelled, der.slice(-120, -40), 'PRIVATE KEY']
}

const issuer = await labCertificate({ subject: named('ca'), ca: true })

async function certificateOf(key: KeyObject): Promise<string> {
  const { certificate } = await labCertificate({ subject: named('x'), issuer, key })
  return certificate.toString()
}

async function formsOf(alg: Exclude<Algorithm, 'HS256'>): Promise<PemForm[]> {
  const key = privateKeyFor(alg)
  const { kid } = signingKey(key)
  const form = (name: string, pem: string, isPrivate: boolean): PemForm => ({
    name: `${alg} ${name}`,
    pem,
    kid,
    alg,
    isPrivate,
    secrets: secretsOf(key),
  })
  const old = alg === 'RS256' ? 'pkcs1' : 'sec1'
  return [
    form('PKCS#8', exported(key, 'pkcs8'), true),
    form(old, exported(key, old), true),
    form('SPKI', exported(createPublicKey(key), 'spki'), false),
    form('certificate', await certificateOf(key), false),
    form(
      'private key after other blocks',
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${exported(key, 'pkcs8')}`,
      true,
    ),
  ]
}

/** Key files of every kind and form. */
export const pemForms: readonly PemForm[] = (
  await Promise.all((['RS256', 'ES256', 'ES384', 'ES512'] as const).map(formsOf))
).flat()
