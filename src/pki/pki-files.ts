import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto'
import {
  CommandFailed,
  makePrivateDirectory as makeDirectory,
  readFileIfPresent,
  readTrustedFileIfPresent,
  replaceFile,
  systemErrorCode,
} from '../core/index.ts'
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
  const pem = await readSecretFile(path)
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

/** Writes a private key unless the file is there already. */
export async function createKeyFile(path: string, text: string): Promise<void> {
  await explainWrite(path, async () => {
    await replaceFile(path, text, 0o600, 'new').catch((error: unknown) => {
      if (systemErrorCode(error) !== 'EEXIST') throw error
    })
  })
}

/** Writes what everybody may read. */
export async function writePublicFile(path: string, pem: string): Promise<void> {
  await explainWrite(path, () => replaceFile(path, pem, 0o644))
}

/** Makes the directory, private to its owner, if it is not there. */
export async function makePrivateDirectory(path: string): Promise<void> {
  await explainWrite(path, () => makeDirectory(path))
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

/** Reads a text file of the PKI that everybody may read; `undefined` if there is none. */
export const readPkiFile = (path: string): Promise<string | undefined> =>
  explainRead(path, () => readFileIfPresent(path))

/** Reads a text file of the PKI that only its owner may read; `undefined` if there is none. */
export const readSecretFile = (path: string): Promise<string | undefined> =>
  explainRead(path, () => readTrustedFileIfPresent(path, 'private'))

async function explainRead<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof CommandFailed) throw cause
    const why = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('PKI_UNREADABLE', `cannot read ${path}: ${why}`, {
      hint: 'make the file readable for the user that runs this command',
      cause,
    })
  }
}
