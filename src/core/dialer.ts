import type { Duplex } from 'node:stream'

/** Opens a connection to an address, directly or through a tunnel. */
export interface Dialer {
  dial(
    target: { readonly host: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<Duplex>
}
