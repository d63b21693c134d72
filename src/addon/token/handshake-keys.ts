import { connect } from 'node:tls'
import type { Clock } from '../../core/index.ts'
import { apiServerKey } from './api-server-key.ts'
import type { CaBundle } from './ca-bundle.ts'
import type { AddonVerificationKey } from './verification-key.ts'

/** Which API server shows its key by a handshake. */
export interface HandshakeOptions {
  readonly host: string
  readonly port: number
  readonly serverName: string
  readonly bundle: CaBundle
  readonly clock: Clock
}

/** The key with which the API server serves, taken from a handshake that the cluster's CA vouches for. */
export function keyByHandshake(
  { host, port, serverName, bundle, clock }: HandshakeOptions,
  signal: AbortSignal,
): Promise<readonly AddonVerificationKey[]> {
  return new Promise((resolve, reject) => {
    const ca = bundle.certificates.map(String)
    const socket = connect({ host, port, servername: serverName, ca })
    const abort = (): void =>
      void socket.destroy(new Error('the API server did not answer in time'))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    socket.once('error', reject).once('close', () => {
      signal.removeEventListener('abort', abort)
      reject(new Error('the API server closed the connection'))
    })
    socket.once('secureConnect', () => {
      try {
        resolve([keyOf()])
      } catch (error) {
        reject(error)
      }
      socket.destroy()
    })
    // The same rules as for a certificate in a token: TLS alone is content with less.
    const keyOf = (): AddonVerificationKey => {
      const leaf = socket.getPeerX509Certificate()
      if (!leaf) throw new Error('the API server showed no certificate')
      const chain = [leaf, ...(leaf.issuerCertificate ? [leaf.issuerCertificate] : [])]
      return apiServerKey(chain, bundle.certificates, { name: serverName, now: clock.now() })
    }
  })
}
