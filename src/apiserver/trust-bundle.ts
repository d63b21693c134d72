import type { X509Certificate } from 'node:crypto'
import { CommandFailed, type Logger, readGivenFile } from '../core/index.ts'
import { PemInvalid, type Pki, parseCertificates, watchFiles } from '../pki/index.ts'

/** CA certificates that are believed. */
interface Roots {
  readonly pem: string
  readonly certificates: readonly X509Certificate[]
}

function rootsOf(pem: string, path: string): Roots {
  try {
    return { pem, certificates: parseCertificates(pem) }
  } catch (cause) {
    if (!(cause instanceof PemInvalid)) throw cause
    throw new CommandFailed('CA_FILE_INVALID', `${path} cannot be used: ${cause.message}`, {
      cause,
      hint: 'it must hold one or more CA certificates in PEM form',
    })
  }
}

async function readRoots(path: string): Promise<Roots> {
  const pem = await readGivenFile(
    path,
    (why, cause) =>
      new CommandFailed('CA_FILE_UNREADABLE', `cannot read ${path}: ${why}`, { cause }),
  )
  return rootsOf(pem, path)
}

/** CA certificates that follow their file: good ones are taken over, bad ones are reported. */
export class TrustBundle {
  readonly #listeners: (() => void)[] = []
  #roots: Roots

  constructor(roots: Roots) {
    this.#roots = roots
  }

  get pem(): string {
    return this.#roots.pem
  }

  get certificates(): readonly X509Certificate[] {
    return this.#roots.certificates
  }

  /** Calls back after each change. */
  onNew(listener: () => void): void {
    this.#listeners.push(listener)
  }

  replace(roots: Roots): void {
    this.#roots = roots
    for (const listener of this.#listeners) listener()
  }
}

/** The bundle of the cluster's own CA, which follows it. */
export function clusterBundle(pki: Pki): TrustBundle {
  const current = (): Roots => rootsOf(pki.clusterCa.bundlePem, pki.directory)
  const bundle = new TrustBundle(current())
  pki.onNewClusterCa(() => bundle.replace(current()))
  return bundle
}

/** Reads a bundle, which must be good at the start, and follows its file. */
export async function openTrustBundle(
  path: string,
  parts: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<TrustBundle> {
  const { log, signal } = parts
  const bundle = new TrustBundle(await readRoots(path))
  const reload = async (): Promise<void> => {
    try {
      const roots = await readRoots(path)
      if (roots.pem === bundle.pem) return
      bundle.replace(roots)
      log.info({ path, certificates: roots.certificates.length }, 'CA file reloaded')
    } catch (err) {
      log.warn({ err, path }, 'CA file cannot be used, the old certificates stay')
    }
  }
  await watchFiles([path], reload, { log, signal })
  // Once more, for a change between the first reading and the watch.
  await reload()
  return bundle
}
