import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { CommandFailed, readFileIfPresent, replaceFile, systemErrorCode } from '../core/index.ts'
import { parseCertificates } from './pem.ts'

/** A certificate file and what it holds. */
export interface CertificateFile {
  readonly path: string
  readonly pem: string
  /** The one that a key belongs to. */
  readonly first: X509Certificate
  readonly all: readonly X509Certificate[]
}

/** Reads a file of certificates; `undefined` if there is none. */
export async function readCertificateFile(path: string): Promise<CertificateFile | undefined> {
  const pem = await readPkiFile(path)
  if (pem === undefined) return undefined
  try {
    const all = parseCertificates(pem)
    const [first] = all
    return first && { path, pem, first, all }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unreadable'
    throw new CommandFailed('PKI_INVALID', `${path} is not a certificate file: ${why}`, {
      hint: 'restore it from a backup',
      cause,
    })
  }
}

/** Reads a private key file; `undefined` if there is none. */
export async function readKeyFile(path: string): Promise<KeyObject | undefined> {
  const pem = await readPkiFile(path)
  if (pem === undefined) return undefined
  try {
    return createPrivateKey(pem)
  } catch {
    // Without its cause: a parser's message may quote what it read.
    throw new CommandFailed(
      'PKI_INVALID',
      `${path} is not an unencrypted private key in PEM form`,
      {
        hint: 'restore it from a backup',
      },
    )
  }
}

/** Writes a private key so that only its owner can read it. */
export async function writeKeyFile(path: string, pem: string): Promise<void> {
  await explainWrite(path, () => replaceFile(path, pem, 0o600))
}

/** Writes what everybody may read. */
export async function writePublicFile(path: string, pem: string): Promise<void> {
  await explainWrite(path, () => replaceFile(path, pem, 0o644))
}

/** Makes the directory, private to its owner, if it is not there. */
export async function makePrivateDirectory(path: string): Promise<void> {
  await explainWrite(path, () => mkdir(path, { recursive: true, mode: 0o700 }))
}

async function explainWrite(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write()
  } catch (cause) {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('PKI_UNWRITABLE', `cannot write ${path}: ${why}`, {
      hint: 'make the directory writable for this user, free space on its disk, or choose another data directory',
      cause,
    })
  }
}

/** Reads a text file of the PKI; `undefined` if there is none. */
export async function readPkiFile(path: string): Promise<string | undefined> {
  try {
    return await readFileIfPresent(path)
  } catch (cause) {
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('PKI_UNREADABLE', `cannot read ${path}: ${why}`, {
      hint: 'make the file readable for the user that runs this command',
      cause,
    })
  }
}
