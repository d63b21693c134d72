import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  ApiError,
  type Authentication,
  type Clock,
  type Logger,
  quotePeer,
} from '../../core/index.ts'
import {
  CertificateRefused,
  type ClientCertificate,
  peerCertificates,
  verifyClientCertificate,
} from '../../pki/index.ts'
import { plainAddress } from '../addresses/source.ts'
import { ClientDistrusted } from './agent-registry.ts'
import type { TlsFiles } from './listening/tls-files.ts'

/** Knows which users and certificates are revoked, and tells when one becomes so. */
export interface RevocationList {
  /** Throws an ApiError when that cannot be known. */
  isRevoked(authentication: Authentication): boolean
  /** Calls back once when it is revoked, or when that can no longer be known; returns how to stop listening. */
  onRevoked(authentication: Authentication, listener: () => void): () => void
}

/** Whom a certificate names. */
export type Holder = Pick<ClientCertificate, 'commonName' | 'organizations' | 'serial'>

/** By what the clients of a TLS port are believed. */
export interface ClientTrustParts {
  /** The CAs as of now. */
  readonly cas: () => readonly X509Certificate[]
  readonly revocations: RevocationList | undefined
  /** Whether a certificate must say whom it names; without that TLS's own verdict is enough. */
  readonly needsHolder: boolean
  readonly clock: Clock
  readonly log: Logger
}

/** A connection that is let in has begun its handshake not longer ago than this. */
const longestHandshakeMs = 30_000

/** Lets connections in by their certificates, and cuts those whose CA is dropped or that are revoked later. */
export class ClientTrust {
  readonly #parts: ClientTrustParts
  readonly #open = new Map<Socket, Holder | undefined>()
  #newCasAt = Number.NEGATIVE_INFINITY

  constructor(parts: ClientTrustParts) {
    this.#parts = parts
  }

  /** Lets a connection in whose handshake is done, once or again, and says whose it is; throws ClientDistrusted. */
  admit(socket: Socket): Holder | undefined {
    if (this.#open.has(socket)) return this.#open.get(socket)
    const holder = this.#mayBeOfOldCas || this.#needsHolder ? this.#verify(socket) : undefined
    const problem = this.#revocationOf(holder)
    if (problem !== undefined) throw new ClientDistrusted(problem)
    this.#open.set(socket, holder)
    const forget = this.#cutWhenRevoked(socket, holder)
    socket.once('close', () => {
      this.#open.delete(socket)
      forget()
    })
    return holder
  }

  /** To be called when there are other CAs; cuts whom they do not vouch for. */
  async casChanged(): Promise<void> {
    this.#newCasAt = this.#parts.clock.monotonic()
    for (const socket of this.#open.keys()) {
      if (!socket.destroyed) this.#look(socket)
      // There may be thousands, and the bytes of the others must not wait for all these signatures.
      await nextTurn()
    }
  }

  get #needsHolder(): boolean {
    return this.#parts.needsHolder || this.#parts.revocations !== undefined
  }

  /** TLS verifies under the CAs of the moment in which the handshake began. */
  get #mayBeOfOldCas(): boolean {
    return this.#parts.clock.monotonic() - this.#newCasAt < longestHandshakeMs
  }

  #look(socket: Socket): void {
    try {
      this.#verify(socket)
    } catch (error) {
      if (error instanceof ClientDistrusted) this.#cut(socket, error)
      else throw error
    }
  }

  #verify(socket: Socket): Holder {
    const { cas, clock } = this.#parts
    const chain = peerCertificates(socket)
    try {
      return verifyClientCertificate(chain, cas(), clock.now())
    } catch (error) {
      if (!(error instanceof CertificateRefused)) throw error
      const [own] = chain
      // All but the name is in order, and a name is asked for only by those who look at it.
      if (own && error.why === 'NO_COMMON_NAME' && !this.#parts.needsHolder) {
        return { commonName: '', organizations: [], serial: own.serialNumber }
      }
      throw new ClientDistrusted(error.message, { cause: error })
    }
  }

  #cutWhenRevoked(socket: Socket, holder: Holder | undefined): () => void {
    const { revocations } = this.#parts
    if (!revocations || !holder) return () => {}
    return revocations.onRevoked(authenticationOf(holder), () => {
      const why = this.#revocationOf(holder) ?? 'the certificate was revoked'
      this.#cut(socket, new ClientDistrusted(why))
    })
  }

  #revocationOf(holder: Holder | undefined): string | undefined {
    const { revocations } = this.#parts
    if (!revocations || !holder) return undefined
    const { commonName, serial } = holder
    const shown = `the certificate ${serial} of ${quotePeer(commonName)}`
    try {
      const isRevoked = revocations.isRevoked(authenticationOf(holder))
      return isRevoked ? `${shown} or its user is revoked` : undefined
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return `it cannot be known whether ${shown} is revoked`
    }
  }

  #cut(socket: Socket, error: ClientDistrusted): void {
    const { log } = this.#parts
    log.warn(
      { from: plainAddress(socket.remoteAddress), why: error.message },
      'a connection is cut',
    )
    socket.destroy(error)
  }
}

/** The trust that a port's files give, for as long as they do. */
export function trustIn(tls: TlsFiles, parts: Omit<ClientTrustParts, 'cas'>): ClientTrust {
  const trust = new ClientTrust({ ...parts, cas: () => tls.clientCas })
  tls.onNewClientCas(() => {
    trust
      .casChanged()
      .catch((err: unknown) => parts.log.error({ err }, 'open connections could not be verified'))
  })
  return trust
}

const authenticationOf = ({ commonName, organizations, serial }: Holder): Authentication => ({
  user: { username: commonName, groups: organizations },
  method: 'client-certificate',
  credential: { type: 'certificate', serial },
})
