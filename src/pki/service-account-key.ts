import { createPublicKey, type KeyObject } from 'node:crypto'
import { CommandFailed } from '../core/index.ts'
import { generateRsaKey, privateKeyPem, publicKeyPem } from './keys.ts'
import { readKeyFile, readPkiFile, writeKeyFile, writePublicFile } from './pki-file.ts'

/** The key that signs service account tokens, and its files. */
export interface ServiceAccountKey {
  readonly key: KeyObject
  readonly keyFile: string
  readonly publicFile: string
}

/** Finds the service account key again and checks it, or makes it. */
export async function openServiceAccountKey(
  keyFile: string,
  publicFile: string,
): Promise<ServiceAccountKey> {
  const [found, publicText] = await Promise.all([readKeyFile(keyFile), readPkiFile(publicFile)])
  if (!found && publicText !== undefined) {
    throw new CommandFailed(
      'PKI_INCOMPLETE',
      `${keyFile} is missing, but its public half ${publicFile} is there`,
      { hint: `restore ${keyFile} from a backup, or remove ${publicFile} to start with a new key` },
    )
  }
  const key = found ?? (await generateRsaKey())
  if (!found) await writeKeyFile(keyFile, privateKeyPem(key).reveal())
  if (publicText === undefined) await writePublicFile(publicFile, publicKeyPem(key))
  else checkPublicHalf(publicText, key, { keyFile, publicFile })
  return { key, keyFile, publicFile }
}

function checkPublicHalf(
  text: string,
  key: KeyObject,
  files: { readonly keyFile: string; readonly publicFile: string },
): void {
  if (readPublicKey(text) === publicKeyPem(key)) return
  throw new CommandFailed(
    'PKI_MISMATCH',
    `${files.publicFile} is not the public half of ${files.keyFile}`,
    {
      hint: `remove ${files.publicFile} to have it written anew, or restore the pair from one backup`,
    },
  )
}

function readPublicKey(text: string): string | undefined {
  try {
    return publicKeyPem(createPublicKey(text))
  } catch {
    return undefined
  }
}
