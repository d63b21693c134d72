import type { Socket } from 'node:net'
import { type Authentication, type Authenticator, type Clock, unauthorized } from '../core/index.ts'

/** Whom a client certificate names that has been verified under one set of CAs. */
export interface VerifiedClientCertificate {
  readonly commonName: string
  readonly organizations: readonly string[]
  /** Hexadecimal. */
  readonly serial: string
  /** SHA-256 of the certificate, hexadecimal, with or without colons. */
  readonly fingerprint256: string
  /** Epoch milliseconds. */
  readonly notAfter: number
}

/** `undefined`: the connection shows no certificate. A throw: it does, and the CAs do not vouch for it. */
export type ClientCertificateVerifier = (socket: Socket) => VerifiedClientCertificate | undefined

/** A verifier that recognizes connections. */
export interface RememberingVerifier {
  readonly verify: ClientCertificateVerifier
  /** Called with each use of a verified certificate, if it is set. */
  onUse?: ((certificate: VerifiedClientCertificate, socket: Socket) => void) | undefined
  /** Verifies open connections anew on their next request; call it when the CAs change. */
  readonly forget: () => void
}

/**
 * Verifies a connection on its first request, and again when its certificate has expired. Over HTTP/2
 * it must be given the session's socket: that of a request is another object each time.
 */
export function rememberVerified(
  verify: ClientCertificateVerifier,
  clock: Clock,
): RememberingVerifier {
  let known = new WeakMap<Socket, VerifiedClientCertificate>()
  const verifyOnce = (socket: Socket): VerifiedClientCertificate | undefined => {
    const before = known.get(socket)
    if (before && clock.now() < before.notAfter) return before
    const certificate = verify(socket)
    if (certificate) known.set(socket, certificate)
    return certificate
  }
  const verifier: RememberingVerifier = {
    verify: (socket) => {
      const certificate = verifyOnce(socket)
      if (certificate) verifier.onUse?.(certificate, socket)
      return certificate
    },
    forget: () => {
      known = new WeakMap()
    },
  }
  return verifier
}

/**
 * The certificate's common name is the user, its organizations are the groups. A certificate that
 * does not verify, be it under neither CA, expired or nameless, is 401 and never anonymous.
 */
export function clientCertificate(verify: ClientCertificateVerifier): Authenticator {
  const identities = new WeakMap<VerifiedClientCertificate, Authentication>()
  return {
    name: 'client-certificate',
    authenticate: ({ socket }) => {
      const certificate = verified(verify, socket)
      if (!certificate) return undefined
      const known = identities.get(certificate)
      if (known) return known
      const identity = identityOf(certificate)
      identities.set(certificate, identity)
      return identity
    },
  }
}

function verified(verify: ClientCertificateVerifier, socket: Socket) {
  try {
    return verify(socket)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'not verified'
    throw unauthorized(`client certificate: ${why}`)
  }
}

function identityOf(certificate: VerifiedClientCertificate): Authentication {
  const { commonName, organizations, serial, notAfter } = certificate
  if (commonName === '') throw unauthorized('client certificate: it has no common name')
  const fingerprint = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
  return {
    user: {
      username: commonName,
      groups: organizations,
      extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
    },
    method: 'client-certificate',
    credential: { type: 'certificate', serial },
    expiresAt: notAfter,
  }
}
