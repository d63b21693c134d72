import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

const maxCertificates = 10

/** The certificates that the other side of a TLS connection showed, its own first; empty if it showed none. */
export function peerCertificates(socket: Socket): X509Certificate[] {
  const chain: X509Certificate[] = []
  let next = isTls(socket) ? socket.getPeerX509Certificate() : undefined
  while (next && chain.length < maxCertificates) {
    chain.push(next)
    next = next.issuerCertificate
  }
  return chain
}

// Not by `instanceof`: the socket of an HTTP/2 request is a stand-in for the real one.
function isTls(socket: Socket): socket is TLSSocket {
  return 'getPeerX509Certificate' in socket
}
