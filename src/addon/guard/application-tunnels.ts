import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock, Logger } from '../../core/index.ts'
import type { AddonUser } from '../token/addon-claims.ts'
import { renewTunnelHeader, tunnelHeader } from '../token/renewal.ts'
import { Tunnels, tunnelLeewayMs } from './tunnels.ts'

const renewName = renewTunnelHeader.toLowerCase()
const agreement = /^HTTP\/1\.1 101[^\r\n]*\r\n/

/** Connections that have left HTTP and are an application's own: they end with their token like those behind the sidecar. */
export class ApplicationTunnels {
  readonly #tunnels: Tunnels
  readonly #log: Logger

  constructor(limits: { readonly clock: Clock; readonly maxAgeMs: number }, log: Logger) {
    this.#tunnels = new Tunnels({ ...limits, leewayMs: tunnelLeewayMs })
    this.#log = log
  }

  /** Whether a request was there to renew a tunnel, and has done so; throws GuardRefused. */
  renew({ headers }: IncomingMessage, fresh: AddonUser): boolean {
    const id = headers[renewName]
    if (id === undefined) return false
    this.#tunnels.renew(String(id), fresh)
    return true
  }

  /** Cuts a connection when its token ends, unless a fresh one comes for the name that its 101 then bears. */
  follow(socket: Duplex, user: AddonUser): void {
    if (socket.destroyed) return
    const { id, ended } = this.#tunnels.add(user, (why) => {
      this.#log.info({ user: user.user, reason: why }, 'a tunnel was cut')
      socket.destroy()
    })
    socket.once('close', ended)
    nameInAgreement(socket, id)
  }

  /** Cuts all. */
  cutAll(): void {
    this.#tunnels.cutAll('shutting-down')
  }
}

/** Whether Node has taken a request's connection out of HTTP; it has not where an application has no ear for that. */
export const isUpgrade = (request: IncomingMessage): boolean =>
  'upgrade' in request && request.upgrade === true

/** The application writes its 101 itself, by whatever library: the first bytes that it writes are the place for a name. */
function nameInAgreement(socket: Duplex, id: string): void {
  const write = socket.write.bind(socket)
  let isFirst = true
  socket.write = (chunk: unknown, ...others: unknown[]): boolean => {
    const named = isFirst ? withName(chunk, id) : chunk
    isFirst = false
    return Reflect.apply(write, undefined, [named, ...others])
  }
}

function withName(chunk: unknown, id: string): unknown {
  if (typeof chunk === 'string')
    return chunk.replace(agreement, (line) => `${line}${tunnelHeader}: ${id}\r\n`)
  if (!(chunk instanceof Uint8Array)) return chunk
  const text = Buffer.from(chunk).toString('latin1')
  return agreement.test(text) ? Buffer.from(String(withName(text, id)), 'latin1') : chunk
}
