import type { ApiReader } from './api-reader.ts'
import { isLabel, type ServiceId, servicePrefix } from './proxied-path.ts'
import { defaultPort, field, isWebPort, readPorts, type ServicePort, withPort } from './services.ts'

/** A port of a service that the user may open in a browser. */
export interface AddonPort {
  readonly service: ServiceId
  /** As a person names the port. */
  readonly label: string
  /** Whether the address without a port leads here. */
  readonly isDefault: boolean
}

/** What the page at `/` tells. */
export interface HomeContents {
  /** Absent where the API does not say. */
  readonly user?: string
  readonly addons: readonly AddonPort[]
  readonly namespaces: readonly string[]
}

const maxNamespaces = 30

/** Asks the API what the user may open; what may not be read is left out. */
export async function gatherHome(
  api: ApiReader,
  ownNamespace: string,
  signal: AbortSignal,
): Promise<HomeContents> {
  const [user, namespaces, everyService, mayProxyAll] = await Promise.all([
    userName(api, signal),
    names(api, '/api/v1/namespaces?limit=500', signal),
    items(api, '/api/v1/services?limit=1000', signal),
    mayProxyEverything(api, signal),
  ])
  const searched = [...new Set([ownNamespace, ...(namespaces ?? [])])].slice(0, maxNamespaces)
  const services = everyService ?? (await servicesOf(api, searched, signal))
  const candidates = services.flatMap(webPortsOf)
  const addons = mayProxyAll ? candidates : await permitted(api, candidates, signal)
  return {
    ...(user !== undefined && { user }),
    addons,
    namespaces: namespaces ?? [ownNamespace],
  }
}

async function items(
  api: ApiReader,
  path: string,
  signal: AbortSignal,
): Promise<readonly unknown[] | undefined> {
  const list = field(await api.get(path, signal), 'items')
  return Array.isArray(list) ? list : undefined
}

async function names(
  api: ApiReader,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const found = await items(api, path, signal)
  return found?.map((item) => textAt(item, 'metadata', 'name')).filter((name) => name !== '')
}

async function servicesOf(
  api: ApiReader,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const lists = await Promise.all(
    namespaces.map((name) => items(api, `/api/v1/namespaces/${name}/services?limit=500`, signal)),
  )
  return lists.flatMap((list) => list ?? [])
}

/** Who the API server takes us for; `undefined` if it does not say. */
export async function userName(api: ApiReader, signal: AbortSignal): Promise<string | undefined> {
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const userInfo = field(field(await api.review(path, asked, signal), 'status'), 'userInfo')
  const name = field(userInfo, 'username')
  return typeof name === 'string' ? name : undefined
}

const reviews = '/apis/authorization.k8s.io/v1'

async function mayProxyEverything(api: ApiReader, signal: AbortSignal): Promise<boolean> {
  const asked = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb: 'get', resource: 'services', subresource: 'proxy' } },
  }
  const answer = await api.review(`${reviews}/selfsubjectaccessreviews`, asked, signal)
  return field(field(answer, 'status'), 'allowed') === true
}

async function permitted(
  api: ApiReader,
  candidates: readonly AddonPort[],
  signal: AbortSignal,
): Promise<AddonPort[]> {
  const namespaces = [...new Set(candidates.map(({ service }) => service.namespace))]
  const rules = new Map(
    await Promise.all(
      namespaces
        .slice(0, maxNamespaces)
        .map(async (name) => [name, await rulesOf(api, name, signal)] as const),
    ),
  )
  return candidates.filter(({ service }) =>
    (rules.get(service.namespace) ?? []).some((rule) => covers(rule, idOf(service))),
  )
}

async function rulesOf(
  api: ApiReader,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const asked = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  }
  const answer = await api.review(`${reviews}/selfsubjectrulesreviews`, asked, signal)
  const rules = field(field(answer, 'status'), 'resourceRules')
  return Array.isArray(rules) ? rules : []
}

/** The name of a service in the eyes of RBAC: the whole part of the path, with scheme and port. */
const idOf = (service: ServiceId): string => servicePrefix(service).split('/').at(-2) ?? ''

function covers(rule: unknown, id: string): boolean {
  const has = (name: string, ...wanted: readonly string[]): boolean => {
    const list = field(rule, name)
    return Array.isArray(list) && list.some((each) => wanted.includes(String(each)))
  }
  const named = field(rule, 'resourceNames')
  const isAnyName = !Array.isArray(named) || named.length === 0
  return (
    has('verbs', 'get', '*') &&
    has('apiGroups', '', '*') &&
    has('resources', 'services/proxy', '*/proxy', '*') &&
    (isAnyName || named.includes(id))
  )
}

function webPortsOf(service: unknown): AddonPort[] {
  const namespace = textAt(service, 'metadata', 'namespace')
  const name = textAt(service, 'metadata', 'name')
  // This service is the API itself, which the service proxy refuses to reach.
  if (namespace === 'default' && name === 'kubernetes') return []
  if (!isLabel(namespace) || !isLabel(name)) return []
  const ports = readPorts(service)
  const first = defaultPort(ports)
  return ports
    .filter(isWebPort)
    .filter(hasPlainName)
    .map((port) => ({
      service: withPort({ namespace, name }, port),
      label: labelOf(port),
      isDefault: port === first,
    }))
}

/** Such as every API server insists on; nothing else can stand in an address. */
const hasPlainName = ({ name }: ServicePort): boolean => !name || isLabel(name)

/** kubectl names a port after its number where nobody has named it. */
const labelOf = ({ name, port }: ServicePort): string =>
  name && name !== String(port) ? `${name} ${port}` : String(port)

function textAt(value: unknown, ...path: readonly string[]): string {
  const found = path.reduce<unknown>(field, value)
  return typeof found === 'string' ? found : ''
}
