import net, { isIP, type Socket } from 'node:net'
import tls, { checkServerIdentity } from 'node:tls'
import { systemErrorCode } from '../core/index.ts'
import { UnreachableError } from './status.ts'

/** TLS of a client. */
export interface ClientTls {
  /** PEM; default: the system's roots. */
  readonly ca?: string | Buffer
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  /** The server name to send and to verify; default: `host`. */
  readonly servername?: string
  /** ALPN protocols offered before h2. */
  readonly alpn?: readonly string[]
}

/** A server and how to connect to it. */
export interface GrpcTarget {
  readonly host: string
  readonly port: number
  /** A UNIX socket instead of host and port. */
  readonly socketPath?: string
  /** Opens the connection below TLS, for example through a proxy; default: TCP to host and port. */
  readonly open?: (signal: AbortSignal) => Promise<Socket>
  readonly tls: ClientTls | 'cleartext'
  /** Longest DATA frame that the server may send; default 16 KiB. */
  readonly maxFrameBytes?: number
}

/** The name of a server in messages. */
export const targetName = ({ host, port, socketPath }: GrpcTarget): string =>
  socketPath ?? (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)

/** `:authority` as grpc-go sends it: the name that the server proves, so that proxies can route by it. */
export function authorityOf(target: GrpcTarget): string {
  if (target.socketPath) return 'localhost'
  return (target.tls !== 'cleartext' && target.tls.servername) || targetName(target)
}

const untrusted = 'server certificate is not signed by a trusted CA'

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  // Node.js closes a connection without an alert when it does not trust a client certificate.
  ECONNRESET: 'connection reset; the server may not trust the client certificate',
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ENOTFOUND: 'no such host',
  ETIMEDOUT: 'connection timed out',
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_HAS_EXPIRED: 'server certificate has expired',
  CERT_NOT_YET_VALID: 'server certificate is not valid yet; check the clocks',
  ERR_SSL_WRONG_VERSION_NUMBER: 'server does not speak TLS',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: 'server requires a client certificate',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: 'server does not trust the CA of the client certificate',
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: 'server does not accept the client certificate',
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: 'client certificate has expired',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'server does not speak HTTP/2',
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'client key does not match the client certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'client certificate, client key or CA is not PEM',
  ERR_OSSL_UNSUPPORTED: 'cannot read the client key: it must be PEM without a passphrase',
}

/** Why a connection failed, for people; messages of OpenSSL name its source files. */
export function unreachableReason(error: Error): string {
  const code = systemErrorCode(error) ?? ''
  const known = reasons[code]
  if (known !== undefined) return known
  return code.startsWith('ERR_SSL_') || code.startsWith('ERR_OSSL_')
    ? `TLS handshake failed (${code})`
    : error.message
}

/** The reason if a connection attempt was aborted. */
export const abortedReason = 'timed out or aborted'

const unreachable = (target: GrpcTarget, error: Error): UnreachableError =>
  new UnreachableError(targetName(target), unreachableReason(error), error)

/** Opens a connection, with TLS where required. @throws UnreachableError */
export async function openSocket(target: GrpcTarget, signal: AbortSignal): Promise<Socket> {
  if (!target.open) return handshake(target, signal)
  const opened = await target.open(signal).catch((error: unknown) => {
    const cause = signal.aborted ? new Error(abortedReason) : error
    throw cause instanceof Error ? unreachable(target, cause) : cause
  })
  return target.tls === 'cleartext' ? opened : handshake(target, signal, opened)
}

function handshake(target: GrpcTarget, signal: AbortSignal, opened?: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let socket: Socket
    try {
      socket = connect(target, opened)
    } catch (error) {
      // The certificate or the key is invalid.
      opened?.destroy()
      reject(error instanceof Error ? unreachable(target, error) : error)
      return
    }
    const settle = (error?: Error): void => {
      signal.removeEventListener('abort', aborted)
      socket.removeListener('error', settle)
      if (error === undefined) {
        resolve(socket)
        return
      }
      socket.on('error', () => {})
      socket.destroy()
      reject(unreachable(target, error))
    }
    const aborted = (): void => settle(new Error(abortedReason))
    signal.addEventListener('abort', aborted, { once: true })
    socket.once('error', settle)
    socket.once(target.tls === 'cleartext' ? 'connect' : 'secureConnect', () => settle())
    if (signal.aborted) aborted()
  })
}

function connect(target: GrpcTarget, opened: Socket | undefined): Socket {
  const { host, port, socketPath } = target
  const address = socketPath ? { path: socketPath } : { host, port }
  const socket =
    target.tls === 'cleartext'
      ? (opened ?? net.connect(address))
      : tls.connect({ ...(opened ? { socket: opened } : address), ...tlsOptions(target.tls, host) })
  return socket.setNoDelay(true)
}

function tlsOptions({ ca, cert, key, servername, alpn = [] }: ClientTls, host: string) {
  const name = servername ?? host
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    minVersion: 'TLSv1.2' as const,
    // Explicit, so that no environment variable turns it off.
    rejectUnauthorized: true,
    // An IP address is not sent as server name (RFC 6066 §3), but the certificate must be valid for it.
    servername: isIP(name) ? '' : name,
    checkServerIdentity: (_host: string, certificate: tls.PeerCertificate) =>
      checkServerIdentity(name, certificate),
    ALPNProtocols: [...alpn.filter((protocol) => protocol !== 'h2'), 'h2'],
  }
}
