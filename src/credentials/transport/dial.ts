import { once } from 'node:events'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls'
import { systemErrorCode } from '../../core/index.ts'
import type { ClientCertificate } from '../credential.ts'
import type { ServerAddress } from './addresses.ts'
import { ClientConfigInvalid, ConnectionFailed } from './errors.ts'
import { type Proxy, tunnelThrough } from './outbound-proxy.ts'

/** After this silence the kernel asks whether the server is still there. */
const keepAliveMs = 15_000

/** How a connection is made and whom it believes. */
export interface DialOptions {
  readonly proxy: Proxy | undefined
  readonly timeoutMs: number
  /** For the server's identity and ours. */
  readonly secureContext: SecureContext
  readonly caPem: string | undefined
  readonly serverName: string | undefined
  readonly insecureSkipVerify: boolean
  /** Application protocols to offer, best first. */
  readonly protocols: readonly string[]
}

/**
 * A connection to a server, ready for requests. It never offers a TLS session of an earlier one: a
 * resumed session keeps the identity of the handshake that made it, whatever certificate is shown now.
 */
export async function dial(address: ServerAddress, options: DialOptions): Promise<Socket> {
  const signal = AbortSignal.timeout(options.timeoutMs)
  let socket: Socket | undefined
  try {
    const plain =
      options.proxy && (await tunnelThrough(options.proxy, address, { ...options, signal }))
    socket = address.tls
      ? secure(address, options, plain)
      : (plain ?? connectTcp({ host: address.host, port: address.port }))
    const ready = address.tls ? 'secureConnect' : 'connect'
    if (address.tls || !plain) await once(socket, ready, { signal })
    socket.setNoDelay(true)
    socket.setKeepAlive(true, keepAliveMs)
    return socket
  } catch (error) {
    socket?.on('error', () => {}).destroy()
    if (!signal.aborted) throw error
    const seconds = options.timeoutMs / 1000
    throw new ConnectionFailed(`no connection to ${address.origin} within ${seconds} s`)
  }
}

function secure(address: ServerAddress, options: DialOptions, socket: Socket | undefined): Socket {
  const { host, port } = address
  // A name may be asked for in the handshake, an address may not.
  const servername = options.serverName ?? (isIP(host) === 0 ? host : undefined)
  return connectTls({
    host,
    port,
    ...(socket && { socket }),
    ...(servername !== undefined && { servername }),
    secureContext: options.secureContext,
    rejectUnauthorized: !options.insecureSkipVerify,
    ALPNProtocols: [...options.protocols],
  })
}

/** What all connections of one identity share: our certificate and the authorities that we believe. */
export function makeSecureContext(
  caPem: string | undefined,
  certificate: ClientCertificate | undefined,
): SecureContext {
  // Node would believe nobody, or for an empty text everybody that the system believes.
  if (caPem !== undefined && !/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/.test(caPem))
    throw new ClientConfigInvalid('the certificate authority of the cluster holds no certificate')
  try {
    return createSecureContext({
      minVersion: 'TLSv1.2',
      ...(caPem !== undefined && { ca: caPem }),
      ...(certificate && { cert: certificate.certPem, key: certificate.keyPem.reveal() }),
    })
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown'
    throw new ClientConfigInvalid(
      `the CA, the client certificate or its key cannot be used (${code})`,
      { cause },
    )
  }
}

/** Throws ClientConfigInvalid for a CA, a certificate or a key that TLS cannot use. */
export function checkTlsMaterial(
  caPem: string | undefined,
  certificate: ClientCertificate | undefined,
): void {
  makeSecureContext(caPem, certificate)
}

/** Tells whether two certificates prove the same identity with the same key. */
export function sameCertificate(
  one: ClientCertificate | undefined,
  other: ClientCertificate | undefined,
): boolean {
  if (one === other) return true
  if (!one || !other) return false
  return one.certPem === other.certPem && one.keyPem.reveal() === other.keyPem.reveal()
}
