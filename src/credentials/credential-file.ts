import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { systemErrorCode } from '../core/index.ts'
import { CredentialError } from './errors.ts'

/** More than any token, key or set of authorities has. */
const maxBytes = 4 * 1024 * 1024

/**
 * The text of a file that a kubeconfig names. Only regular files are read: a named pipe without a writer or a terminal
 * would hold a thread of the process for ever, and the process could not even exit.
 *
 * @throws CredentialError with the code `FILE`.
 */
export async function readCredentialFile(path: string): Promise<string> {
  try {
    // Without O_NONBLOCK, opening a named pipe waits for a writer.
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      if (!(await file.stat()).isFile()) throw unusable(path, 'is not a regular file')
      return await readUpTo(file, path)
    } finally {
      await file.close()
    }
  } catch (cause) {
    if (cause instanceof CredentialError) throw cause
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CredentialError('FILE', `cannot read ${path}, which the kubeconfig names: ${code}`, {
      cause,
      hint: 'check that the file exists and that this user may read it',
    })
  }
}

/** Does not trust the size that the file states: those of the kernel state none, others grow. */
async function readUpTo(file: FileHandle, path: string): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(64 * 1024))
    if (bytesRead === 0) return Buffer.concat(chunks).toString()
    size += bytesRead
    if (size > maxBytes) throw unusable(path, 'is too large for a credential')
    chunks.push(buffer.subarray(0, bytesRead))
  }
}

const unusable = (path: string, why: string): CredentialError =>
  new CredentialError('FILE', `${path} ${why}`, { hint: 'check which file the kubeconfig names' })
