import { readFile } from 'node:fs/promises'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '../../src/core/index.ts'
import type { HttpsCaller } from './https-caller.ts'

const whoamiYaml = new URL('../../examples/whoami-addon/whoami.yaml', import.meta.url)
const rbac = 'rbac.authorization.k8s.io'
const paths: Readonly<Record<string, string>> = {
  ServiceAccount: '/api/v1/namespaces/NS/serviceaccounts',
  Service: '/api/v1/namespaces/NS/services',
  Role: `/apis/${rbac}/v1/namespaces/NS/roles`,
  RoleBinding: `/apis/${rbac}/v1/namespaces/NS/rolebindings`,
  ClusterRole: `/apis/${rbac}/v1/clusterroles`,
  ClusterRoleBinding: `/apis/${rbac}/v1/clusterrolebindings`,
}

async function create(admin: HttpsCaller, object: KubeObject): Promise<void> {
  const path = paths[object.kind]?.replace('NS', object.metadata.namespace ?? '') ?? ''
  const { status, text } = await admin.post(path, object)
  if (status !== 201) throw new Error(`${object.kind} ${object.metadata.name}: ${status} ${text}`)
}

/**
 * Creates what whoami needs in a cluster, a visitor and another user who may read, and returns a token of the add-on's
 * service account. The visitor may read in two namespaces; whoami may act for it in one of them.
 */
export async function prepareWhoami(admin: HttpsCaller): Promise<string> {
  for (const document of parseAllDocuments(await readFile(whoamiYaml, 'utf8')))
    await create(admin, document.toJS() as KubeObject)
  // Not `view`: its rules are aggregated by a controller that a lone kube-apiserver does not have.
  await create(admin, {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'reader' },
    rules: [{ apiGroups: [''], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
  })
  for (const [name, namespace] of [
    ['visitor', 'default'],
    ['visitor', 'kube-public'],
    ['jane', 'default'],
  ] as const)
    await create(admin, {
      apiVersion: `${rbac}/v1`,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'reader' },
      subjects: [{ apiGroup: rbac, kind: 'User', name }],
    })
  const made = await admin.post('/api/v1/namespaces/kube-system/serviceaccounts/whoami/token', {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {},
  })
  return (made.object as unknown as { status: { token: string } }).status.token
}

/** As whom the add-on could try to act. */
export const whoamiIdentities: Readonly<
  Record<string, Readonly<Record<string, string | string[]>>>
> = {
  itself: {},
  'the visitor': { 'Impersonate-User': 'visitor' },
  'the visitor in its group': {
    'Impersonate-User': 'visitor',
    'Impersonate-Group': 'whoami-visitors',
  },
  'the visitor as a master': {
    'Impersonate-User': 'visitor',
    'Impersonate-Group': ['whoami-visitors', 'system:masters'],
  },
  'the visitor in another group': {
    'Impersonate-User': 'visitor',
    'Impersonate-Group': 'developers',
  },
  'the visitor with a uid': { 'Impersonate-User': 'visitor', 'Impersonate-Uid': '1' },
  'the visitor with an extra': { 'Impersonate-User': 'visitor', 'Impersonate-Extra-a': 'b' },
  'an administrator': { 'Impersonate-User': 'kubernetes-admin' },
  'an administrator in its group': {
    'Impersonate-User': 'kubernetes-admin',
    'Impersonate-Group': 'system:masters',
  },
  'another user': { 'Impersonate-User': 'jane' },
  'another user in the group': {
    'Impersonate-User': 'jane',
    'Impersonate-Group': 'whoami-visitors',
  },
  'the group as a user': { 'Impersonate-User': 'whoami-visitors' },
  'the controller manager': { 'Impersonate-User': 'system:kube-controller-manager' },
  'the scheduler': { 'Impersonate-User': 'system:kube-scheduler' },
  'the API server': { 'Impersonate-User': 'system:apiserver' },
  'the system administrator': { 'Impersonate-User': 'system:admin' },
  'a node': { 'Impersonate-User': 'system:node:n1' },
  'a node in its group': {
    'Impersonate-User': 'system:node:n1',
    'Impersonate-Group': 'system:nodes',
  },
  'a controller': {
    'Impersonate-User': 'system:serviceaccount:kube-system:namespace-controller',
  },
  'its own service account': { 'Impersonate-User': 'system:serviceaccount:kube-system:whoami' },
  'a bootstrap token': { 'Impersonate-User': 'system:bootstrap:abcdef' },
  anonymous: { 'Impersonate-User': 'system:anonymous' },
}

/** What it could try. */
const actions: readonly (readonly [method: string, path: string])[] = [
  ['GET', '/api/v1/namespaces/default/configmaps'],
  ['GET', '/api/v1/namespaces/default/configmaps?limit=50'],
  ['GET', '/api/v1/namespaces/default/configmaps/kube-root-ca.crt'],
  ['GET', '/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1'],
  ['GET', '/api/v1/namespaces/kube-public/configmaps'],
  ['GET', '/api/v1/namespaces/kube-system/configmaps'],
  ['GET', '/api/v1/configmaps'],
  ['GET', '/api/v1/namespaces/default/secrets'],
  ['GET', '/api/v1/namespaces/kube-system/secrets'],
  ['GET', '/api/v1/namespaces/default/pods'],
  ['GET', '/api/v1/namespaces/default/services'],
  ['GET', '/api/v1/nodes'],
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['DELETE', '/api/v1/namespaces/default/configmaps/kube-root-ca.crt'],
  ['DELETE', '/api/v1/namespaces/default/configmaps'],
  ['POST', '/api/v1/namespaces/default/configmaps'],
  ['POST', '/api/v1/namespaces/kube-system/serviceaccounts/whoami/token'],
]
const allowedFor = new Set(['the visitor', 'the visitor in its group'])
const isListing = (path: string): boolean =>
  /^\/api\/v1\/namespaces\/default\/configmaps(?:\?limit=50)?$/.test(path)

/** Tries every action as one identity; each as `METHOD path status`, with the status that is expected. */
export async function tryAs(
  whoami: HttpsCaller,
  who: string,
): Promise<{ readonly found: readonly string[]; readonly expected: readonly string[] }> {
  const found: string[] = []
  const expected: string[] = []
  for (const [method, path] of actions) {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'made' } }
    const { status } = await whoami.request(path, {
      method,
      headers: whoamiIdentities[who] ?? {},
      ...(method === 'POST' && { body }),
    })
    const isAllowed = allowedFor.has(who) && method === 'GET' && isListing(path)
    found.push(`${method} ${path} ${status}`)
    expected.push(`${method} ${path} ${isAllowed ? 200 : 403}`)
  }
  return { found, expected }
}
