import { CommandFailed, readTrustedFile, systemErrorCode } from '../../core/index.ts'
import {
  KeyRefused,
  KeySet,
  publicKeysFromPem,
  signingKeyFromPem,
  type VerificationKey,
} from '../../jose/index.ts'
import { documentMaxAgeSeconds as maxAgeSeconds } from '../limits.ts'
import type { IssuerKeys, KeyState } from './key-ring.ts'

/** Files with keys; a restart is needed to change them. */
export interface KeyFiles {
  readonly signingKeyFile: string
  /** Private or public keys; a file may have several. */
  readonly keyFiles: readonly string[]
}

/** Reads keys from files. The signing key is always published too, so that its tokens can be verified. */
export async function openStaticKeys({ signingKeyFile, keyFiles }: KeyFiles): Promise<IssuerKeys> {
  const signer = await readKeys(signingKeyFile, signingKeyFromPem)
  const others: VerificationKey[] = []
  for (const file of keyFiles) others.push(...(await readKeys(file, publicKeysFromPem)))
  const published = new KeySet([...others, signer.publicKey])
  const current: KeyState = { signer, published, accepted: published, maxAgeSeconds }
  return { current, requireFresh: () => {}, onChange: () => () => {} }
}

async function readKeys<Keys>(
  file: string,
  read: (pem: string, where: string) => Keys,
): Promise<Keys> {
  try {
    return read(await readTrustedFile(file, 'given'), file)
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause
    if (cause instanceof KeyRefused)
      throw new CommandFailed('ISSUER_KEY_REFUSED', cause.message, { cause })
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('ISSUER_KEY_UNREADABLE', `cannot read ${file}: ${why}`, { cause })
  }
}
