import type { IncomingHttpHeaders } from 'node:http'
import { type AddonHome, endToEndHeaders, headerPairs, homeCookie } from '../http/index.ts'

/** What is known of the application behind an answer. */
export interface AnswerHome extends AddonHome {
  /** The API server's address: links to it are links to the application. */
  readonly server: string
  /** Whether a page may run with the rights of its origin. */
  readonly trusted: boolean
}

/**
 * A page of an add-on on the origin that it shares with the API runs as if it had no origin at all:
 * whatever it asks for is then foreign, and refused.
 */
const sandbox = 'sandbox allow-scripts allow-forms allow-popups allow-downloads'

/** The headers of an answer as the client gets them, as a flat list. */
export function answerHeaders(headers: IncomingHttpHeaders, home?: AnswerHome): string[] {
  const kept = endToEndHeaders(flatten(headers))
  return home ? atHome(kept, home) : kept
}

function flatten(headers: IncomingHttpHeaders): string[] {
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') flat.push(name, value)
    else for (const each of value ?? []) flat.push(name, each)
  }
  return flat
}

function atHome(headers: readonly string[], home: AnswerHome): string[] {
  const kept: string[] = []
  for (const [name, value] of headerPairs(headers)) {
    if (name === 'set-cookie') kept.push(name, homeCookie(value, home))
    else if (name === 'location' || name === 'content-location')
      kept.push(name, homeLocation(value, home))
    else kept.push(name, value)
  }
  if (!home.trusted) kept.push('content-security-policy', sandbox)
  return kept
}

/** The API server has put the proxy's path before an application's links; the client knows another one. */
function homeLocation(value: string, { prefix, mount, server }: AnswerHome): string {
  const path = value.startsWith(`${server}/`) ? value.slice(server.length) : value
  if (!path.startsWith(prefix)) return value
  const rest = path.slice(prefix.length)
  if (!/^(?:[/?#]|$)/.test(rest)) return value
  // Two slashes in front would be another host.
  return mount === '' ? `/${rest.replace(/^\/+/, '')}` : mount + rest
}
