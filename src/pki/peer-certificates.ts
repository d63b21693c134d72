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

// Neither by `instanceof` nor by `in`: the socket of an HTTP/2 session is a stand-in without either.
function isTls(socket: Socket): socket is TLSSocket {
  return typeof (socket as Partial<TLSSocket>).getPeerX509Certificate === 'function'
}
