import { connect } from 'node:net'

/** A place to connect to. */
export interface TcpPlace {
  readonly host: string
  readonly port: number
}

/** Connects, and tells from which address of this machine that was; `undefined` if nobody answers. */
export function localAddressTo(
  place: TcpPlace,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ ...place, signal, timeout: timeoutMs })
    const done = (address?: string): void => {
      socket.destroy()
      resolve(address)
    }
    socket.once('connect', () => done(socket.localAddress))
    socket.once('timeout', () => done())
    socket.once('error', () => done())
  })
}
