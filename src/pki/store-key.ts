import { randomBytes } from 'node:crypto'
import { CommandFailed } from '../core/index.ts'
import { createKeyFile, readSecretFile } from './pki-files.ts'

const keyBytes = 32

/**
 * The key that encrypts signing keys in the store, from its file; makes it if that is allowed.
 * Replicas share the file: of several that make it at once, all get the same.
 */
export async function openStoreKey(
  path: string,
  { mayCreate }: { readonly mayCreate: boolean },
): Promise<Buffer> {
  const found = await readStoreKey(path)
  if (found) return found
  if (!mayCreate)
    throw new CommandFailed(
      'STORE_KEY_MISSING',
      `${path} is missing, and the store holds signing keys that only it can decrypt`,
      {
        hint: 'restore it from a backup of the directory pki; without it start with --service-account-signing-key-file and new keys, which ends every token',
      },
    )
  await createKeyFile(path, `${randomBytes(keyBytes).toString('base64')}\n`)
  return (await readStoreKey(path)) ?? openStoreKey(path, { mayCreate })
}

async function readStoreKey(path: string): Promise<Buffer | undefined> {
  const text = await readSecretFile(path)
  if (text === undefined) return undefined
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length === keyBytes && key.toString('base64') === text.trim()) return key
  throw new CommandFailed('PKI_INVALID', `${path} does not hold ${keyBytes} bytes in base64`, {
    hint: 'restore it from a backup',
  })
}
