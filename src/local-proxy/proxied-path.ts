/** A service as the API server's service proxy names it: `name`, `name:port` or `scheme:name:port`. */
export interface ServiceId {
  readonly namespace: string
  readonly name: string
  /** Name or number; absent for the port without a name. */
  readonly port?: string
  readonly scheme?: 'http' | 'https'
}

/** A path through the API server's proxy, taken apart. */
export interface ProxiedPath {
  /** Everything before the application's own path; without a slash at its end. */
  readonly prefix: string
  /** The application's own path: empty, or it begins with a slash. */
  readonly rest: string
  /** Absent for pods, nodes, and names that no service can have. */
  readonly service?: ServiceId
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const subresource =
  /^(\/api\/v1\/(?:namespaces\/([^/]+)\/(services|pods)|nodes)\/([^/]+)\/proxy)(\/.*)?$/s
const legacy = /^\/api\/v1\/proxy\/(?:namespaces\/([^/]+)\/(services|pods)|nodes)\/([^/]+)(\/.*)?$/s
const idShape = new RegExp(`^(?:(https?):(${label}):([a-z0-9-]*)|(${label})(?::([a-z0-9-]+))?)$`)

/** Recognises the proxy paths of services, pods and nodes, in today's form and in the old one. */
export function readProxiedPath(path: string): ProxiedPath | undefined {
  const found = subresource.exec(path)
  if (found) {
    const [, prefix = '', namespace, kind, id = '', rest = ''] = found
    return withService({ prefix, rest }, kind === 'services' ? namespace : undefined, id)
  }
  const old = legacy.exec(path)
  if (!old) return undefined
  const [, namespace, kind, id = '', rest = ''] = old
  const parent = namespace === undefined ? 'nodes' : `namespaces/${namespace}/${kind}`
  const prefix = `/api/v1/${parent}/${id}/proxy`
  return withService({ prefix, rest }, kind === 'services' ? namespace : undefined, id)
}

function withService(path: ProxiedPath, namespace: string | undefined, id: string): ProxiedPath {
  const service = namespace === undefined ? undefined : readServiceId(namespace, id)
  return service ? { ...path, service } : path
}

function readServiceId(namespace: string, id: string): ServiceId | undefined {
  const found = idShape.exec(id)
  if (!found || !isLabel(namespace)) return undefined
  const [, scheme, schemedName, schemedPort, plainName, plainPort] = found
  const port = schemedPort ?? plainPort
  return {
    namespace,
    name: schemedName ?? plainName ?? '',
    ...(port !== undefined && port !== '' && { port }),
    ...((scheme === 'http' || scheme === 'https') && { scheme }),
  }
}

const wholeLabel = new RegExp(`^${label}$`)

/** Whether a text is a DNS label, as the names of services and namespaces are. */
export const isLabel = (text: string): boolean => wholeLabel.test(text)

/** The path of the API server's proxy to a service, without a slash at its end. */
export function servicePrefix({ namespace, name, port, scheme }: ServiceId): string {
  const id =
    scheme === undefined
      ? name + (port === undefined ? '' : `:${port}`)
      : `${scheme}:${name}:${port ?? ''}`
  return `/api/v1/namespaces/${namespace}/services/${id}/proxy`
}
