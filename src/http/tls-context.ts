import { constants } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import type { Secret } from '../core/index.ts'

/** What a TLS server shows and whom it may believe. */
export interface TlsMaterial {
  /** The certificate, followed by its intermediates. */
  readonly certPem: string
  readonly keyPem: Secret
  /** CAs whose client certificates are asked for; none are asked for when it is absent. */
  readonly clientCaPem?: string
  /** TLS 1.2 unless given. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3'
}

/**
 * The TLS settings of all our servers. Sessions cannot be resumed: a resumed session carries the
 * verdict of its first handshake, also when the CA has changed since, and with TLS 1.3 Node calls it
 * authorized even if no certificate was ever shown. With P-256 keys nothing is lost: a resumed
 * handshake measured no cheaper than a new one.
 */
export function tlsContextOptions(material: TlsMaterial): SecureContextOptions {
  return {
    cert: material.certPem,
    key: material.keyPem.reveal(),
    ...(material.clientCaPem !== undefined && { ca: material.clientCaPem }),
    minVersion: material.minVersion ?? 'TLSv1.2',
    // Tickets off leaves resumption by session id, which needs a store, and Node's server has none.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
  }
}
