import { readFile } from 'node:fs/promises'
import { systemErrorCode } from '../../core/index.ts'
import { CredentialError } from '../credential-error.ts'

/** The text of a file that a kubeconfig names. */
export async function readCredentialFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CredentialError('FILE', `cannot read ${path}, which the kubeconfig names: ${code}`, {
      cause,
      hint: 'check that the file exists and that this user may read it',
    })
  }
}
