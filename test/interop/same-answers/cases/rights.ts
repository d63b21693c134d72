import {
  type AskOptions,
  cases,
  del,
  get,
  media,
  patch,
  post,
  put,
  type Topic,
  until,
} from '../ask.ts'
import { configMap, configMaps } from '../kinds.ts'

const visitor: AskOptions = { as: 'visitor' }
const acting = (headers: Record<string, string>, as: AskOptions['as'] = 'admin'): AskOptions => ({
  as: as ?? 'admin',
  headers,
})
const whoPath = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const who = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
const secrets = '/api/v1/namespaces/{ns}/secrets'
const rbac = '/apis/rbac.authorization.k8s.io/v1'

/** Who may what, and acting as others. */
export const rights: Topic = {
  name: 'rights',
  cases: cases({
    'a visitor reads': [
      get(`${configMaps}/x`, visitor),
      get(configMaps, visitor),
      get('/api/v1/configmaps', visitor),
      get('/api/v1/nodes', visitor),
      get('/api/v1/nodes/n1', visitor),
      get('/api/v1/namespaces', visitor),
      get('/api/v1/namespaces/{ns}', visitor),
      get('/api/v1/namespaces/{ns}/pods/p/status', visitor),
      get('/api/v1/namespaces/{ns}/pods/p/log', visitor),
      get(`${configMaps}?watch=true`, visitor),
      get(`${configMaps}?fieldSelector=metadata.name%3Dx`, visitor),
      get('/apis/coordination.k8s.io/v1/namespaces/{ns}/leases', visitor),
    ],
    'a visitor writes': [
      post(configMaps, configMap('x'), visitor),
      put(`${configMaps}/x`, configMap('x'), visitor),
      patch(`${configMaps}/x`, media.mergePatch, {}, visitor),
      del(`${configMaps}/x`, undefined, visitor),
      del(configMaps, undefined, visitor),
      put('/api/v1/namespaces/{ns}/finalize', {}, visitor),
      post(configMaps, '{', visitor),
    ],
    'a visitor asks for what does not exist': [
      get('/api/v1/nonsense', visitor),
      get('/apis/nonsense.example.com/v1/things', visitor),
      get('/nonsense', visitor),
      get('/metrics', visitor),
      get('/logs', visitor),
    ],
    'a visitor reads documents': [
      get('/apis/coordination.k8s.io', visitor),
      get('/version', visitor),
      get('/healthz', visitor),
      get('/livez', visitor),
    ],
    nobody: [
      get(configMaps, { as: 'nobody' }),
      get('/api', { as: 'nobody' }),
      get('/version', { as: 'nobody' }),
      get('/healthz', { as: 'nobody' }),
      get('/nonsense', { as: 'nobody' }),
      post(configMaps, configMap('x'), { as: 'nobody' }),
      get('/api/v1/namespaces/kube-public/configmaps/cluster-info', { as: 'nobody' }),
    ],
    'a wrong token': [
      get(configMaps, { as: 'wrong-token' }),
      get('/version', { as: 'wrong-token' }),
      get('/healthz', { as: 'wrong-token' }),
      post(configMaps, configMap('x'), { as: 'wrong-token' }),
    ],
    'other credentials': [
      get('/version', { as: 'nobody', headers: { authorization: 'Basic dXNlcjpwYXNz' } }),
      get(configMaps, { as: 'nobody', headers: { authorization: 'Basic dXNlcjpwYXNz' } }),
      get('/version', { as: 'nobody', headers: { authorization: 'Bearer' } }),
      get('/version', { as: 'nobody', headers: { authorization: 'Bearer ' } }),
      get('/version', { as: 'nobody', headers: { authorization: 'Bearer a b' } }),
    ],
    'acting as a user': [
      post(whoPath, who, acting({ 'impersonate-user': 'somebody' })),
      get(configMaps, acting({ 'impersonate-user': 'somebody' })),
      post(
        whoPath,
        who,
        acting({
          'impersonate-user': 'somebody',
          'impersonate-group': 'some-team',
          'impersonate-uid': 'u-1',
          'impersonate-extra-scopes': 'view',
          'impersonate-extra-example.com%2fproject': 'p',
        }),
      ),
      get(
        `${configMaps}/none`,
        acting({ 'impersonate-user': 'somebody', 'impersonate-group': 'system:masters' }),
      ),
    ],
    'acting as a service account': [
      post(whoPath, who, acting({ 'impersonate-user': 'system:serviceaccount:default:bot' })),
      post(whoPath, who, acting({ 'impersonate-user': 'system:serviceaccount:broken' })),
    ],
    'acting as anonymous': [
      post(whoPath, who, acting({ 'impersonate-user': 'system:anonymous' })),
      get('/version', acting({ 'impersonate-user': 'system:anonymous' })),
    ],
    'acting as a node': get(
      '/api/v1/nodes/n1',
      acting({ 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' }),
    ),
    'acting without a user': [
      get(configMaps, acting({ 'impersonate-group': 'some-team' })),
      get(configMaps, acting({ 'impersonate-uid': 'u' })),
      get(configMaps, acting({ 'impersonate-extra-a': 'b' })),
      get(configMaps, acting({ 'impersonate-user': '' })),
    ],
    'acting without the right to': [
      get(configMaps, acting({ 'impersonate-user': 'somebody' }, 'visitor')),
      get(configMaps, acting({ 'impersonate-user': 'visitor' }, 'visitor')),
      get(
        configMaps,
        acting({ 'impersonate-user': 'system:serviceaccount:default:bot' }, 'visitor'),
      ),
      get(
        configMaps,
        acting({ 'impersonate-user': 'visitor', 'impersonate-group': 'system:masters' }, 'visitor'),
      ),
    ],
    'granted rights count': [
      post(`${rbac}/namespaces/{ns}/roles`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'reader' },
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] }],
      }),
      post(`${rbac}/namespaces/{ns}/rolebindings`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'reader' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'User', name: 'reader-of-secrets' }],
      }),
      until(404, get(`${secrets}/none`, acting({ 'impersonate-user': 'reader-of-secrets' }))),
      get(configMaps, acting({ 'impersonate-user': 'reader-of-secrets' })),
      post(secrets, {}, acting({ 'impersonate-user': 'reader-of-secrets' })),
    ],
    'nobody grants what they do not have': [
      post(`${rbac}/clusterroles`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'same-role-writer' },
        rules: [
          { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['create', 'get'] },
          { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
        ],
      }),
      post(`${rbac}/clusterrolebindings`, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'same-role-writer' },
        roleRef: {
          apiGroup: 'rbac.authorization.k8s.io',
          kind: 'ClusterRole',
          name: 'same-role-writer',
        },
        subjects: [{ kind: 'User', name: 'role-writer' }],
      }),
      until(
        404,
        get(
          `${rbac}/namespaces/{ns}/rolebindings/none`,
          acting({ 'impersonate-user': 'role-writer' }),
        ),
      ),
      post(
        `${rbac}/namespaces/{ns}/roles`,
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'Role',
          metadata: { name: 'too-much' },
          rules: [
            { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
            { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
            { apiGroups: ['example.com'], resources: ['things'], verbs: ['get', 'list'] },
          ],
        },
        acting({ 'impersonate-user': 'role-writer' }),
      ),
      post(
        `${rbac}/namespaces/{ns}/rolebindings`,
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { name: 'too-much' },
          roleRef: {
            apiGroup: 'rbac.authorization.k8s.io',
            kind: 'ClusterRole',
            name: 'cluster-admin',
          },
          subjects: [{ kind: 'User', name: 'role-writer' }],
        },
        acting({ 'impersonate-user': 'role-writer' }),
      ),
      post(
        `${rbac}/namespaces/{ns}/rolebindings`,
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { name: 'not-there' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'not-there' },
          subjects: [{ kind: 'User', name: 'role-writer' }],
        },
        acting({ 'impersonate-user': 'role-writer' }),
      ),
    ],
  }),
}
