import { type KeyObject, webcrypto } from 'node:crypto'
import type * as X509Library from '@peculiar/x509'
import { CommandFailed } from '../core/index.ts'

/**
 * Loads the library that writes certificates, on first use only: it costs some 200 ms, and a server
 * that finds its certificates in place never needs it.
 */
export async function loadX509(): Promise<typeof X509Library> {
  await import('reflect-metadata')
  return import('@peculiar/x509')
}

interface SigningAlgorithm {
  readonly name: string
  readonly hash: string
  readonly namedCurve?: string
}

const ecAlgorithms: Readonly<Record<string, SigningAlgorithm>> = {
  prime256v1: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  secp384r1: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  secp521r1: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-512' },
}

function signingAlgorithmOf(key: KeyObject): SigningAlgorithm {
  if (key.asymmetricKeyType === 'rsa') return { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  const algorithm = ecAlgorithms[key.asymmetricKeyDetails?.namedCurve ?? '']
  if (algorithm) return algorithm
  throw new CommandFailed(
    'CA_KEY_UNSUPPORTED',
    `a CA key of type ${key.asymmetricKeyType ?? 'unknown'} cannot sign certificates here`,
    { hint: 'use an RSA key or an ECDSA key on P-256, P-384 or P-521' },
  )
}

/** A private key in the form that the library signs with. */
export async function toSigningKey(
  key: KeyObject,
): Promise<{ key: webcrypto.CryptoKey; algorithm: SigningAlgorithm }> {
  const algorithm = signingAlgorithmOf(key)
  const der = key.export({ type: 'pkcs8', format: 'der' })
  return {
    key: await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']),
    algorithm,
  }
}
