import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../core/index.ts'
import { CertificateRefused, peerCertificates, verifyClientCertificate } from '../../pki/index.ts'
import type { TrustBundle } from './trust-bundle.ts'

interface Http2Request {
  readonly stream?: { readonly session?: { readonly socket: Socket } }
}

/** The connection that a request came by; each HTTP/2 request has a stand-in of its own. */
export const connectionOf = (request: Pick<IncomingMessage, 'socket'>): Socket =>
  (request as Http2Request).stream?.session?.socket ?? request.socket

/** Cuts streams whose client certificate is no longer vouched for, because its CA has been dropped. */
export function distrustedStreams(
  bundles: readonly TrustBundle[],
  clock: Clock,
): (request: IncomingMessage, cut: () => void) => () => void {
  const streams = new Map<symbol, { readonly socket: Socket; readonly cut: () => void }>()
  const isVouchedFor = (socket: Socket): boolean => {
    const chain = peerCertificates(socket)
    return chain.length === 0 || bundles.some((bundle) => vouches(bundle, chain, clock))
  }
  const look = (): void => {
    for (const { socket, cut } of streams.values()) if (!isVouchedFor(socket)) cut()
  }
  for (const bundle of bundles) bundle.onNew(look)
  return (request, cut) => {
    const id = Symbol('stream')
    streams.set(id, { socket: connectionOf(request), cut })
    return () => void streams.delete(id)
  }
}

function vouches(
  { certificates }: TrustBundle,
  chain: ReturnType<typeof peerCertificates>,
  clock: Clock,
): boolean {
  try {
    verifyClientCertificate(chain, certificates, clock.now())
    return true
  } catch (error) {
    if (error instanceof CertificateRefused) return false
    throw error
  }
}
