import { isIP, isIPv6 } from 'node:net'

/** Where a tunnel server is reached; without a port of its own it has that of `--proxy-server-port`. */
export interface ServerHost {
  readonly host: string
  readonly port?: number
}

/** Reads `name`, `10.0.0.1`, `2001:db8::1`, `name:8091` or `[2001:db8::1]:8091`. */
export function parseServerHost(text: string): ServerHost | undefined {
  if (isIP(text) !== 0) return { host: text }
  const match = /^(?:\[([^\]]+)\]|([\w.-]{1,253}))(?::(\d{1,5}))?$/.exec(text)
  const [, bracketed, name, port] = match ?? []
  if (bracketed !== undefined && !isIPv6(bracketed)) return undefined
  const host = bracketed ?? name
  if (host === undefined) return undefined
  if (port === undefined) return { host }
  const number = Number(port)
  return number >= 1 && number <= 65_535 ? { host, port: number } : undefined
}
