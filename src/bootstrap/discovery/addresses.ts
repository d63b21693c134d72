import { isIP, isIPv6 } from 'node:net'
import { Secret } from '../../core/index.ts'
import {
  type BootstrapToken,
  BootstrapTokenInvalid,
  parseBootstrapToken,
} from '../tokens/bootstrap-token.ts'
import { badArguments, type DiscoveryFailed } from './errors.ts'
import { parsePin } from './verify.ts'

/** The API server's own port, for addresses that are typed bare. */
const bareHostPort = 6443

const forms = 'write host, host:port, an IP address, [IPv6]:port or https://host[:port][/path]'
const hostName =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i

/** Reads an address as people type it; returns an https URL that does not end in a slash. */
export function parseApiAddress(text: string): string {
  if (text.trim() !== text || text === '')
    throw refused(text, 'is empty or has spaces around it', forms)
  if (text.includes('%'))
    throw refused(text, 'has a % in it: zones and escapes are not supported', forms)
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'https') return parseUrl(text)
  if (scheme === 'http')
    throw refused(text, 'is an http address, and nothing in clear text is trusted', 'use https://')
  if (scheme !== undefined) throw refused(text, 'is no https address', forms)
  return parseBare(text)
}

function parseUrl(text: string): string {
  // Before parsing: a parser takes away what is between slashes and dots, or turns it into another host.
  const authority = /^https:\/\/([^/?#]*)/i.exec(text)?.[1] ?? ''
  if (authority.includes('@'))
    throw badArguments('the address has a user or a password in it', 'give host and port only')
  if (/[?#\\]/.test(text))
    throw refused(text, 'has a query, a fragment or a backslash in it', forms)
  const { host, port } = splitAuthority(text, authority)
  const url = checked(text, host, port ?? '443')
  const path = text.slice('https://'.length + authority.length).replace(/\/+$/, '')
  const whole = new URL(`${url}${path}`)
  if (whole.pathname.replace(/\/$/, '') !== path)
    throw refused(
      text,
      'has a path that can be read in two ways',
      'use letters, digits, - and . in it',
    )
  return `${whole.origin}${path}`
}

function parseBare(text: string): string {
  if (text.includes('@'))
    throw badArguments('the address has a user or a password in it', 'give host and port only')
  if (/[/?#\\]/.test(text))
    throw refused(text, 'has a path but no scheme', 'put https:// before it')
  const { host, port } = isIPv6(text) ? { host: text, port: undefined } : splitAuthority(text, text)
  return new URL(checked(text, host, port ?? String(bareHostPort))).origin
}

function splitAuthority(text: string, authority: string): { host: string; port?: string } {
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/.exec(authority)
  if (bracketed) {
    const [, host = '', port] = bracketed
    if (!isIPv6(host)) throw refused(text, 'has no IPv6 address between its brackets', forms)
    return port === undefined ? { host } : { host, port }
  }
  const [host = '', port, ...more] = authority.split(':')
  if (more.length > 0)
    throw refused(text, 'has too many colons', 'put an IPv6 address in brackets: [IPv6]:port')
  if (port === '') throw refused(text, 'ends in a colon without a port', forms)
  return port === undefined ? { host } : { host, port }
}

function checked(text: string, host: string, port: string): string {
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    throw refused(text, 'has no port from 1 to 65535', forms)
  if (isIPv6(host)) return `https://[${host}]:${Number(port)}`
  if (isIP(host) === 0 && (!hostName.test(host) || looksNumeric(host)))
    throw refused(text, 'has no host name or IP address in it', forms)
  return `https://${host}:${Number(port)}`
}

/** `10.1` and `0x7f.1` are addresses to some programs and names to others. */
const looksNumeric = (host: string): boolean => /(^|\.)(\d+|0x[\da-f]*)\.?$/i.test(host)

const refused = (text: string, why: string, hint: string): DiscoveryFailed =>
  badArguments(`the address ${JSON.stringify(text)} ${why}`, hint)

/** A token and the pins that came with it in one word. */
export interface JoinToken {
  readonly token: BootstrapToken
  readonly pins: readonly string[]
}

/** Reads `id.secret`, or the token with the pins of all roots as one word: `id.secret@sha256:...@sha256:...`. */
export function parseJoinToken(given: Secret | string): JoinToken {
  const text = given instanceof Secret ? given.reveal() : given
  const [token = '', ...pins] = text.trim().split('@')
  try {
    return { token: parseBootstrapToken(token), pins: pins.map(parsePin) }
  } catch (error) {
    if (!(error instanceof BootstrapTokenInvalid)) throw error
    throw badArguments(error.message, 'it looks like abcdef.0123456789abcdef: copy all of it')
  }
}
