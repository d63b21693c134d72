import type { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type RememberingVerifier, rememberVerified } from '../authn/index.ts'
import { type Clock, CommandFailed, type Logger, readGivenFile } from '../core/index.ts'
import {
  CertificateRefused,
  PemInvalid,
  type Pki,
  parseCertificates,
  peerCertificates,
  verifyClientCertificate,
  watchFiles,
} from '../pki/index.ts'

/** Trusted CA certificates. */
interface Roots {
  readonly pem: string
  readonly certificates: readonly X509Certificate[]
}

function rootsOf(pem: string, path: string): Roots {
  try {
    return { pem, certificates: parseCertificates(pem) }
  } catch (cause) {
    if (!(cause instanceof PemInvalid)) throw cause
    throw new CommandFailed('CA_FILE_INVALID', `the CA file ${path} is invalid: ${cause.message}`, {
      cause,
      hint: 'it must contain one or more CA certificates in PEM form',
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

/** CA certificates that are reloaded from their file: an invalid file is reported and changes nothing. */
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

/** The bundle of the cluster's own CA, also after it is replaced. */
export function clusterBundle(pki: Pki): TrustBundle {
  const current = (): Roots => rootsOf(pki.clusterCa.bundlePem, pki.directory)
  const bundle = new TrustBundle(current())
  pki.onNewClusterCa(() => bundle.replace(current()))
  return bundle
}

/** Reads a bundle, which must be valid at the start, and reloads it when its file changes. */
export async function openTrustBundle(
  path: string,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<TrustBundle> {
  const bundle = new TrustBundle(await readRoots(path))
  const reload = async (): Promise<void> => {
    try {
      const roots = await readRoots(path)
      if (roots.pem === bundle.pem) return
      bundle.replace(roots)
      log.info({ path, certificates: roots.certificates.length }, 'CA file reloaded')
    } catch (err) {
      log.warn({ err, path }, 'CA file is invalid, keeping the previous one')
    }
  }
  await watchFiles([path], reload, { log, signal })
  // Once more, for a change between the first read and the watch.
  await reload()
  return bundle
}

/** Verifies client certificates under a bundle, each connection once. */
export function certificateVerifier(bundle: TrustBundle, clock: Clock): RememberingVerifier {
  const verifier = rememberVerified((socket) => {
    const chain = peerCertificates(socket)
    if (chain.length === 0) return undefined
    return verifyClientCertificate(chain, bundle.certificates, clock.now())
  }, clock)
  // Connections that were verified under the old CAs must be verified under the new ones.
  bundle.onNew(() => verifier.forget())
  return verifier
}

interface Stream {
  readonly socket: Socket
  readonly end: () => void
}

/** The CAs whose client certificates the port accepts; ends streams when the CA of their certificate is removed. */
export class ClientTrust {
  readonly #bundles: readonly TrustBundle[]
  readonly #clock: Clock
  readonly #streams = new Set<Stream>()

  constructor(bundles: readonly TrustBundle[], clock: Clock) {
    this.#bundles = bundles
    this.#clock = clock
    this.onNew(() => this.#endDistrusted())
  }

  /** CAs that the TLS handshake names. */
  get pem(): string {
    return this.#bundles.map(({ pem }) => pem).join('\n')
  }

  /** Calls back after each change of a bundle. */
  onNew(listener: () => void): void {
    for (const bundle of this.#bundles) bundle.onNew(listener)
  }

  /** Calls `end` when the client certificate of a stream's connection is no longer trusted; returns how to stop that. */
  onDistrusted(request: IncomingMessage, end: () => void): () => void {
    const stream = { socket: connectionOf(request), end }
    this.#streams.add(stream)
    return () => void this.#streams.delete(stream)
  }

  #endDistrusted(): void {
    for (const { socket, end } of this.#streams) if (!this.#isTrusted(socket)) end()
  }

  #isTrusted(socket: Socket): boolean {
    const chain = peerCertificates(socket)
    if (chain.length === 0) return true
    return this.#bundles.some(({ certificates }) => {
      try {
        verifyClientCertificate(chain, certificates, this.#clock.now())
        return true
      } catch (error) {
        if (error instanceof CertificateRefused) return false
        throw error
      }
    })
  }
}

interface Http2Request {
  readonly stream?: { readonly session?: { readonly socket: Socket } }
}

/** The connection of a request; each HTTP/2 request has a proxy object of its own as `socket`. */
const connectionOf = (request: Pick<IncomingMessage, 'socket'>): Socket =>
  (request as Http2Request).stream?.session?.socket ?? request.socket
