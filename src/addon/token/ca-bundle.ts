import type { X509Certificate } from 'node:crypto'
import { CommandFailed, type Logger, readTrustedFile, systemErrorCode } from '../../core/index.ts'
import { parseCertificates, watchFiles } from '../../pki/trust/index.ts'

/** The CAs under which an API server's certificate must be; they may change. */
export interface CaBundle {
  readonly certificates: readonly X509Certificate[]
  onChange(listener: () => void): void
}

/** Where a bundle is read, and for how long it is followed. */
export interface CaBundleOptions {
  readonly file: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Reads a bundle of CAs, which must be good, and follows its file: later a bad one changes nothing. */
export async function openCaBundle({ file, log, signal }: CaBundleOptions): Promise<CaBundle> {
  const listeners: (() => void)[] = []
  let text = ''
  let certificates: readonly X509Certificate[] = []
  const take = async (): Promise<void> => {
    const read = await readTrustedFile(file, 'given')
    if (read === text) return
    certificates = parseCertificates(read)
    text = read
    for (const listener of listeners) listener()
  }
  await take().catch((cause: unknown) => {
    if (cause instanceof CommandFailed) throw cause
    throw new CommandFailed('CA_BUNDLE_UNFIT', `no CA can be read from ${file}: ${whyNot(cause)}`, {
      hint: "in a Pod it is the service account's ca.crt; elsewhere give the cluster's by --ca-file (caFile in createGuard)",
      cause,
    })
  })
  const follow = async (): Promise<void> => {
    try {
      await take()
      log.info({ file, cas: certificates.length }, 'CA bundle read again')
    } catch (err) {
      log.warn({ err, file }, 'the new CA bundle is unfit, the old one stays')
    }
  }
  await watchFiles([file], follow, { log, signal })
  // Once more, for a change between the first reading and the watch.
  await take().catch(() => {})
  return {
    get certificates() {
      return certificates
    },
    onChange: (listener) => void listeners.push(listener),
  }
}

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EISDIR: 'it is a directory',
}

function whyNot(cause: unknown): string {
  const told = cause instanceof Error ? cause.message : 'it is unfit'
  return unreadable[systemErrorCode(cause) ?? ''] ?? told
}
