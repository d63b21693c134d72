import { dirname } from 'node:path'
import { systemErrorCode } from '../../core/index.ts'
import { StoreDamaged, StoreEndUnknown, StoreWriteFailed } from '../store.ts'

/** The error for a store that cannot be opened because of what is at one place of one file. */
export function structuralDamage(file: string, offset: number, what: string): StoreDamaged {
  return new StoreDamaged(
    `the store is damaged: ${file}, byte ${offset}: ${what}; ` +
      'keep a copy of the directory and restore the latest backup (sallyport store restore)',
    { file, offset, what },
  )
}

/** The error for a journal whose end nothing proves. */
export function unknownEnd(
  end: { readonly path: string; readonly offset: number; readonly revision: number } & {
    readonly tail: string
    readonly why: string
  },
  directory: string,
): StoreEndUnknown {
  const rest = end.tail === 'zeros' ? 'nothing follows it' : 'bytes that cannot be read follow it'
  const what =
    `cannot tell whether acknowledged commits are missing after revision ${end.revision}: ` +
    `${end.why}; ${rest}`
  return new StoreEndUnknown(
    `the end of the journal cannot be verified: ${end.path}, byte ${end.offset}: ${what}; ` +
      'restore the latest backup (sallyport store restore), or continue with what can be read ' +
      `(sallyport store repair --data-dir ${dirname(directory)})`,
    { file: end.path, offset: end.offset, what },
  )
}

const explanations: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EROFS: 'the file system is read-only; mount it writable or choose another directory',
  EACCES: 'permission denied; run as the owner of the directory or choose another one',
  EPERM: 'permission denied; run as the owner of the directory or choose another one',
  EIO: 'the disk reports an error; look at the system log',
  ENOENT: 'there is no such directory',
  ENOTDIR: 'a part of the path is not a directory',
  EMFILE: 'too many open files; raise the limit',
}

/** A system error in words, with its code. */
export function explainSystemError(error: unknown): string {
  const code = systemErrorCode(error)
  if (code === undefined) return error instanceof Error ? error.message : String(error)
  return `${explanations[code] ?? 'the system refused it'} (${code})`
}

/** The error for a write to `directory` that the system refused; `outcome` says what that means. */
export function writeFailure(directory: string, error: unknown, outcome: string): StoreWriteFailed {
  const message = `cannot write to ${directory}: ${explainSystemError(error)}; ${outcome}`
  return new StoreWriteFailed(message, { cause: error })
}
