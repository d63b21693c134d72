import { checkHostPort, type HostPort, parseHostPort } from '../../addresses.ts'

const label = /^(?:[a-z\d](?:[-a-z\d.]{0,251}[a-z\d])?\/)?[a-z\d](?:[-\w.]{0,61}[a-z\d])?$/i
const labelValue = /^(?:[a-z\d](?:[-\w.]{0,61}[a-z\d])?)?$/i

/** Reads `key=value,key=value`; `undefined` for anything else. */
export function parseLabels(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text.split(',').map((pair) => pair.split('='))
  const isGood = pairs.every(
    ([key = '', value, ...more]) =>
      label.test(key) && value !== undefined && labelValue.test(value) && more.length === 0,
  )
  return isGood
    ? Object.fromEntries(pairs.map(([key = '', value = '']) => [key, value]))
    : undefined
}

/** Says what is wrong with labels. Without any, expired Leases of everybody would be taken for those of servers. */
export const checkLabels = (text: string): string | undefined =>
  parseLabels(text) ? undefined : 'must be KEY=VALUE, several of them joined by commas'

/** Where connections go whose inner ClientHello asks for a name. */
export interface SniRoute {
  /** Lower case; `*.example.com` stands for any name right below that domain. */
  readonly name: string
  readonly target: HostPort
}

const serverName =
  /^(?=.{1,253}$)(?:\*\.)?[a-z\d_](?:[a-z\d_-]*[a-z\d_])?(?:\.[a-z\d_](?:[a-z\d_-]*[a-z\d_])?)*$/

/** Reads `NAME=HOST:PORT`; `undefined` for anything else. */
export function parseSniRoute(text: string): SniRoute | undefined {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(at, 0)).toLowerCase()
  const target = parseHostPort(text.slice(at + 1))
  return serverName.test(name) && target ? { name, target } : undefined
}

/** Says what is wrong with one `--sni-route`. */
export function checkSniRoute(text: string): string | undefined {
  if (parseSniRoute(text)) return undefined
  const at = text.indexOf('=')
  const why = at > 0 ? checkHostPort(text.slice(at + 1)) : undefined
  return why === undefined ? 'must be NAME=HOST:PORT' : `must be NAME=HOST:PORT; HOST:PORT ${why}`
}

/** Go's names of the TLS 1.2 suites that it calls secure, and what OpenSSL calls them. */
const opensslNames: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
}

/** The suites of TLS 1.3, which cannot be chosen in Go either. */
const tls13Names = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
]

/** Says what is wrong with one name of `--cipher-suites`. */
export const checkCipherSuite = (name: string): string | undefined =>
  Object.hasOwn(opensslNames, name) || tls13Names.includes(name)
    ? undefined
    : 'must be a secure cipher suite by its Go name, for example TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'

/** Go's suite names as OpenSSL's list; `undefined` when none of them limits anything. */
export function opensslCiphers(names: readonly string[]): string | undefined {
  const chosen = names.flatMap((name) => opensslNames[name] ?? [])
  // TLS 1.3 has its own list: what is chosen for 1.2 does not switch it off, as in Go.
  return chosen.length === 0 ? undefined : [...tls13Names, ...chosen].join(':')
}

/** The TLS versions by Go's names. */
export const tlsVersions = ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'] as const

/** The oldest version to accept. TLS 1.0 and 1.1 are broken and not served, whoever asks for them. */
export const minTlsVersion = (name: string): 'TLSv1.2' | 'TLSv1.3' =>
  name === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2'
