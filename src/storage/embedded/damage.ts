import { dirname } from 'node:path'
import { systemErrorCode } from '../../core/index.ts'
import { StoreDamaged, type StoredRecord, StoreEndUnknown, StoreWriteFailed } from '../store.ts'

/** The error for a store that cannot be opened because of what is at one place of one file. */
export function structuralDamage(file: string, offset: number, what: string): StoreDamaged {
  return new StoreDamaged(
    `the store is damaged: ${file}, byte ${offset}: ${what}; ` +
      'keep a copy of the directory and restore the latest backup (sallyport store restore)',
    { file, offset, what },
  )
}

interface DamagedEnd {
  readonly path: string
  readonly offset: number
  readonly revision: number
  readonly tail: string
  readonly why: string
}

/** What an operator can do about damage that need not end the store. */
const choices = (directory: string, kept: string): string =>
  `restore the latest backup (sallyport store restore), or continue ${kept} ` +
  `(sallyport store repair --data-dir ${dirname(directory)})`

/** The error for a journal at whose end an acknowledged commit cannot be read. */
export function lostEnd(end: DamagedEnd, directory: string): StoreDamaged {
  const what = `acknowledged commits after revision ${end.revision} are missing: ${end.why}`
  return new StoreDamaged(
    `the store is damaged: ${end.path}, byte ${end.offset}: ${what}; ` +
      choices(directory, 'with what can be read'),
    { file: end.path, offset: end.offset, what },
  )
}

/** A record whose value fails its checksum or was lost before. */
export interface LostValue {
  readonly record: StoredRecord
  readonly path: string
  readonly offset: number
  /** Bytes that the record takes in the file. */
  readonly length: number
}

/** The error for values of current objects that fail their checksums. */
export function lostValues(
  [first, ...others]: readonly [LostValue, ...LostValue[]],
  directory: string,
): StoreDamaged {
  const { record, path: file, offset } = first
  const more = others.length === 0 ? '' : `, and ${others.length} more (sallyport store check)`
  const what = `the value of ${record.key} fails its checksum${more}`
  return new StoreDamaged(
    `the store is damaged: ${file}, byte ${offset}: ${what}; ` +
      choices(directory, 'without these objects'),
    { file, offset, what },
  )
}

/** The error for a journal whose end nothing proves. */
export function unknownEnd(end: DamagedEnd, directory: string): StoreEndUnknown {
  const rest = end.tail === 'zeros' ? 'nothing follows it' : 'bytes that cannot be read follow it'
  const what =
    `cannot tell whether acknowledged commits are missing after revision ${end.revision}: ` +
    `${end.why}; ${rest}`
  return new StoreEndUnknown(
    `the end of the journal cannot be verified: ${end.path}, byte ${end.offset}: ${what}; ` +
      choices(directory, 'with what can be read'),
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
