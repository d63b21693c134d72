import net, { isIP, type Socket } from 'node:net'
import tls, { checkServerIdentity } from 'node:tls'
import { showHostPort } from '../addresses.ts'
import { LinkUnreachable } from './errors.ts'
import type { ConnectLinkOptions, LinkTls } from './options.ts'
import { unreachableWords } from './unreachable-words.ts'

/** How a peer is named in messages. */
export const nameOfPeer = ({ host, port, socketPath }: ConnectLinkOptions): string =>
  socketPath ?? showHostPort({ host, port })

function connect(options: ConnectLinkOptions, opened: Socket | undefined): Socket {
  const target = options.socketPath
    ? { path: options.socketPath }
    : { host: options.host, port: options.port }
  const socket =
    options.tls === 'cleartext'
      ? (opened ?? net.connect(target))
      : tls.connect({
          ...(opened ? { socket: opened } : target),
          ...tlsOptions(options.tls, options.host),
        })
  return socket.setNoDelay(true)
}

function tlsOptions(given: LinkTls, host: string) {
  const name = given.servername ?? host
  return {
    ...(given.ca !== undefined && { ca: given.ca }),
    ...(given.cert !== undefined && { cert: given.cert }),
    ...(given.key !== undefined && { key: given.key }),
    minVersion: 'TLSv1.2' as const,
    // Explicit, so that no environment variable turns it off.
    rejectUnauthorized: true,
    // An address is no server name (RFC 6066 §3), but the certificate must still be for it.
    servername: isIP(name) ? '' : name,
    checkServerIdentity: (_host: string, certificate: tls.PeerCertificate) =>
      checkServerIdentity(name, certificate),
    ALPNProtocols: [...(given.alpn ?? []).filter((protocol) => protocol !== 'h2'), 'h2'],
  }
}

/** Opens the connection under a link; `signal` gives it up. */
export async function openSocket(
  options: ConnectLinkOptions,
  signal: AbortSignal,
): Promise<Socket> {
  if (!options.open) return secured(options, signal)
  const opened = await options.open(signal).catch((error: unknown) => {
    const why = signal.aborted ? new Error(givenUp) : error
    throw why instanceof Error ? unreachable(options, why) : why
  })
  if (options.tls === 'cleartext') return opened
  return secured(options, signal, opened)
}

const givenUp = 'it took too long or was given up'

const unreachable = (options: ConnectLinkOptions, error: Error): LinkUnreachable =>
  new LinkUnreachable(nameOfPeer(options), unreachableWords(error), error)

function secured(
  options: ConnectLinkOptions,
  signal: AbortSignal,
  opened?: Socket,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let socket: Socket
    try {
      socket = connect(options, opened)
    } catch (error) {
      // A certificate or a key that cannot be used.
      opened?.destroy()
      reject(error instanceof Error ? unreachable(options, error) : error)
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
      reject(unreachable(options, error))
    }
    const aborted = (): void => settle(new Error(givenUp))
    signal.addEventListener('abort', aborted, { once: true })
    socket.once('error', settle)
    socket.once(options.tls === 'cleartext' ? 'connect' : 'secureConnect', () => settle())
    if (signal.aborted) aborted()
  })
}
