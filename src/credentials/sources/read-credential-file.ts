import { createReadStream } from 'node:fs'
import { systemErrorCode } from '../../core/index.ts'
import { CredentialError } from '../credential-error.ts'

/** Far more than any token, key or set of authorities has; a device such as /dev/zero has no end. */
const maxBytes = 4 * 1024 * 1024

/** The text of a file that a kubeconfig names. */
export async function readCredentialFile(path: string): Promise<string> {
  try {
    const text = await readUpTo(path, maxBytes)
    if (text !== undefined) return text
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CredentialError('FILE', `cannot read ${path}, which the kubeconfig names: ${code}`, {
      cause,
      hint: 'check that the file exists and that this user may read it',
    })
  }
  throw new CredentialError('FILE', `${path} is too large for a credential`, {
    hint: 'check which file the kubeconfig names',
  })
}

async function readUpTo(path: string, limit: number): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let left = limit
  for await (const chunk of createReadStream(path)) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    left -= bytes.length
    if (left < 0) return undefined
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString()
}
