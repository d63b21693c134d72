import { badRequest, goQuote, type RequestInfo } from '../../../core/index.ts'

/** What a proxied request is for, as its URL names it. */
export interface ProxyTarget {
  readonly resource: ProxiedResource
  /** As the URL has it, for messages. */
  readonly id: string
  /** Empty for nodes. */
  readonly namespace: string
  readonly name: string
  /** Name or number; empty for the default. */
  readonly port: string
  readonly scheme: 'http' | 'https'
}

/** What can be proxied to, by the words of error messages. */
const singular = { services: 'service', pods: 'pod', nodes: 'node' } as const

/** The resources that have the subresource `proxy`. */
export type ProxiedResource = keyof typeof singular

const nameShape = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/
const portShape = /^[a-zA-Z0-9-]{0,63}$/

/** Reads `name`, `name:port` or `scheme:name:port`; 400 for anything else. */
export function readTarget(
  info: Pick<RequestInfo, 'namespace' | 'name'> & { readonly resource: ProxiedResource },
): ProxyTarget {
  const { resource, namespace, name: id } = info
  const refused = () => badRequest(`invalid ${singular[resource]} request ${goQuote(id)}`)
  const parts = id.split(':')
  if (parts.length > 3) throw refused()
  const [scheme, name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts]
  if (!nameShape.test(name) || !portShape.test(port)) throw refused()
  if (scheme !== '' && scheme !== 'http' && scheme !== 'https') throw refused()
  return { resource, id, namespace, name, port, scheme: scheme || 'http' }
}

/** A port as a number from 1 to 65535; `undefined` for everything else. */
export function portNumber(text: string): number | undefined {
  const number = Number(text)
  return /^\d{1,5}$/.test(text) && number > 0 && number < 65_536 ? number : undefined
}
