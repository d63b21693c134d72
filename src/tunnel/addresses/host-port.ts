import { isIP, isIPv6 } from 'node:net'

/** A place to dial. */
export interface HostPort {
  /** Lower case, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

const bracketed = /^\[([^\]]*)\]:(\d{1,5})$/
const plain = /^([^:[\]]+):(\d{1,5})$/
const hostName =
  /^(?=.{1,253}$)[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*\.?$/

/** Reads `host:port`, IPv6 in brackets only; `undefined` for anything else. */
export function parseHostPort(text: string): HostPort | undefined {
  const inBrackets = bracketed.exec(text)
  const match = inBrackets ?? plain.exec(text)
  if (!match) return undefined
  const host = (match[1] ?? '').toLowerCase()
  const port = Number(match[2])
  if (port < 1 || port > 65_535) return undefined
  const address = host.split('%')[0] ?? ''
  const isGood = inBrackets ? isIPv6(address) : isIP(host) === 4 || hostName.test(host)
  return isGood ? { host, port } : undefined
}

/** `host:port` as the protocol writes it, IPv6 in brackets. */
export const showHostPort = ({ host, port }: HostPort): string =>
  isIPv6(host.split('%')[0] ?? '') ? `[${host}]:${port}` : `${host}:${port}`

/** Says what is wrong with a text that should be `host:port`. */
export const checkHostPort = (text: string): string | undefined =>
  parseHostPort(text) ? undefined : 'must be HOST:PORT, with IPv6 addresses in brackets'
