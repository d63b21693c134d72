import {
  type Attributes,
  type Authorizer,
  type ClusterView,
  type Decision,
  goQuote,
  isRecord,
  type ResourceAttributes,
  type UserInfo,
  wellKnown,
  wellKnownKinds,
} from '../core/index.ts'

/**
 * The name of the node whose identity `user` is; empty when it is a node that names none;
 * `undefined` when it is no node.
 */
export function nodeNameOf(user: UserInfo): string | undefined {
  if (!user.username.startsWith(wellKnown.nodeUserPrefix)) return undefined
  if (!user.groups.includes(wellKnown.nodes)) return undefined
  return user.username.slice(wellKnown.nodeUserPrefix.length)
}

/** The namespace in which each node has the Lease that shows it is alive. */
export const nodeLeaseNamespace = 'kube-node-lease'

const allowed: Decision = { allowed: true, reason: '' }
const no = (reason = ''): Decision => ({ allowed: false, reason })

const read = ['get', 'list', 'watch']

/** What every node may do alike: resource with group, and the verbs. */
const uniform: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    services: read,
    endpoints: ['get'],
    'certificatesigningrequests.certificates.k8s.io': ['create', ...read],
    'tokenreviews.authentication.k8s.io': ['create'],
    'subjectaccessreviews.authorization.k8s.io': ['create'],
    'localsubjectaccessreviews.authorization.k8s.io': ['create'],
  }),
)

type Rule = (
  node: string,
  wanted: ResourceAttributes & { readonly verb: string },
) => Decision | 'pod' | 'account'

type PodView = Pick<ClusterView, 'get' | 'list'>

/** What a node may do depending on its name. Own objects on writes are left to `nodeAdmission`. */
const byName: ReadonlyMap<string, Rule> = new Map(
  Object.entries<Rule>({
    nodes: (node, { verb, name }) => {
      if (['create', 'update', 'patch'].includes(verb)) return allowed
      if (!read.includes(verb)) return no()
      if (name === node) return allowed
      if (name === '') return no(`node '${node}' cannot read all nodes, only its own Node object`)
      return no(`node '${node}' cannot read '${name}', only its own Node object`)
    },
    'nodes/status': (_node, { verb }) => (verb === 'update' || verb === 'patch' ? allowed : no()),
    'leases.coordination.k8s.io': (node, { verb, namespace, name }) => {
      if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb)) {
        return no('can only get, create, update, patch, or delete a node lease')
      }
      if (namespace !== nodeLeaseNamespace) {
        return no(`can only access leases in the ${goQuote(nodeLeaseNamespace)} system namespace`)
      }
      if (verb === 'create' || name === node) return allowed
      return no('can only access node lease with the same name as the requesting node')
    },
    pods: (node, wanted) => {
      if (!read.includes(wanted.verb)) return no()
      if (wanted.verb !== 'get' && selectsNode(wanted, node)) return allowed
      if (wanted.name !== '') return 'pod'
      return no('can only list/watch pods with spec.nodeName field selector')
    },
    'serviceaccounts/token': (_node, { verb, name }) => {
      if (verb !== 'create') return no('can only create tokens for service accounts')
      return name === '' ? no('can only create tokens for individual service accounts') : 'account'
    },
  }),
)

/**
 * Gives a node identity (group `system:nodes`, user `system:node:NAME`) what Kubernetes' node
 * authorizer gives for our kinds, without what only a kubelet needs: a node here reads no Secret,
 * ConfigMap or ServiceAccount and writes no Pod or Event. It may ask for tokens of the service accounts
 * whose Pods it runs. `nodeAdmission` must stand behind it.
 */
export function nodeAuthorizer(view: PodView): Authorizer {
  return {
    group: wellKnown.nodes,
    authorize: (attributes, signal) => {
      const node = nodeNameOf(attributes.user)
      if (node === undefined || !attributes.resource) return no()
      if (node === '') return no(`unknown node for user ${goQuote(attributes.user.username)}`)
      const decision = decide(node, attributes.verb, attributes.resource)
      if (decision === 'pod') return readOwnPod(view, node, attributes, signal)
      return decision === 'account' ? runsAccount(view, node, attributes, signal) : decision
    },
    rulesFor: (user) => {
      const isNode = nodeNameOf(user) !== undefined
      return {
        resourceRules: [],
        nonResourceRules: [],
        incomplete: isNode,
        ...(isNode && {
          evaluationError: 'node authorizer does not support user rule resolution',
        }),
      }
    },
  }
}

function decide(node: string, verb: string, resource: ResourceAttributes): ReturnType<Rule> {
  const path = resource.subresource
    ? `${resource.resource}/${resource.subresource}`
    : resource.resource
  const key = resource.group ? `${path}.${resource.group}` : path
  const rule = byName.get(key)
  if (rule) return rule(node, { ...resource, verb })
  return uniform.get(key)?.includes(verb) ? allowed : no()
}

async function readOwnPod(
  view: PodView,
  node: string,
  { resource }: Attributes,
  signal: AbortSignal,
): Promise<Decision> {
  const { namespace = '', name = '' } = resource ?? {}
  const pod = await view.get(wellKnownKinds.pod, { namespace, name }, signal)
  const spec = pod?.['spec']
  if (isRecord(spec) && spec['nodeName'] === node) return allowed
  return unrelated(node)
}

const unrelated = (node: string): Decision =>
  no(`no relationship found between node '${node}' and this object`)

/** A node may have tokens of the accounts whose Pods it runs; `serviceaccounts/token` holds it to those Pods. */
async function runsAccount(
  view: PodView,
  node: string,
  { resource }: Attributes,
  signal: AbortSignal,
): Promise<Decision> {
  const { namespace = '', name = '' } = resource ?? {}
  const query = { namespace, fieldSelector: `spec.nodeName=${node}` }
  const { items } = await view.list(wellKnownKinds.pod, query, signal)
  const isRun = items.some(({ spec }) => isRecord(spec) && spec['serviceAccountName'] === name)
  return isRun ? allowed : unrelated(node)
}

/** True when the request's field selector asks for nothing but pods of the node. */
export function selectsNode(resource: ResourceAttributes, node: string): boolean {
  const selector = resource.fieldSelector
  // An escaped comma could make one term look like two.
  if (typeof selector !== 'string' || selector.includes('\\')) return false
  return selector.split(',').some((term) => /^spec\.nodeName==?(.*)$/.exec(term)?.[1] === node)
}

type Labels = Readonly<Record<string, string>> | undefined

/** Labels under Kubernetes' own domains that a node may give itself. */
const nodeLabels: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
])

const within = (domain: string, parent: string) =>
  domain === parent || domain.endsWith(`.${parent}`)

function isForbidden(label: string): boolean {
  const slash = label.indexOf('/')
  const domain = slash < 0 ? '' : label.slice(0, slash)
  if (!within(domain, 'kubernetes.io') && !within(domain, 'k8s.io')) return false
  if (nodeLabels.has(label)) return false
  return !within(domain, 'kubelet.kubernetes.io') && !within(domain, 'node.kubernetes.io')
}

/** The labels that differ and that a node may not touch, so that it cannot draw workloads to itself. */
export function forbiddenNodeLabels(labels: Labels, old: Labels): string[] {
  const keys = new Set([...Object.keys(labels ?? {}), ...Object.keys(old ?? {})])
  return [...keys].filter((key) => labels?.[key] !== old?.[key] && isForbidden(key)).toSorted()
}
