/**
 * How a tunnel outlives the token that it was opened with. The guard names the tunnel in this header of its 101;
 * whoever opened it sends, before the token ends, a request with a fresh token of the same user and the name in
 * `renewTunnelHeader` to the same address. It is answered with 204 and never forwarded.
 */
export const tunnelHeader = 'Sallyport-Tunnel'

/** Names the tunnel that a fresh token is for. */
export const renewTunnelHeader = 'Sallyport-Renew-Tunnel'
