import { type Answer, cases, get, media, post, put, type Step, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, objectOf, storedKind } from '../kinds.ts'
import { bodyOf } from '../reading.ts'

type Fields = Record<string, unknown>
const withMetadata = (answer: Answer | undefined, more: Fields): Fields => {
  const body = bodyOf(answer)
  return { ...body, metadata: { ...(body['metadata'] as Fields), ...more } }
}

/** Makes a ConfigMap, then sends it back with other metadata. */
const changed = (name: string, more: Fields, query = ''): Step[] => [
  post(configMaps, configMap(name)),
  (seen) => put(`${configMaps}/${name}${query}`, withMetadata(seen[0], more)),
  get(`${configMaps}/${name}`),
]

const services = collectionOf(storedKind('Service'))
const service = (name: string, spec: Fields) => objectOf(storedKind('Service'), name, { spec })
const secrets = collectionOf(storedKind('Secret'))
const roleBindings = collectionOf(storedKind('RoleBinding'))

/** Updates: versions, names, immutable fields. */
export const changing: Topic = {
  name: 'changing',
  cases: cases({
    'a stale version': [
      post(configMaps, configMap('stale')),
      (seen) => put(`${configMaps}/stale`, { ...bodyOf(seen[0]), data: { a: '2' } }),
      (seen) => put(`${configMaps}/stale`, { ...bodyOf(seen[0]), data: { a: '3' } }),
      (seen) => put(`${configMaps}/stale?dryRun=All`, { ...bodyOf(seen[0]), data: { a: '3' } }),
    ],
    'no version': changed('no-version', { resourceVersion: '' }),
    'version 0': changed('version-0', { resourceVersion: '0' }),
    'a version that is no number': changed('version-x', { resourceVersion: 'x' }),
    'a version of the future': changed('version-future', { resourceVersion: '99999999' }),
    'a negative version': changed('version-negative', { resourceVersion: '-1' }),
    'a Lease without a version': [
      post(
        '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases',
        objectOf(storedKind('Lease'), 'unversioned', {}),
      ),
      put(
        '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/unversioned',
        objectOf(storedKind('Lease'), 'unversioned', { spec: { holderIdentity: 'me' } }),
      ),
    ],
    'another uid': changed('other-uid', { uid: '11111111-2222-3333-4444-555555555555' }),
    'another name': changed('other-name', { name: 'name-of-another' }),
    'no name': changed('name-missing', { name: '' }),
    'another namespace': changed('other-namespace', { namespace: 'default' }),
    'no namespace': changed('namespace-missing', { namespace: '' }),
    'another creation time': changed('other-time', { creationTimestamp: '2001-01-01T00:00:00Z' }),
    'no creation time': changed('no-time', { creationTimestamp: null }),
    'a deletion time': changed('deleted', { deletionTimestamp: '2001-01-01T00:00:00Z' }),
    'a generation': changed('generation', { generation: 9 }),
    'a generateName': changed('generate', { generateName: 'g-' }),
    'wrong labels': changed('wrong-labels', { labels: { 'a b': '!' } }),
    'a dry run': changed('dry', { labels: { a: 'b' } }, '?dryRun=All'),
    'metadata with null values': changed('nulls', { labels: null, annotations: null }),
    'new finalizers': changed('finalizers', { finalizers: ['example.com/x'] }),
    'finalizers twice': changed('finalizers-twice', {
      finalizers: ['example.com/x', 'example.com/x'],
    }),
    'an immutable ConfigMap': [
      post(configMaps, configMap('fixed', { immutable: true })),
      put(`${configMaps}/fixed`, configMap('fixed', { immutable: true, data: { b: '1' } })),
      put(`${configMaps}/fixed`, configMap('fixed', { immutable: false })),
      put(`${configMaps}/fixed`, configMap('fixed')),
    ],
    'an immutable Secret': [
      post(secrets, objectOf(storedKind('Secret'), 'fixed', { immutable: true })),
      put(`${secrets}/fixed`, objectOf(storedKind('Secret'), 'fixed', { stringData: { a: 'b' } })),
    ],
    'the type of a Secret': [
      post(secrets, objectOf(storedKind('Secret'), 'typed', { type: 'a' })),
      put(`${secrets}/typed`, objectOf(storedKind('Secret'), 'typed', { type: 'b' })),
      put(`${secrets}/typed`, objectOf(storedKind('Secret'), 'typed', {})),
    ],
    'the role of a binding': [
      post(roleBindings, objectOf(storedKind('RoleBinding'), 'rb', storedKind('RoleBinding').full)),
      put(
        `${roleBindings}/rb`,
        objectOf(storedKind('RoleBinding'), 'rb', {
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' },
        }),
      ),
    ],
    'the address of a Service': [
      post(services, service('addressed', { ports: [{ port: 80 }] })),
      put(`${services}/addressed`, service('addressed', { ports: [{ port: 81 }] })),
      put(
        `${services}/addressed`,
        service('addressed', { ports: [{ port: 80 }], clusterIP: '10.96.9.9' }),
      ),
      put(`${services}/addressed`, service('addressed', { ports: [] })),
    ],
    'a Service from one type to another': [
      post(services, service('typed', { ports: [{ port: 80 }] })),
      (seen) =>
        put(`${services}/typed`, {
          ...bodyOf(seen[0]),
          spec: { type: 'ExternalName', externalName: 'example.com' },
        }),
      put(`${services}/typed`, service('typed', { ports: [{ port: 80 }] })),
      put(`${services}/typed`, service('typed', { ports: [{ port: 80 }], clusterIP: 'None' })),
    ],
    'a headless Service': [
      post(services, service('headless', { clusterIP: 'None', selector: { a: 'b' } })),
      put(`${services}/headless`, service('headless', { ports: [{ port: 80 }] })),
    ],
    'a Service with a wish for an address': [
      post(services, service('wishing', { ports: [{ port: 80 }], clusterIP: '10.97.1.2' })),
      post(services, service('wishing-too', { ports: [{ port: 80 }], clusterIP: '10.97.1.2' })),
      post(services, service('wishing-out', { ports: [{ port: 80 }], clusterIP: '192.168.1.2' })),
      post(services, service('wishing-bad', { ports: [{ port: 80 }], clusterIP: 'nonsense' })),
    ],
    'a Service with a node port': [
      post(services, service('ported', { type: 'NodePort', ports: [{ port: 80 }] })),
      post(
        services,
        service('ported-2', { type: 'NodePort', ports: [{ port: 80, nodePort: 31999 }] }),
      ),
      post(
        services,
        service('ported-3', { type: 'NodePort', ports: [{ port: 80, nodePort: 31999 }] }),
      ),
      post(
        services,
        service('ported-4', { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] }),
      ),
    ],
    'answers in other forms': [
      post(configMaps, configMap('forms')),
      put(`${configMaps}/forms`, configMap('forms', { data: { b: '1' } }), { accept: media.table }),
      put(`${configMaps}/forms`, configMap('forms', { data: { b: '2' } }), {
        accept: media.metadata,
      }),
    ],
    'PUT to a collection': put(configMaps, configMap('x')),
    'another kind': put(`${configMaps}/x`, { ...configMap('x', { data: {} }), kind: 'Secret' }),
  }),
}
