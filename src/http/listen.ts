import { type AddressInfo, isIPv4, isIPv6, type Server } from 'node:net'
import { CommandFailed, systemErrorCode } from '../core/index.ts'

/** An address to listen on. */
export interface ListenAddress {
  readonly host: string
  /** Left out without an error on a machine that has no such address, as `::1` where IPv6 is off. */
  readonly optional?: boolean
  /** By which its port is chosen, for people who have to choose another one. */
  readonly option?: string
}

const absentAddress = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'])
const attempts = 10

/** Opens a listener on each address at one port; port 0 takes one that is free on all of them. */
export async function listenOnAll<S extends Server>(
  create: () => S,
  addresses: readonly ListenAddress[],
  port: number,
): Promise<S[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await tryOnAll(create, addresses, port)
    } catch (error) {
      // A free port of the first address may be taken on the second.
      const again = port === 0 && attempt < attempts && isPortInUse(error)
      if (!again) throw error
    }
  }
}

async function tryOnAll<S extends Server>(
  create: () => S,
  addresses: readonly ListenAddress[],
  port: number,
): Promise<S[]> {
  const open: S[] = []
  let chosen = port
  const hasIpv4 = addresses.some(({ host }) => isIPv4(host))
  try {
    for (const address of addresses) {
      const server = create()
      if (!(await listen(server, address, chosen, hasIpv4))) continue
      open.push(server)
      chosen = portOf(server)
    }
  } catch (error) {
    for (const server of open) server.close()
    throw error
  }
  if (open.length > 0) return open
  const hosts = addresses.map(({ host }) => host).join(', ')
  throw new CommandFailed(
    'ADDRESS_NOT_AVAILABLE',
    `this machine has none of the addresses ${hosts}`,
  )
}

async function listen(
  server: Server,
  address: ListenAddress,
  port: number,
  hasIpv4: boolean,
): Promise<boolean> {
  const { host } = address
  // `::` would take the port of `0.0.0.0` as well.
  const ipv6Only = hasIpv4 && isIPv6(host)
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, ipv6Only }, () => {
        server.off('error', reject)
        resolve()
      })
    })
    return true
  } catch (error) {
    if (address.optional && absentAddress.has(systemErrorCode(error) ?? '')) return false
    throw explain(error, address, port)
  }
}

/** The port on which a listener was opened. */
export function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

const isPortInUse = (error: unknown): boolean =>
  error instanceof CommandFailed && error.code === 'PORT_IN_USE'

function explain(cause: unknown, { host, option }: ListenAddress, port: number): CommandFailed {
  const where = isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
  const code = systemErrorCode(cause) ?? 'unknown error'
  switch (code) {
    case 'EADDRINUSE':
      return new CommandFailed('PORT_IN_USE', `cannot listen on ${where}: the port is in use`, {
        hint: `stop the program that uses it, or choose another port${option ? ` by ${option}` : ''}`,
        cause,
      })
    case 'EACCES':
      return new CommandFailed(
        'PORT_NOT_PERMITTED',
        `cannot listen on ${where}: this user may not use the port`,
        { hint: 'choose a port above 1023, or grant the right to bind lower ones', cause },
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new CommandFailed(
        'ADDRESS_NOT_AVAILABLE',
        `cannot listen on ${where}: this machine has no such address`,
        { hint: 'choose an address of this machine', cause },
      )
    default:
      return new CommandFailed('LISTEN_FAILED', `cannot listen on ${where}: ${code}`, { cause })
  }
}
