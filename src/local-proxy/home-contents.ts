import { type ProxyTarget, proxyId } from '../core/index.ts'
import type { ApiReader } from './api-reader.ts'
import {
  defaultPort,
  field,
  isWebPort,
  listItems,
  listServices,
  maxNamespaces,
  readPorts,
  type ServicePort,
  serviceTarget,
  textAt,
} from './services.ts'

/** A port of a service that the user may open in a browser. */
export interface AddonPort {
  readonly service: ProxyTarget
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

/** Asks the API what the user may open; what may not be read is left out. */
export async function gatherHome(
  api: ApiReader,
  ownNamespace: string,
  signal: AbortSignal,
): Promise<HomeContents> {
  const [user, namespaces, mayProxyAll] = await Promise.all([
    userName(api, signal),
    names(api, '/api/v1/namespaces?limit=500', signal),
    mayProxyEverything(api, signal),
  ])
  const services = await listServices(api, [ownNamespace, ...(namespaces ?? [])], signal)
  const candidates = services.flatMap(webPortsOf)
  const addons = mayProxyAll ? candidates : await permitted(api, candidates, signal)
  return {
    ...(user !== undefined && { user }),
    addons,
    namespaces: namespaces ?? [ownNamespace],
  }
}

async function names(
  api: ApiReader,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const found = await listItems(api, path, signal)
  return found?.map((item) => textAt(item, 'metadata', 'name')).filter((name) => name !== '')
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
    (rules.get(service.namespace) ?? []).some((rule) => covers(rule, proxyId(service))),
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
      service: serviceTarget(namespace, name, port),
      label: labelOf(port),
      isDefault: port === first,
    }))
}

/** Such as every API server insists on; nothing else can stand in an address. */
const hasPlainName = ({ name }: ServicePort): boolean => !name || isLabel(name)

/** kubectl names a port after its number where nobody has named it. */
const labelOf = ({ name, port }: ServicePort): string =>
  name && name !== String(port) ? `${name} ${port}` : String(port)

const isLabel = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
