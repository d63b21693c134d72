import { type Ask, cases, get, head, post, put, type Topic } from '../ask.ts'
import { configMap, configMaps } from '../kinds.ts'

const method = (name: string, path: string, body?: unknown): Ask => ({
  method: name,
  path,
  ...(body !== undefined && { body }),
})

/** Paths and methods that lead nowhere, or elsewhere than they seem. */
export const paths: Topic = {
  name: 'paths and methods',
  before: [post(configMaps, configMap('here'))],
  cases: cases({
    'unknown resources': [
      get('/api/v1/nonsense'),
      get('/api/v1/namespaces/{ns}/nonsense'),
      get('/api/v1/namespaces/{ns}/nonsense/x'),
      post('/api/v1/namespaces/{ns}/nonsense', {}),
      get('/apis/coordination.k8s.io/v1/nonsense'),
    ],
    'unknown groups and versions': [
      get('/apis/nonsense.example.com/v1/things'),
      get('/apis/nonsense.example.com/v1/namespaces/{ns}/things/x'),
      get('/apis/coordination.k8s.io/v9/leases'),
      get('/api/v9/pods'),
      get('/apis/nonsense.example.com'),
      get('/apis/nonsense.example.com/v1'),
      get('/apis/coordination.k8s.io/v9'),
      get('/api/v9'),
      post('/apis/nonsense.example.com/v1/things', {}),
    ],
    'plain paths that are not there': [get('/nonsense'), get('/api/nonsense'), get('/apix')],
    'a core kind in another group': get('/apis/coordination.k8s.io/v1/namespaces/{ns}/configmaps'),
    'a cluster-scoped kind in a namespace': [
      get('/api/v1/namespaces/{ns}/nodes'),
      get('/api/v1/namespaces/{ns}/nodes/x'),
      get('/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/clusterroles'),
    ],
    'a namespaced object without its namespace': [
      get('/api/v1/configmaps/here'),
      put('/api/v1/configmaps/here', configMap('here')),
      method('DELETE', '/api/v1/configmaps/here'),
    ],
    'kinds in other spelling': [get('/api/v1/ConfigMaps'), get('/api/v1/configmap')],
    'trailing slashes': [
      get(`${configMaps}/?labelSelector=none`),
      get(`${configMaps}/here/`),
      get('/version/'),
      get('/healthz/'),
      post(`${configMaps}/`, configMap('slashed')),
    ],
    'double slashes': [
      get('//api/v1/namespaces/{ns}/configmaps/here'),
      get('/api//v1/namespaces/{ns}/configmaps/here'),
      get(`${configMaps}//here`),
    ],
    'dot segments': [
      get('/api/v1/namespaces/{ns}/../{ns}/configmaps/here'),
      get('/api/v1/./namespaces'),
    ],
    'encoded names': [
      get(`${configMaps}/h%65re`),
      get(`${configMaps}/no%20such`),
      get(`${configMaps}/no%25such`),
      get('/api/v1/namespaces/%7Bns%7D/configmaps/x'),
    ],
    'encoded slashes': [get(`${configMaps}%2Fhere`), get(`${configMaps}/a%2Fb`)],
    'broken encoding': get(`${configMaps}/%zz`),
    'names that no object can have': [get(`${configMaps}/Not_Valid`), get(`${configMaps}/..a`)],
    HEAD: [head(configMaps), head(`${configMaps}/here`), head('/version'), head('/healthz')],
    OPTIONS: [
      method('OPTIONS', configMaps),
      method('OPTIONS', '/version'),
      method('OPTIONS', '/api/v1'),
    ],
    'other methods on resources': [
      method('TRACE', configMaps),
      method('LINK', configMaps),
      method('PUT', configMaps, {}),
      method('POST', `${configMaps}/here`, {}),
      method('PATCH', configMaps, {}),
    ],
    'methods on documents': [
      post('/version', {}),
      post('/healthz', {}),
      post('/api', {}),
      post('/api/v1', {}),
    ],
    'a body with GET': { method: 'GET', path: `${configMaps}/here`, body: '{' },
    'an unknown query parameter': get(`${configMaps}/here?nonsense=1`),
    'a query without a value': get(`${configMaps}/here?pretty`),
    timeouts: [
      get(`${configMaps}/here?timeout=5s`),
      get(`${configMaps}/here?timeout=x`),
      get(`${configMaps}/here?timeout=0s`),
      get(`${configMaps}/here?timeout=-1s`),
      get(`${configMaps}/here?timeout=100h`),
      get(`${configMaps}/here?timeout=`),
    ],
    'methods that reviews do not have': [
      get('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'),
      get('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x'),
      get('/apis/authentication.k8s.io/v1/tokenreviews'),
      put('/apis/authentication.k8s.io/v1/tokenreviews/x', {}),
      post('/apis/authorization.k8s.io/v1/localsubjectaccessreviews', {}),
      post('/apis/authorization.k8s.io/v1/namespaces/{ns}/subjectaccessreviews', {}),
    ],
    'an upgrade of what cannot be upgraded': get(`${configMaps}/here`, {
      headers: { connection: 'Upgrade', upgrade: 'websocket' },
    }),
  }),
}
