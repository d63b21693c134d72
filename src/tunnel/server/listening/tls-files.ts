import { constants, type X509Certificate } from 'node:crypto'
import type { TlsOptions } from 'node:tls'
import { type Clock, CommandFailed, type Logger, readGivenFile } from '../../../core/index.ts'
import {
  openServingCertificate,
  parseCertificates,
  type ServingCertificate,
  watchFiles,
} from '../../../pki/index.ts'

/** The files of a TLS port and how strict it is. */
export interface TlsFilesParts {
  readonly certFile: string
  readonly keyFile: string
  /** With it clients must show a certificate under it. */
  readonly clientCaFile?: string
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** OpenSSL's list; Node's own without it. */
  readonly ciphers?: string
  readonly clock: Clock
  readonly log: Logger
}

/** The CAs of clients. */
interface ClientCas {
  readonly pem: string
  readonly certificates: readonly X509Certificate[]
}

/** A server whose certificates can be replaced while it runs. */
interface Replaceable {
  setSecureContext(options: TlsOptions): void
}

/** TLS settings that follow their files: good ones are taken over for new connections, bad ones are reported. */
export class TlsFiles {
  readonly #parts: TlsFilesParts
  readonly #serving: ServingCertificate
  readonly #closed = new AbortController()
  readonly #servers: Replaceable[] = []
  readonly #caListeners: (() => void)[] = []
  #clientCas: ClientCas | undefined

  constructor(parts: TlsFilesParts, serving: ServingCertificate, clientCas: ClientCas | undefined) {
    this.#parts = parts
    this.#serving = serving
    this.#clientCas = clientCas
  }

  /** The settings as of now. */
  get options(): TlsOptions {
    const { minVersion, ciphers } = this.#parts
    const { certPem, keyPem } = this.#serving.current
    const wantsClients = this.#clientCas !== undefined
    return {
      cert: certPem,
      key: keyPem.reveal(),
      ...(this.#clientCas && { ca: this.#clientCas.pem }),
      requestCert: wantsClients,
      rejectUnauthorized: wantsClients,
      minVersion,
      ...(ciphers !== undefined && { ciphers }),
      // Sessions cannot be resumed: a resumed one carries the verdict of an earlier CA.
      secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
      handshakeTimeout: 10_000,
    }
  }

  /** The CAs of clients as of now; none if clients need no certificate. */
  get clientCas(): readonly X509Certificate[] {
    return this.#clientCas?.certificates ?? []
  }

  /** Calls back when the CAs of clients have changed and count for new connections. */
  onNewClientCas(listener: () => void): void {
    this.#caListeners.push(listener)
  }

  /** Keeps a server up to date. */
  follow(server: Replaceable): void {
    this.#servers.push(server)
  }

  /** Begins to watch the files. */
  async watch(): Promise<void> {
    const { clientCaFile, log } = this.#parts
    this.#serving.onNew(() => this.#replace())
    if (clientCaFile === undefined) return
    const options = { log, signal: this.#closed.signal }
    await watchFiles([clientCaFile], () => this.#reloadCa(clientCaFile), options)
  }

  close(): void {
    this.#closed.abort()
    this.#serving.close()
  }

  async #reloadCa(file: string): Promise<void> {
    const { log } = this.#parts
    try {
      const cas = await readCas(file)
      if (cas.pem === this.#clientCas?.pem) return
      this.#clientCas = cas
      log.info({ file }, 'CA of clients replaced')
      this.#replace()
      for (const listener of this.#caListeners) listener()
    } catch (err) {
      log.warn({ err, file }, 'the new CA of clients is unfit, the old one stays')
    }
  }

  #replace(): void {
    for (const server of this.#servers) server.setSecureContext(this.options)
  }
}

/** Reads the files, which must be fit, and follows them from then on. */
export async function openTlsFiles(parts: TlsFilesParts): Promise<TlsFiles> {
  const { clientCaFile, certFile, keyFile, clock, log } = parts
  const clientCas = clientCaFile === undefined ? undefined : await readCas(clientCaFile)
  const serving = await openServingCertificate({ certFile, keyFile, clock, log })
  const files = new TlsFiles(parts, serving, clientCas)
  await files.watch()
  return files
}

async function readCas(file: string): Promise<ClientCas> {
  const hint = 'name a PEM file with the certificates of the CA'
  const pem = await readGivenFile(
    file,
    (code, cause) => new CommandFailed('CA_UNFIT', `cannot read ${file}: ${code}`, { hint, cause }),
  )
  try {
    return { pem, certificates: parseCertificates(pem) }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unknown error'
    throw new CommandFailed('CA_UNFIT', `${file} is no CA file: ${why}`, { hint, cause })
  }
}
