/** An object behind the API server's proxy, as its URL names it. */
export interface Proxied {
  readonly resource: 'services' | 'pods' | 'nodes'
  readonly namespace: string
  /** `name`, `name:port` or `scheme:name:port`. */
  readonly id: string
}

/** One way to write the path of proxied content. */
export interface Spelling {
  readonly name: string
  readonly path: string
}

type Form = readonly [name: string, write: (parent: string, id: string, rest: string) => string]

/** Where the word `proxy` and the legacy prefixes stand. */
const forms: readonly Form[] = [
  ['today', (parent, id, rest) => `/api/v1/${parent}/${id}/proxy${rest}`],
  ['legacy', (parent, id, rest) => `/api/v1/proxy/${parent}/${id}${rest}`],
  ['watch', (parent, id, rest) => `/api/v1/watch/${parent}/${id}/proxy${rest}`],
  ['watch legacy', (parent, id, rest) => `/api/v1/watch/proxy/${parent}/${id}${rest}`],
  ['legacy watch', (parent, id, rest) => `/api/v1/proxy/watch/${parent}/${id}${rest}`],
  ['of a group', (parent, id, rest) => `/apis/apps/v1/${parent}/${id}/proxy${rest}`],
  ['legacy of a group', (parent, id, rest) => `/apis/apps/v1/proxy/${parent}/${id}${rest}`],
  ['of another version', (parent, id, rest) => `/api/v2/${parent}/${id}/proxy${rest}`],
]

type Encoding = readonly [name: string, write: (path: string) => string]

/** How the same path can be written. What does not apply to a path leaves it as it is. */
const encodings: readonly Encoding[] = [
  ['plain', (path) => path],
  ['encoded colons', (path) => path.replaceAll(':', '%3A')],
  ['encoded colons in lower case', (path) => path.replaceAll(':', '%3a')],
  ['an encoded p', (path) => path.replace('/proxy', '/%70roxy')],
  ['an encoded s', (path) => path.replace('/services', '/%73ervices')],
  ['an encoded a', (path) => path.replace('/api', '/%61pi')],
  ['an encoded w', (path) => path.replace('/watch', '/%77atch')],
  ['an encoded n', (path) => path.replace('/namespaces', '/%6Eamespaces')],
  ['everything encoded', (path) => path.replaceAll(/[a-z]/g, hex)],
  ['encoded twice', (path) => path.replace('/proxy', '/%2570roxy')],
  ['an encoded slash before proxy', (path) => path.replace('/proxy', '%2Fproxy')],
  ['an encoded slash behind proxy', (path) => path.replace('/proxy/', '/proxy%2F')],
  ['an encoded backslash', (path) => path.replace('/proxy', '%5Cproxy')],
  ['an empty segment', (path) => path.replace('/proxy', '//proxy')],
  ['an empty first segment', (path) => `/${path}`],
  ['a dot segment', (path) => path.replace('/proxy', '/./proxy')],
  ['a segment up', (path) => path.replace('/proxy', '/x/../proxy')],
  ['an encoded segment up', (path) => path.replace('/proxy', '/x/%2e%2e/proxy')],
  ['capitals', (path) => path.replace('/proxy', '/Proxy')],
  ['parameters', (path) => path.replace('/proxy', '/proxy;x=y')],
  ['a NUL', (path) => path.replace('/proxy', '/proxy%00')],
  ['a broken escape', (path) => path.replace('/proxy', '/%7proxy')],
  ['an API prefix', (path) => `/k8s${path}`],
]

const hex = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`

/** Every form × encoding of the path to `rest` of an object, each path once. */
export function spellingsOf({ resource, namespace, id }: Proxied, rest: string): Spelling[] {
  const parent = resource === 'nodes' ? 'nodes' : `namespaces/${namespace}/${resource}`
  const byPath = new Map<string, string>()
  for (const [form, inForm] of forms)
    for (const [encoding, encode] of encodings) {
      const path = encode(inForm(parent, id, rest))
      if (!byPath.has(path)) byPath.set(path, `${resource} ${id}, ${form}, ${encoding}`)
    }
  return [...byPath].map(([path, name]) => ({ name, path }))
}

/** The ids by which a Service with one port can be named. */
export const serviceIds = (
  name: string,
  port: { readonly name: string; readonly number: number },
) =>
  [
    name,
    `${name}:${port.name}`,
    `${name}:${port.number}`,
    `http:${name}:${port.number}`,
    `http:${name}:`,
    `http:${name}:${port.name}`,
  ] as const
