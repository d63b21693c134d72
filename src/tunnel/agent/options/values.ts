import { isIP, isIPv4, isIPv6 } from 'node:net'
import { parseIpRange } from '../../addresses.ts'

/** A local port and the address in the control plane's network that it stands for. */
export interface Target {
  readonly localPort: number
  /** Host and port, IPv6 in brackets. */
  readonly address: string
}

type Parsed = { readonly target: Target } | { readonly problem: string }

const hostName = /^(?=.{1,253}$)[a-z\d_](?:[-\w]*[a-z\d])?(?:\.[a-z\d_](?:[-\w]*[a-z\d])?)*\.?$/i
const isNumber = (text: string): boolean => /^\d+$/.test(text)
const forms = 'must be HOST:PORT:LOCAL_PORT or LOCAL_PORT:HOST:PORT'

/**
 * Reads one `--target` in either form: `apiserver:6443:6443` as first proposed, or
 * `6443:apiserver:6443` as merged. Where the host stands tells which one it is.
 */
export function parseTarget(text: string): Parsed {
  const parts = splitOutsideBrackets(text)
  const [first = '', middle = '', last = ''] = parts
  if (parts.length > 3) return { problem: `${forms}, with an IPv6 address in brackets` }
  if (parts.length < 3) return { problem: forms }
  if (isNumber(first) && isNumber(middle)) {
    return { problem: `${forms}; which of these numbers is the host cannot be told` }
  }
  if (isNumber(middle)) return checked(first, middle, last)
  if (isNumber(first)) return checked(middle, last, first)
  return { problem: forms }
}

function checked(host: string, port: string, localPort: string): Parsed {
  const shown = shownHost(host)
  if (shown === undefined) return { problem: `${forms}; "${host}" is no host name or address` }
  if (!isPort(port, 1)) return { problem: `${forms}; "${port}" is no port from 1 to 65535` }
  if (!isPort(localPort, 0)) {
    return { problem: `${forms}; "${localPort}" is no port from 0 to 65535` }
  }
  return { target: { localPort: Number(localPort), address: `${shown}:${Number(port)}` } }
}

function shownHost(host: string): string | undefined {
  if (host.startsWith('[') && host.endsWith(']'))
    return isIPv6(host.slice(1, -1)) ? host : undefined
  // What looks like an IPv4 address but is none must not become the name of a host.
  if (/^[\d.]+$/.test(host)) return isIPv4(host) ? host : undefined
  return hostName.test(host) ? host : undefined
}

const isPort = (text: string, least: number): boolean =>
  /^\d{1,5}$/.test(text) && Number(text) >= least && Number(text) <= 65_535

function splitOutsideBrackets(text: string): string[] {
  const match = /^([^[\]]*)(\[[^[\]]*\])([^[\]]*)$/.exec(text)
  if (match === null) return text.split(':')
  const [, before = '', bracketed = '', after = ''] = match
  const head = before.split(':')
  const tail = after.split(':')
  // Brackets enclose one whole part: nothing else may stand beside them.
  return [...head.slice(0, -1), `${head.at(-1)}${bracketed}${tail[0]}`, ...tail.slice(1)]
}

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

const checkOf: Readonly<Record<string, (value: string) => boolean>> = {
  ipv4: isIPv4,
  ipv6: isIPv6,
  host: (value) => value !== '',
  cidr: (value) => parseIpRange(value) !== undefined,
  uid: () => true,
  'default-route': (value) => value === 'true' || value === 'false',
}

/** Says what is wrong with identifiers such as `host=node1&ipv4=10.0.0.1&default-route=true`. */
export function problemOfIdentifiers(text: string): string | undefined {
  if (text === '') return undefined
  for (const [type, value] of new URLSearchParams(text)) {
    const isGood = Object.hasOwn(checkOf, type) ? checkOf[type] : undefined
    if (!isGood) return `must use the types ${Object.keys(checkOf).join(', ')}; unknown: "${type}"`
    if (!isGood(value)) return `must be right for each type; "${value}" is no ${type}`
  }
  return undefined
}
